"""The exact search: every row against the query, with one answer for equal inputs."""

from typing import TYPE_CHECKING, Final

from kb.index.result import NO_HITS, Hits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.index.hnsw import Graph
    from kb.index.segments import Matrix, Numbers, Segment

# More than single precision can be off for rows of length 1.
_ROUNDING: Final = 1e-5
_RESCORE_ROWS: Final = 4_096
# Below this share of rows the passing ones are gathered first instead of scored with the rest.
_GATHER_SHARE: Final = 0.1
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
        scores[low : low + _RESCORE_ROWS] = (block * wide).sum(axis=1)
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


def _rough_cosines(vectors: "Matrix", query: "Matrix") -> "NDArray[np.float32]":
    """Products of rows with the query in single precision, as fast as memory is read."""
    scores: NDArray[np.float32] = vectors @ query
    return scores


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


def candidate_rows(
    segments: "list[Segment]",
    query: "Matrix",
    limit: int,
    allowed: "Numbers | None",
    restrict_nos: "Numbers | None",
) -> "list[NDArray[np.intp]]":
    """Rows of each segment that may be among the best `limit` of all, and few others."""
    import numpy as np

    rows: list[NDArray[np.intp]] = []
    rough: list[NDArray[np.float32]] = []
    for segment in segments:
        mask = passing(segment, allowed, restrict_nos)
        picked = np.arange(len(segment.nos)) if mask is None else np.flatnonzero(mask)
        if mask is not None and len(picked) < _GATHER_SHARE * len(segment.nos):
            scores = _rough_cosines(segment.vectors[picked], query)
        else:
            scores = _rough_cosines(segment.vectors, query)
            scores = scores if mask is None else scores[picked]
        rows.append(picked)
        rough.append(scores)
    together = np.concatenate([np.empty(0, dtype=np.float32), *rough])
    if len(together) <= limit:
        return rows
    floor = np.partition(together, len(together) - limit)[len(together) - limit] - _ROUNDING
    return [picked[scores >= floor] for picked, scores in zip(rows, rough, strict=True)]


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
