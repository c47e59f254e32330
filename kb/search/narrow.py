"""Which chunks and sources have what a query asks for, besides what it looks for?"""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from kb.model.doc import Audience
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
    limits = [index.holders(title_holders(t), "source_no", audiences) for t in needles.titles]
    left_out = frozenset[int]().union(
        *(index.holders(phrase_holders(word), "source_no", audiences) for word in needles.without)
    )
    with store.read() as txn:
        if needles.places:
            limits.append(_in_places(txn, needles.places))
        if left_out:
            every = (docs.with_facet(txn, "audience", audience) for audience in audiences)
            limits.append(frozenset(no for numbers in every for no in numbers) - left_out)
            named = ", ".join(map(_short, needles.without))
            warnings.append(f"without what has: {named}")
    sources = limits[0].intersection(*limits[1:]) if limits else None
    return Narrowing(nos=nos, sources=sources, warnings=tuple(warnings))


def _in_places(txn: ReadTxn, places: Collection[str]) -> frozenset[int]:
    """The sources of which a part of the path has one of these names; case does not count."""
    parts = [f"/{place.strip('/').casefold()}/" for place in places]
    return frozenset(
        source_no
        for source, source_no in docs.facet_values(txn, "source")
        if any(part in f"/{source.casefold()}/" for part in parts)
    )


def _short(words: str) -> str:
    return words if len(words) <= _WORDS_SHOWN else f"{words[: _WORDS_SHOWN - 1]}…"
