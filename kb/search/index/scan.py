"""Exact search: a deterministic scan of all rows."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.search.index.hits import NO_HITS, IndexHits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.index.codes import Floats
    from kb.search.index.hnsw import Graph
    from kb.search.index.segments import Matrix, Numbers, Segment

# An upper bound of the error of single precision for rows of length 1.
_ROUNDING: Final = 1e-5
# So few that the copy in double precision stays in the cache, and takes no new pages.
_RESCORE_ROWS: Final = 64
# Below this share of passing rows only they are scored, by their vectors, instead of all rows: a
# vector at a random place costs as much as thirty rows of eight bits in sequence.
_GATHER_SHARE: Final = 0.03
# So few numbers that the algebra starts no threads, for which a busy machine lets others wait.
_PRODUCT_MAX: Final = 400_000
_GROUP_ROWS: Final = 16
# Some more rows than wanted, because the graph also returns dead rows and rounds.
_GRAPH_SPARE: Final = 64


def unit_vector(query: "Matrix") -> "Matrix | None":
    """The query scaled to length 1, shape (dim,); None where it is zero or not finite."""
    import numpy as np

    wide = np.asarray(query, dtype=np.float64).ravel()
    length = float(np.linalg.norm(wide))
    return (wide / length).astype("<f4") if np.isfinite(length) and length > 0 else None


def exact_cosines(vectors: "Matrix", query: "Matrix") -> "NDArray[np.float32]":
    """Products of rows with the query, shape (rows,); equal rows give equal products.

    Summed in double precision, row by row: a fast matrix product may round a row differently by
    its position in the matrix.
    """
    import numpy as np

    scores = np.empty(len(vectors), dtype=np.float32)
    wide = query.astype(np.float64)
    for low in range(0, len(vectors), _RESCORE_ROWS):
        block = vectors[low : low + _RESCORE_ROWS]
        scores[low : low + _RESCORE_ROWS] = np.einsum("ij,j->i", block.astype(np.float64), wide)
    return scores


def masked_cosines(
    vectors: "Matrix", present: "NDArray[np.bool_]", query: "Matrix"
) -> "NDArray[np.float64]":
    """Cosines of rows of length 1 with the query, shape (rows,); NaN where not `present`."""
    import numpy as np

    result = np.full(len(vectors), np.nan)
    unit_query = unit_vector(query)
    if unit_query is not None and present.all():
        # Mostly every row is there, and none is copied.
        result[:] = exact_cosines(vectors, unit_query)
    elif unit_query is not None:
        result[present] = exact_cosines(vectors[present], unit_query)
    return result


def passing_rows(
    segment: "Segment", allowed: "Numbers | None", restrict_nos: "Numbers | None"
) -> "NDArray[np.bool_] | None":
    """A mask of the rows that are live and pass the filters, shape (rows,); None where all do."""
    import numpy as np

    mask = None if segment.entry and not segment.entry.dead else segment.sources != 0
    for numbers, values in ((segment.sources, allowed), (segment.nos, restrict_nos)):
        if values is not None:
            among = np.isin(numbers, values)
            mask = among if mask is None else mask & among
    return mask


class _ScannedSegment(Struct, frozen=True, kw_only=True):
    """A segment's scores for one query; partly approximate."""

    segment: "Segment"
    scores: "Floats"
    """Cosines, shape (rows,); minus infinity where a row does not pass the filters."""
    passing_count: int
    gathered: "NDArray[np.intp] | None" = None
    """The segment's rows that `scores` and what is told by it are about; None for all of them."""
    rounding_error: float | None = None
    """Of the codes' products; None where no score is approximate."""
    is_refined: "NDArray[np.bool_] | None" = None
    """Which of the scores are not approximate any more, shape (rows,)."""

    def refined(self, rows: "NDArray[np.intp]", query: "Matrix") -> "Floats":
        """Cosines of rows in single precision, shape (len(rows),); reads each vector once."""
        if self.is_refined is not None:
            new = rows[~self.is_refined[rows]]
            self.scores[new] = _fast_cosines(self.segment.vectors.take(new, axis=0), query)
            self.is_refined[new] = True
        return self.scores[rows]

    def in_segment(self, rows: "NDArray[np.intp]") -> "NDArray[np.intp]":
        """These rows as the segment counts them."""
        return rows if self.gathered is None else self.gathered[rows]

    def may_reach(self, floor: float) -> "NDArray[np.intp]":
        """The rows that pass the filters and whose cosine may be at least `floor`."""
        import numpy as np

        floor -= _ROUNDING
        codes, error = self.segment.codes, self.rounding_error
        if codes is None or error is None or self.is_refined is None:
            return np.flatnonzero(self.scores >= floor)
        # The bounds of the few rows alone that could reach it by the highest of all bounds.
        rows = np.flatnonzero(self.scores >= floor - codes.error_max(error))
        bounds = codes.error_bounds(rows, error)
        bounds[self.is_refined[rows]] = 0
        return rows[self.scores[rows] + bounds >= floor]


