"""The exact search: every row against the query, with one answer for equal inputs."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.search.index.result import NO_HITS, Hits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.index.codes import Floats
    from kb.search.index.hnsw import Graph
    from kb.search.index.segments import Matrix, Numbers, Segment

# More than single precision can be off for rows of length 1.
_ROUNDING: Final = 1e-5
_RESCORE_ROWS: Final = 4_096
# Below this share of rows the passing ones are gathered first instead of scored with the rest.
_GATHER_SHARE: Final = 0.1
_GROUP_ROWS: Final = 16
# Dead rows and rounding take a few of what a graph brings.
_GRAPH_SPARE: Final = 64


def unit(query: "Matrix") -> "Matrix | None":
    """The query at length 1, shape (dim,); None where it has no direction."""
    import numpy as np

    wide = np.asarray(query, dtype=np.float64).ravel()
    length = float(np.linalg.norm(wide))
    return (wide / length).astype("<f4") if np.isfinite(length) and length > 0 else None


def cosines(vectors: "Matrix", query: "Matrix") -> "NDArray[np.float32]":
    """Products of rows with the query, shape (rows,).

    A fast product may round a row differently by where in the matrix it stands. These are summed
    in double precision, row by row, so that equal rows score equal wherever they lie.
    """
    import numpy as np

    scores = np.empty(len(vectors), dtype=np.float32)
    wide = query.astype(np.float64)
    for low in range(0, len(vectors), _RESCORE_ROWS):
        block = vectors[low : low + _RESCORE_ROWS]
        scores[low : low + _RESCORE_ROWS] = np.einsum("ij,j->i", block.astype(np.float64), wide)
    return scores


def similarities(
    vectors: "Matrix", present: "NDArray[np.bool_]", query: "Matrix"
) -> "NDArray[np.float64]":
    """Cosines of rows of length 1 with the query, shape (rows,); NaN where not `present`."""
    import numpy as np

    found = np.full(len(vectors), np.nan)
    asked = unit(query)
    if asked is not None:
        found[present] = cosines(vectors[present], asked)
    return found


def passing(
    segment: "Segment", allowed: "Numbers | None", restrict_nos: "Numbers | None"
) -> "NDArray[np.bool_] | None":
    """Which rows are live and let through, shape (rows,); None where all are."""
    import numpy as np

    mask = None if segment.entry and not segment.entry.dead else segment.sources != 0
    for numbers, values in ((segment.sources, allowed), (segment.nos, restrict_nos)):
        if values is not None:
            among = np.isin(numbers, values)
            mask = among if mask is None else mask & among
    return mask


class _Looked(Struct, frozen=True, kw_only=True):
    """A segment's rows as far as they were looked at for one query."""

    segment: "Segment"
    scores: "Floats"
    """Cosines, shape (rows,); minus infinity where a row is not let through."""
    off: "Floats"
    """By how much each may be off, shape (rows,); 0 for those in single precision."""
    passing: int

    def near(self, rows: "NDArray[np.intp]", query: "Matrix") -> "Floats":
        """Cosines of rows in single precision, shape (len(rows),); each is read once."""
        unread = rows[self.off[rows] > 0]
        if len(unread):
            self.scores[unread] = _single(self.segment.vectors[unread], query)
            self.off[unread] = 0
        return self.scores[rows]

    def may_reach(self, floor: float) -> "NDArray[np.intp]":
        """The rows whose cosine may be that or more, and none that are not let through."""
        import numpy as np

        return np.flatnonzero(self.scores + self.off >= floor - _ROUNDING)


def _single(vectors: "Matrix", query: "Matrix") -> "Floats":
    """Products of rows with the query in single precision, as fast as memory is read."""
    scores: Floats = vectors @ query
    return scores


