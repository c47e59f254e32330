"""Segments: immutable files with rows of vectors, which are memory-mapped.

A segment is `seg-<token>.vec`, rows x dim float32, little endian, row by row, each of length 1;
and `ids-<token>.bin`, the rows' chunk numbers (u64, ascending), then as many source numbers.
A row whose source number is 0 is dead; marking rows dead writes a new ids file. A long segment also
has `cod-<token>.bin`, the rows in eight bits (kb/search/index/codes.py).
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from kb.model.failpoints import failpoint
from kb.search.index.codes import Codes, map_codes, write_codes
from kb.search.index.files import CacheDamaged, FileMark, mark_file
from kb.store.content.durable import fsync_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.uint64]
    Matrix = NDArray[np.float32]

_BLOCK_ROWS: Final = 8_192


class SegmentEntry(Struct, frozen=True, kw_only=True):
    """A segment, as the manifest lists it."""

    token: str
    rows: int
    dead: int
    vectors: FileMark
    ids: FileMark
    codes: FileMark | None
    """None for a short segment."""

    @property
    def marks(self) -> tuple[FileMark, ...]:
        """The marks of its files."""
        marks = (self.vectors, self.ids)
        return (*marks, self.codes) if self.codes else marks


class Segment(Struct, frozen=True, kw_only=True):
    """An open segment: mapped from its files, or in memory where `entry` is None."""

    entry: SegmentEntry | None
    nos: "Numbers"
    """Shape (rows,), ascending."""
    sources: "Numbers"
    """Shape (rows,); 0 marks a dead row."""
    vectors: "Matrix"
    """Shape (rows, dim)."""
    codes: Codes | None = None
    """Of its first rows, if it is long."""

    @property
    def live_rows(self) -> int:
        """Rows that are not dead."""
        if self.entry:
            return self.entry.rows - self.entry.dead
        return int((self.sources != 0).sum())

    def find(self, nos: "Numbers") -> tuple["NDArray[np.intp]", "NDArray[np.bool_]"]:
        """The row of each chunk number, and whether it is live; both of the shape of `nos`."""
        import numpy as np

        if not len(self.nos):
            return np.zeros(len(nos), dtype=np.intp), np.zeros(len(nos), dtype=np.bool_)
        rows = np.minimum(np.searchsorted(self.nos, nos), len(self.nos) - 1)
        return rows, (self.nos[rows] == nos) & (self.sources[rows] != 0)


def unit_rows(vectors: "Matrix") -> "Matrix":
    """Rows scaled to length 1, so that a product is a cosine; zero rows stay zero."""
    import numpy as np

    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return np.ascontiguousarray(vectors / lengths, dtype="<f4")


def memory_segment(nos: "Numbers", sources: "Numbers", vectors: "Matrix") -> Segment:
    """A segment in memory; `nos` must ascend, and the vectors have length 1 or be zero."""
    return Segment(entry=None, nos=nos, sources=sources, vectors=vectors)


def empty_segment(dim: int) -> Segment:
    """A segment without rows."""
    import numpy as np

    none = np.empty(0, dtype="<u8")
    return memory_segment(none, none, np.empty((0, dim), dtype="<f4"))


def map_segment(folder: Path, entry: SegmentEntry, dim: int) -> Segment:
    """Map the files of an entry, whose marks the caller has checked. Raises CacheDamaged."""
    import numpy as np

    rows = entry.rows
    if (entry.vectors.size_bytes, entry.ids.size_bytes) != (rows * dim * 4, rows * 16):
        raise CacheDamaged(f"{entry.vectors.name}: its size does not fit {rows} rows")
    try:
        vectors = np.memmap(folder / entry.vectors.name, dtype="<f4", mode="r", shape=(rows, dim))
        ids = np.fromfile(folder / entry.ids.name, dtype="<u8")
    except (OSError, ValueError) as error:
        raise CacheDamaged(str(error)) from error
    if len(ids) != rows * 2:
        raise CacheDamaged(f"{entry.ids.name}: its size does not fit {rows} rows")
    # A plain array, because slicing a memmap costs a Python call each time.
    plain = vectors.view(np.ndarray)
    codes = map_codes(folder / entry.codes.name, rows, dim) if entry.codes else None
    return Segment(entry=entry, nos=ids[:rows], sources=ids[rows:], vectors=plain, codes=codes)


def write_merged(folder: Path, parts: list[Segment], dim: int) -> Segment:
    """Write the live rows of all parts as one segment, with one block of rows in memory."""
    import numpy as np

    order, nos, sources = _merge_order(parts)
    starts = np.cumsum([0, *(len(part.nos) for part in parts)])
    with SegmentWriter(folder, dim) as writer:
        for low in range(0, len(order), _BLOCK_ROWS):
            high = low + _BLOCK_ROWS
            rows = order[low:high]
            block = np.empty((len(rows), dim), dtype="<f4")
            for part, start in zip(parts, starts[:-1], strict=True):
                inside = (rows >= start) & (rows < start + len(part.nos))
                block[inside] = part.vectors[rows[inside] - start]
            writer.append(memory_segment(nos[low:high], sources[low:high], block))
    return writer.finish()


def _merge_order(parts: list[Segment]) -> tuple["NDArray[np.intp]", "Numbers", "Numbers"]:
    """The live rows of the concatenated parts, by number: positions, numbers and sources."""
    import numpy as np

    nos = np.concatenate([part.nos for part in parts])
    sources = np.concatenate([part.sources for part in parts])
    live = np.flatnonzero(sources)
    order = live[np.argsort(nos[live], kind="stable")]
    return order, nos[order], sources[order]


class SegmentWriter:
    """Writes a segment block by block; nothing refers to its files until it is finished.

    Call `append` inside a `with` block, and `finish` after it.
    """

    def __init__(self, folder: Path, dim: int) -> None:
        self._folder = folder
        self._dim = dim
        import secrets

        self._token = secrets.token_hex(8)
        self._path = folder / f"seg-{self._token}.vec"
        self._nos: list[Numbers] = []
        self._sources: list[Numbers] = []

    def __enter__(self) -> Self:
        self._file = open(self._path, "xb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, rows: Segment) -> None:
        """Add live rows; their numbers must be above all numbers before them."""
        self._file.write(rows.vectors.astype("<f4", copy=False).tobytes())
        self._nos.append(rows.nos)
        self._sources.append(rows.sources)

    def finish(self) -> Segment:
        """Make the files durable and map them."""
        import numpy as np

        none = np.empty(0, dtype="<u8")
        nos = np.concatenate([none, *self._nos])
        sources = np.concatenate([none, *self._sources])
        fsync_file(self._path)
        if not len(nos):
            return empty_segment(self._dim)
        vectors = np.memmap(self._path, dtype="<f4", mode="r", shape=(len(nos), self._dim))
        codes = write_codes(self._folder, vectors.view(np.ndarray))
        ids = _write_ids(self._folder, nos, sources)
        failpoint("dense.after_segment")
        entry = SegmentEntry(
            token=self._token,
            rows=len(nos),
            dead=0,
            vectors=mark_file(self._path),
            ids=ids,
            codes=codes,
        )
        return map_segment(self._folder, entry, self._dim)


def _write_ids(folder: Path, nos: "Numbers", sources: "Numbers") -> FileMark:
    import secrets

    path = folder / f"ids-{secrets.token_hex(8)}.bin"
    with open(path, "xb") as file:
        file.write(nos.tobytes())
        file.write(sources.tobytes())
        file.flush()
        os.fsync(file.fileno())
    return mark_file(path)


def with_dead_rows(folder: Path, segment: Segment, rows: "NDArray[np.bool_]") -> Segment:
    """The segment with these rows marked dead; it shares the vectors' file with the old one."""
    assert segment.entry is not None
    sources = segment.sources.copy()
    sources[rows] = 0
    entry = replace(
        segment.entry,
        dead=int((sources == 0).sum()),
        ids=_write_ids(folder, segment.nos, sources),
    )
    return replace(segment, entry=entry, sources=sources)
