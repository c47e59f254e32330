"""Which chunks and sources have what a query asks for, besides what it looks for?"""

import os
from collections.abc import Collection
from typing import Final

from msgspec import Struct

from kb.model.doc import Audience
from kb.search.filters import sources_of_audiences
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.search.index.lexical_query import phrase_holders, title_holders
from kb.search.operators import Needles
from kb.store import docs
from kb.store.kv import ReadTxn
from kb.store.store import Store

_WORDS_SHOWN: Final = 60


class Narrowing(Struct, frozen=True, kw_only=True):
    """What may be found; None is all."""

    nos: frozenset[int] | None
    """Numbers of chunks."""
    sources: frozenset[int] | None
    warnings: tuple[str, ...]


def narrowed(
    index: LexicalIndexes, store: Store, needles: Needles, audiences: Collection[Audience]
) -> Narrowing:
    """What has all of these, among the docs of some audiences."""
    warnings: list[str] = []
    nos: frozenset[int] | None = None
    for phrase in needles.phrases:
        holding = index.holders(phrase_holders(phrase), "no", audiences)
        if not holding:
            warnings.append(
                f'no passage has "{_short(phrase)}"; without quotes its words are searched for'
            )
        nos = holding if nos is None else nos & holding
    limits: list[frozenset[int]] = []

    def titled(title: str) -> frozenset[int]:
        holding = index.holders(title_holders(title), "source_no", audiences)
        if not holding:
            warnings.append(f"no doc has {_short(title)} in its title")
        return holding

    limits += map(titled, needles.titles)
    has_word = frozenset[int]().union(
        *(index.holders(phrase_holders(word), "source_no", audiences) for word in needles.without)
    )
    left_out = has_word.union(*map(titled, needles.other_titles))
    with store.read() as txn:

        def placed(*places: str) -> frozenset[int]:
            holding = _in_places(txn, places) & sources_of_audiences(txn, tuple(audiences))
            if not holding:
                named = " or ".join(map(_short, places))
                warnings.append(f"no doc has {named} as its name or in its path")
            return holding

        if needles.places:
            limits.append(placed(*needles.places))
        left_out = left_out.union(*map(placed, needles.other_places))
        if left_out:
            limits.append(sources_of_audiences(txn, tuple(audiences)) - left_out)
    if has_word:
        warnings.append(f"without what has: {', '.join(map(_short, needles.without))}")
    sources = limits[0].intersection(*limits[1:]) if limits else None
    return Narrowing(nos=nos, sources=sources, warnings=tuple(warnings))


def _in_places(txn: ReadTxn, places: Collection[str]) -> frozenset[int]:
    """The sources of which a part of the path has one of these names.

    Case does not count, nor does the ending of a file's name if it is not named.
    """
    parts = [f"/{place.strip('/').casefold()}/" for place in places]

    def is_named(source: str) -> bool:
        stem, _ = os.path.splitext(source)
        return any(part in f"/{source}/" or f"/{stem}/".endswith(part) for part in parts)

    return frozenset(
        source_no
        for source, source_no in docs.facet_values(txn, "source")
        if is_named(source.casefold())
    )


def _short(words: str) -> str:
    return words if len(words) <= _WORDS_SHOWN else f"{words[: _WORDS_SHOWN - 1]}…"