def _looked(
    segment: "Segment",
    query: "Matrix",
    allowed: "Numbers | None",
    restrict_nos: "Numbers | None",
) -> _Looked:
    import numpy as np

    mask = passing(segment, allowed, restrict_nos)
    count = len(segment.nos) if mask is None else int(np.count_nonzero(mask))
    off = np.zeros(len(segment.nos), dtype=np.float32)
    if mask is not None and count < _GATHER_SHARE * len(segment.nos):
        scores = np.full(len(segment.nos), -np.inf, dtype=np.float32)
        scores[mask] = _single(segment.vectors[mask], query)
        return _Looked(segment=segment, scores=scores, off=off, passing=count)
    if segment.codes is None:
        scores = _single(segment.vectors, query)
    else:
        rough, off[: segment.codes.rows] = segment.codes.products(query)
        scores = np.concatenate([rough, _single(segment.vectors[len(rough) :], query)])
    if mask is not None:
        scores[~mask] = -np.inf
    return _Looked(segment=segment, scores=scores, off=off, passing=count)


def _kth(scores: "Floats", k: int) -> float:
    """The k-th highest of at least k scores."""
    import numpy as np

    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def _reached_by(scores: "Floats", k: int) -> float:
    """A score that at least k of them reach, near the k-th highest: of groups the highest ones."""
    groups = len(scores) // _GROUP_ROWS
    if groups > k:
        # As many rows reach the k-th of the groups' heads as there are heads that do, or more.
        heads = scores[: groups * _GROUP_ROWS].reshape(_GROUP_ROWS, groups).max(axis=0)
        found = _kth(heads, k)
        if found > -float("inf"):
            return found
    return _kth(scores, k)


def candidate_rows(
    segments: "list[Segment]",
    query: "Matrix",
    limit: int,
    allowed: "Numbers | None",
    restrict_nos: "Numbers | None",
) -> "list[NDArray[np.intp]]":
    """Rows of each segment that may be among the best `limit` of all, and few others.

    Codes name the rows whose vectors are worth reading; what those of the best that they name
    score at the least, every other must be able to reach.
    """
    import numpy as np

    looked = [_looked(segment, query, allowed, restrict_nos) for segment in segments]
    if sum(one.passing for one in looked) <= limit:
        return [np.flatnonzero(one.scores > -np.inf) for one in looked]
    floor = _reached_by(np.concatenate([one.scores for one in looked]), limit)
    best = [np.flatnonzero(one.scores >= floor) for one in looked]
    near = [one.near(rows, query) for one, rows in zip(looked, best, strict=True)]
    floor = _kth(np.concatenate(near), limit)
    rows = [one.may_reach(floor) for one in looked]
    scores = [one.near(some, query) for one, some in zip(looked, rows, strict=True)]
    floor = _kth(np.concatenate(scores), limit) - _ROUNDING
    return [some[score >= floor] for some, score in zip(rows, scores, strict=True)]


def rank(
    segments: "list[Segment]", rows: "list[NDArray[np.intp]]", query: "Matrix", limit: int
) -> Hits:
    """The best `limit` of the given rows of each segment."""
    import numpy as np

    nos = np.concatenate([s.nos[r] for s, r in zip(segments, rows, strict=True)])
    if not len(nos):
        return NO_HITS
    scores = np.concatenate(
        [cosines(s.vectors[r], query) for s, r in zip(segments, rows, strict=True)]
    )
    order = np.lexsort((nos, -scores))[:limit]
    return Hits(nos=nos[order].tolist(), scores=scores[order].tolist())


def rank_by_graph(
    segments: "list[Segment]", base: "Segment", graph: "Graph", query: "Matrix", limit: int
) -> Hits:
    """The best `limit` of what a graph brings of `base` and a scan of the other segments."""
    import numpy as np

    tail = [segment for segment in segments if segment is not base]
    rows = candidate_rows(tail, query, limit, None, None) if tail else []
    want = 2 * limit + _GRAPH_SPARE
    while True:
        near = graph.nearest(query, want)
        alive = near[base.sources[near] != 0]
        if len(alive) >= limit or len(near) >= len(base.nos):
            break
        want *= 2
    return rank([base, *tail], [np.sort(alive), *rows], query, limit)
