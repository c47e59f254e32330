"""Which chunks of answers do earlier mails say themselves? They give way to what they repeat."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from msgspec import structs

from kb.search.hits import ScoredChunk

# As of a surplus near-duplicate.
_REPEATED_FACTOR: Final = 0.5
# A chunk is told by so many places in it, of so many characters each; most of them must be there.
_PROBES: Final = 4
_PROBE_CHARS: Final = 48
_HEADING: Final = re.compile(r"#{1,6} [^\n]*\n")


def own_first(rows: Sequence[ScoredChunk]) -> list[ScoredChunk]:
    """The rows, best first, with the scores of what mails repeat of others.

    Of the mail that says it itself, and of those that repeat it, one keeps the best score: that
    mail, or else the best that repeats it. The scores of the others are halved.
    """
    rows = sorted(rows, key=lambda row: row.sort_key)
    repeated = [place for place, row in enumerate(rows) if row.is_repeated]
    own = [place for place, row in enumerate(rows) if row.doc.mail and not row.is_repeated]
    found = _Texts([_words(rows[place].chunk.text) for place in own])
    scores = [row.rank_score for row in rows]
    first: dict[str, int] = {}
    for place in repeated:
        words = _words(rows[place].chunk.text)
        if words not in first:
            at = found.with_most(words)
            first[words] = place if at is None else own[at]
            scores[first[words]] = max(scores[first[words]], rows[place].rank_score)
        if first[words] != place:
            scores[place] = rows[place].rank_score * _REPEATED_FACTOR
    return [structs.replace(row, rank_score=score) for row, score in zip(rows, scores, strict=True)]


class _Texts:
    """Texts in which chunks are looked up."""

    def __init__(self, texts: list[str]) -> None:
        self._all = "\n".join(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))

    def with_most(self, chunk: str) -> int | None:
        """The number of the first text that has most of a chunk; None where none has."""
        counts: dict[int, int] = {}
        probes = list(_probes(chunk))
        for probe in probes:
            at = self._all.find(probe)
            if at >= 0:
                number = bisect_right(self._starts, at) - 1
                counts[number] = counts.get(number, 0) + 1
        best = max(counts, key=lambda number: (counts[number], -number), default=None)
        return best if best is not None and 2 * counts[best] > len(probes) else None


def _probes(chunk: str) -> Iterator[str]:
    step = max(1, (len(chunk) - _PROBE_CHARS) // (_PROBES - 1))
    for start in range(0, max(1, len(chunk) - _PROBE_CHARS + 1), step):
        yield chunk[start : start + _PROBE_CHARS]


def _words(text: str) -> str:
    """The text on one line, without the heading that opens it."""
    return " ".join(_HEADING.sub("", text, count=1).split())