def _fast_cosines(vectors: "Matrix", query: "Matrix") -> "Floats":
    """Products of rows with the query in single precision, shape (rows,)."""
    import numpy as np

    scores = np.empty(len(vectors), dtype=np.float32)
    step = _PRODUCT_MAX // vectors.shape[1]
    for low in range(0, len(vectors), step):
        np.matmul(vectors[low : low + step], query, out=scores[low : low + step])
    return scores


def _scan_segment(
    segment: "Segment",
    query: "Matrix",
    allowed: "Numbers | None",
    restrict_nos: "Numbers | None",
) -> _ScannedSegment:
    import numpy as np

    mask = passing_rows(segment, allowed, restrict_nos)
    count = len(segment.nos) if mask is None else int(np.count_nonzero(mask))
    if mask is not None and count < _GATHER_SHARE * len(segment.nos):
        rows = np.flatnonzero(mask)
        scores = _fast_cosines(segment.vectors.take(rows, axis=0), query)
        return _ScannedSegment(segment=segment, scores=scores, passing_count=count, gathered=rows)
    error = is_refined = None
    if segment.codes is None:
        scores = _fast_cosines(segment.vectors, query)
    else:
        scores, error = segment.codes.products(query)
        is_refined = np.zeros(len(scores), dtype=np.bool_)
    if mask is not None and count < len(scores):
        scores[~mask] = -np.inf
    return _ScannedSegment(
        segment=segment,
        scores=scores,
        passing_count=count,
        rounding_error=error,
        is_refined=is_refined,
    )


def _kth(scores: "Floats", k: int) -> float:
    """The k-th highest of at least k scores."""
    import numpy as np

    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def _kth_lower_bound(scores: "Floats", k: int) -> float:
    """A score near the k-th highest that at least k scores reach; found by the maxima of groups."""
    groups = len(scores) // _GROUP_ROWS
    if groups > k:
        # At least k rows reach the k-th highest of the groups' maxima.
        maxima = scores[: groups * _GROUP_ROWS].reshape(_GROUP_ROWS, groups).max(axis=0)
        bound = _kth(maxima, k)
        if bound > -float("inf"):
            return bound
    return _kth(scores, k)


def candidate_rows(
    segments: "list[Segment]",
    query: "Matrix",
    limit: int,
    allowed: "Numbers | None",
    restrict_nos: "Numbers | None",
) -> "list[NDArray[np.intp]]":
    """The rows of each segment that may be among the best `limit` of all, and few others.

    Codes select the rows whose vectors are read. The exact scores of the best of these give a
    floor, and every further row whose error bound reaches the floor is read, too.
    """
    import numpy as np

    scanned = [_scan_segment(segment, query, allowed, restrict_nos) for segment in segments]
    if sum(part.passing_count for part in scanned) <= limit:
        return [part.in_segment(np.flatnonzero(part.scores > -np.inf)) for part in scanned]
    floor = _kth_lower_bound(np.concatenate([part.scores for part in scanned]), limit)
    best = [np.flatnonzero(part.scores >= floor) for part in scanned]
    refined = [part.refined(rows, query) for part, rows in zip(scanned, best, strict=True)]
    floor = _kth(np.concatenate(refined), limit)
    reaching = [part.may_reach(floor) for part in scanned]
    scores = [part.refined(rows, query) for part, rows in zip(scanned, reaching, strict=True)]
    floor = _kth(np.concatenate(scores), limit) - _ROUNDING
    return [
        part.in_segment(rows[some >= floor])
        for part, rows, some in zip(scanned, reaching, scores, strict=True)
    ]


def rank_exact(
    segments: "list[Segment]", rows: "list[NDArray[np.intp]]", query: "Matrix", limit: int
) -> IndexHits:
    """The best `limit` of the given rows of each segment."""
    import numpy as np

    nos = np.concatenate([s.nos[r] for s, r in zip(segments, rows, strict=True)])
    if not len(nos):
        return NO_HITS
    scores = np.concatenate(
        [
            exact_cosines(s.vectors.take(r, axis=0), query)
            for s, r in zip(segments, rows, strict=True)
        ]
    )
    order = np.lexsort((nos, -scores))[:limit]
    return IndexHits(nos=nos[order].tolist(), scores=scores[order].tolist())


def rank_by_graph(
    segments: "list[Segment]", base: "Segment", graph: "Graph", query: "Matrix", limit: int
) -> IndexHits:
    """The best `limit` of the rows that a graph returns of `base` and a scan of other segments."""
    import numpy as np

    tail = [segment for segment in segments if segment is not base]
    rows = candidate_rows(tail, query, limit, None, None) if tail else []
    fetch = 2 * limit + _GRAPH_SPARE
    while True:
        near = graph.nearest(query, fetch)
        live = near[base.sources[near] != 0]
        if len(live) >= limit or len(near) >= len(base.nos):
            break
        fetch *= 2
    return rank_exact([base, *tail], [np.sort(live), *rows], query, limit)
