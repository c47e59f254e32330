"""Approximate search (HNSW): a graph over the rows of one segment, in a file of its own.

The graph's labels are the segment's row numbers. The rows of a segment never change: dead rows are
left out of the hits, and newer rows are in other segments.
"""

import errno
import os
import sys
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kb.errors import install_command
from kb.model.config.sections import IndexSettings
from kb.search.index.files import FileMark, content_matches, mark_file
from kb.store.content.durable import fsync_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.index.segments import Matrix, Segment

_M: Final = 16
_EF_CONSTRUCTION: Final = 200
_SPACE: Final = "cosine"
_BLOCK_ROWS: Final = 10_000
# From this Python on there is no wheel of hnswlib.
_COMPILED_FROM: Final = (3, 13)
# hnswlib draws the levels with this seed; with one thread equal rows give equal files.
_SEED: Final = 100


class GraphEntry(Struct, frozen=True, kw_only=True):
    """A graph, as the manifest lists it."""

    segment: str
    """Token of the segment whose rows it holds."""
    dim: int
    space: str
    rows: int
    file: FileMark


def is_available() -> bool:
    """Whether hnswlib is installed, which the extra `hnsw` brings."""
    import importlib.util

    return importlib.util.find_spec("hnswlib") is not None


def how_to_get() -> str:
    """What a person types to have hnswlib."""
    command = install_command("hnsw")
    if sys.version_info < _COMPILED_FROM:
        return command
    return f"{command}, which needs a C++ compiler on this Python"


def lack(settings: IndexSettings, vectors: int) -> str | None:
    """What is lost without hnswlib with so many vectors; None if nothing is, or it is there."""
    if settings.dense_mode == "exact" or is_available():
        return None
    if settings.dense_mode == "hnsw":
        return "index.dense_mode is hnsw, but its library is not there: every vector is compared"
    if vectors < settings.crossover_rows:
        return None
    return (
        f"every vector is compared; from {settings.crossover_rows:,} on a server is faster by a"
        " graph (HNSW)"
    )


def build(folder: Path, segment: "Segment") -> GraphEntry:
    """Build the graph of a segment's rows and write it, durably, under a new name.

    Uses one thread, about 0.4 ms a row; the same rows give the same file.
    """
    import hnswlib
    import numpy as np

    assert segment.entry is not None
    rows, dim = segment.vectors.shape
    index = hnswlib.Index(space=_SPACE, dim=dim)
    index.init_index(max_elements=rows, ef_construction=_EF_CONSTRUCTION, M=_M, random_seed=_SEED)
    for low in range(0, rows, _BLOCK_ROWS):
        block = segment.vectors[low : low + _BLOCK_ROWS]
        index.add_items(block, np.arange(low, low + len(block)), num_threads=1)
    import secrets

    path = folder / f"hnsw-{secrets.token_hex(8)}.bin"
    index.save_index(str(path))
    fsync_file(path)
    if not _is_complete(path, rows, dim):
        # save_index reports success even where the disk cut its file short.
        path.unlink(missing_ok=True)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path.name)
    return GraphEntry(
        segment=segment.entry.token, dim=dim, space=_SPACE, rows=rows, file=mark_file(path)
    )


def _is_complete(path: Path, rows: int, dim: int) -> bool:
    import hnswlib

    # Each row has at least its links on the lowest level, its vector and its label.
    if path.stat().st_size < rows * (4 + 2 * _M * 4 + dim * 4 + 8):
        return False
    reloaded = hnswlib.Index(space=_SPACE, dim=dim)
    try:
        reloaded.load_index(str(path), max_elements=rows)
    except RuntimeError:
        return False
    return bool(reloaded.get_current_count() == rows)


def load(folder: Path, entry: GraphEntry, segment: "Segment", ef: int) -> "Graph | None":
    """The graph; None where its file is damaged or does not fit the segment.

    Always checks the hash first: hnswlib can crash on one flipped bit in the header.
    """
    import hnswlib

    rows, dim = segment.vectors.shape
    if (entry.rows, entry.dim, entry.space) != (rows, dim, _SPACE):
        return None
    if not content_matches(folder, entry.file, by_hash=True):
        return None
    index = hnswlib.Index(space=_SPACE, dim=dim)
    index.load_index(str(folder / entry.file.name), max_elements=rows)
    return Graph(index, rows, ef) if index.get_current_count() == rows else None


class Graph:
    """A loaded graph. Thread-safe."""

    def __init__(self, index: Any, rows: int, ef: int) -> None:
        self._index = index
        self._rows = rows
        self._ef = ef
        self._lock = Lock()

    def nearest(self, query: "Matrix", count: int) -> "NDArray[np.intp]":
        """The approximately nearest `count` rows, including dead ones; all rows if fewer."""
        import numpy as np

        count = min(count, self._rows)
        with self._lock:
            self._index.set_ef(max(self._ef, count))
            labels, _ = self._index.knn_query(query.reshape(1, -1), k=count, num_threads=1)
        return np.asarray(labels[0], dtype=np.intp)
