"""Find near-duplicate notes by comparing shingles, of few pairs only. Pure."""

import heapq
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Final

from msgspec import Struct

LIKENESS_MIN: Final = 0.6
_WORDS_MAX: Final = 50_000
_SHINGLE_WORDS: Final = 3
# Two notes at the threshold differ in all of so many lowest shingles once in millions of pairs.
_LOWEST: Final = 16
# A text that more notes than this share is a template.
_SHARED_MAX: Final = 32
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")


class SimilarPair(Struct, frozen=True, kw_only=True):
    """Two nearly equal notes; the path of `a` sorts first."""

    a: str
    b: str
    likeness: float
    """The share of shingles that both have, LIKENESS_MIN to 1."""


def words_of(text: str) -> list[str]:
    """The words of a text without case, and single CJK characters; all marks are dropped."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def lowest(text: str) -> tuple[int, ...]:
    """The lowest shingles of a note, by which `pairs` finds notes to compare it with."""
    return tuple(heapq.nsmallest(_LOWEST, _shingles(text)))


def pairs(
    lows: Iterable[tuple[str, tuple[int, ...]]], read: Callable[[str], str]
) -> list[SimilarPair]:
    """Pairs of notes whose likeness is at least LIKENESS_MIN, the likest first.

    `lows` has path and `lowest` of each note, `read` gives the text of a path. Only notes that
    share one of their lowest shingles are compared, so the work grows with the notes and not with
    their square (Broder, 1997: the lowest hashes of two sets are alike as the sets are). The same
    notes give the same pairs.
    """
    sharing: dict[int, list[str]] = {}
    for path, low in lows:
        for shingle in low:
            sharing.setdefault(shingle, []).append(path)
    candidates = {
        pair
        for paths in sharing.values()
        if 1 < len(paths) <= _SHARED_MAX
        for pair in combinations(sorted(paths), 2)
    }
    similar = []
    left: tuple[str, set[int]] = ("", set())
    for a, b in sorted(candidates):
        if left[0] != a:
            left = (a, _shingles(read(a)))
        likeness = _likeness(left[1], _shingles(read(b)))
        if likeness >= LIKENESS_MIN:
            similar.append(SimilarPair(a=a, b=b, likeness=likeness))
    return sorted(similar, key=lambda pair: (-pair.likeness, pair.a, pair.b))


def _likeness(a: set[int], b: set[int]) -> float:
    shared = len(a & b)
    return round(shared / (len(a) + len(b) - shared), 3) if shared else 0.0


def _shingles(text: str) -> set[int]:
    words = words_of(text)[:_WORDS_MAX]
    if not words:
        return set()
    runs = range(max(1, len(words) - _SHINGLE_WORDS + 1))
    joined = (" ".join(words[at : at + _SHINGLE_WORDS]) for at in runs)
    return {zlib.crc32(run.encode("utf-8", "surrogatepass")) for run in joined}
