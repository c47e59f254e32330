"""Pages: which part of a ranking is wanted, and where the next part begins. Pure.

A cursor has the number of hits before its page, a digest of which they were, and a digest of the
request, which `kb.operations.cursors` adds and checks. An offset is the number alone. So a cursor
tells that pages do not fit together by what was shown, and not by what else changed in a store.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from kb.model.search import Hit, SearchRequest
from kb.search.hits import FIT_THRESHOLD

_DIGEST_MAX: Final = (1 << 64) - 1
_CHANGED: Final = (
    "what was found has changed since the page before: hits may come twice, or not at all"
)


class Ranked(Protocol):
    """What has a place in a ranking."""

    @property
    def chunk_id(self) -> str:
        """Names it."""

    @property
    def score(self) -> float:
        """Of 0 to 1; falls along a ranking."""

    @property
    def date(self) -> str | None:
        """Of its doc, ISO 8601."""


R = TypeVar("R", bound=Ranked)
S = TypeVar("S", bound=Struct)


class ResultPage(Struct, frozen=True, kw_only=True):
    """Where a page is in its ranking."""

    first: int
    """How many hits come before it."""
    next_cursor: str | None = None
    """Without the digest of the request; None where no hit is left."""
    warnings: tuple[str, ...] = ()

    def numbered(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """The hits of the page, with their ranks in the whole ranking."""
        return tuple(
            msgspec.structs.replace(hit, rank=rank) for rank, hit in enumerate(hits, self.first + 1)
        )


class Pager(Struct, frozen=True, kw_only=True):
    """Which part of a ranking a request wants."""

    k: int
    reach: int
    """So many hits of a ranking are on pages: it is the same ranking only up to there."""
    first: int = 0
    digest: int | None = None
    """Of the hits before `first`, as a cursor has it; None without a cursor."""
    by_date: bool = False
    min_score: float = 0.0

    @property
    def depth(self) -> int:
        """How many hits must be ranked to tell the page, and whether one follows."""
        return self.reach if self.by_date else min(self.first + self.k + 1, self.reach)

    @property
    def scored(self) -> int:
        """How many of these need their score: the one after the page only tells of itself."""
        return self.depth if self.by_date or self.min_score else self.first + self.k

    def page(self, rows: Sequence[R]) -> tuple[list[R], ResultPage]:
        """The rows of the page, and where it is.

        `rows` are the first `depth` of the ranking, or all; the first `scored` with their scores.
        """
        kept = [row for row in rows if row.score >= self.min_score]
        if self.by_date:
            kept = _newest_first(kept)
        shown = kept[self.first : self.first + self.k]
        end = self.first + len(shown)
        cursor = None
        if shown and len(kept) > end:
            cursor = f"{end}.{hits_digest(row.chunk_id for row in kept[:end]):016x}"
        warnings: list[str] = []
        before = kept[: self.first]
        if self.digest not in (None, hits_digest(row.chunk_id for row in before)):
            warnings.append(_CHANGED)
        if self.first and not shown:
            warnings.append(self._end(len(kept)))
        page = ResultPage(first=self.first, next_cursor=cursor, warnings=tuple(warnings))
        return shown, page

    def _end(self, count: int) -> str:
        if count >= self.reach or self.first >= self.reach:
            return f"pages end after {self.reach} hits; search.candidates says how many they have"
        return f"no page begins at hit {self.first + 1}: there are {count} hits"


def pager_of(request: SearchRequest, reach: int) -> Pager:
    """Which part of a ranking a request wants that has `reach` candidates of each leg."""
    count, *digests = (request.cursor or "0").split(".")
    return Pager(
        k=request.k,
        reach=reach,
        first=int(count),
        digest=int(digests[0], 16) if digests else None,
        by_date=request.sort == "date",
        min_score=request.min_score,
    )


def hits_digest(chunk_ids: Iterable[str]) -> int:
    """Which hits these are, in whatever order, as 64 bits."""
    return sum(map(_digest, chunk_ids)) & _DIGEST_MAX


def with_falling_scores(rows: Iterable[S]) -> list[S]:
    """Rows of a ranking, each with the least score of it and of those before it."""
    falling: list[S] = []
    least = 1.0
    for row in rows:
        score: float = row.score  # type: ignore[attr-defined]
        is_more = score > least
        falling.append(msgspec.structs.replace(row, score=least) if is_more else row)
        least = min(least, score)
    return falling


def _digest(chunk_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(chunk_id.encode(), digest_size=8).digest(), "big")


def _newest_first(rows: Sequence[R]) -> list[R]:
    """What fits comes first, and of it the newest docs; those without a date are the oldest."""
    newest = sorted(rows, key=lambda row: row.date or "", reverse=True)
    return sorted(newest, key=lambda row: row.score < FIT_THRESHOLD)
