"""What the caches of a node hold, in a few bytes, for comparing them with those of other nodes."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kb.model.node import CacheContents
from kb.search.index.analysis import ANALYSIS_VERSION, query_words
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_query import Holding
from kb.store import chunks
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tantivy import Query, Schema

_WORDS_MAX: Final = 16
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD)


def digest_of(nos: "Iterable[int]", sources: "Iterable[int]") -> str:
    """A digest of chunks and their sources, by number, in whatever order they come."""
    return f"{int(_mixed(nos, sources).sum()):016x}"


def lexical_contents(store: Store, index: LexicalIndex) -> CacheContents:
    """What an index of words holds, and which chunks a word of each of some chunks finds.

    Chunks and words are chosen by the chunks' numbers and texts alone, so that equal indexes choose
    the same.
    """
    rows = index.rows()
    nos, sources = list(rows), list(rows.values())
    answers = hashlib.sha256()
    for word in _words_of(store, _sample(nos, sources)):
        found = index.holders(_holding(word), "no")
        answers.update(f"{word}:{sorted(found)}\n".encode())
    return CacheContents(
        log_seq=index.stats().watermark,
        rows=len(nos),
        digest=digest_of(nos, sources),
        answers=answers.hexdigest()[:16],
        analysis=ANALYSIS_VERSION,
    )


def dense_contents(index: DenseIndex) -> CacheContents:
    """What an index of vectors holds."""
    nos, sources = index.rows()
    return CacheContents(
        log_seq=index.stats().watermark, rows=len(nos), digest=digest_of(nos, sources)
    )


def with_problem(contents: CacheContents, problem: str) -> CacheContents:
    """Contents that were compared with the store, and what was found wrong."""
    return msgspec.structs.replace(contents, is_checked=True, problem=problem)


def _mixed(nos: "Iterable[int]", sources: "Iterable[int]") -> "NDArray[np.uint64]":
    import numpy as np

    first, second, third = (np.uint64(factor) for factor in _FACTORS)
    with np.errstate(over="ignore"):
        mixed = np.asarray(nos, dtype=np.uint64) * first
        mixed ^= np.asarray(sources, dtype=np.uint64) * second
        mixed ^= mixed >> np.uint64(33)
        mixed *= third
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _sample(nos: Sequence[int], sources: Sequence[int]) -> list[int]:
    """Some of the numbers, chosen evenly among all."""
    import numpy as np

    mixed = _mixed(nos, sources)
    return [nos[row] for row in np.argsort(mixed, kind="stable")[:_WORDS_MAX]]


def _words_of(store: Store, nos: list[int]) -> list[str]:
    """The longest analysed word of each chunk, which few others have; all different."""
    with store.read() as txn:
        chunks.expect(txn, nos)
        found = [chunk for no in nos if (chunk := chunks.get(txn, no)) is not None]
    words = (query_words(chunk.text) for chunk in found)
    return sorted({max(each, key=lambda word: (len(word), word)) for each in words if each})


def _holding(word: str) -> Holding:
    def query(schema: "Schema") -> "Query":
        from tantivy import Query

        return Query.term_query(schema, "body", word)

    return query
