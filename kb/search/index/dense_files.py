"""The dense index at rest: its manifest, and how rows come, change and go."""

import hashlib
import os
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kb.errors import StoreDamaged
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.text import Chunk
from kb.search.index.files import (
    FileMark,
    fsync_folder,
    intact,
    read_manifest,
    seal,
    write_beside,
)
from kb.search.index.hnsw import GraphEntry
from kb.search.index.segments import (
    Segment,
    SegmentEntry,
    in_memory,
    map_segment,
    unit_rows,
    without,
    write_merged,
)
from kb.store import chunks
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA_VERSION: Final = 2
METRIC: Final = "cosine"
_MANIFEST: Final = "manifest.json"
_OURS: Final = ("seg-", "ids-", "cod-", "hnsw-", _MANIFEST + ".new")


class DenseManifest(Struct, frozen=True, kw_only=True):
    """What the cache holds."""

    schema: int
    metric: str
    fingerprint: str
    dim: int
    watermark: int
    tail: str
    segments: tuple[SegmentEntry, ...]
    """Oldest first; the one that has a graph comes before all others."""
    graph: GraphEntry | None

    def marks(self, *, with_graph: bool) -> tuple[FileMark, ...]:
        """The files that it names."""
        marks = tuple(mark for entry in self.segments for mark in entry.marks)
        return (*marks, self.graph.file) if self.graph and with_graph else marks


def folder_name(fingerprint: str) -> str:
    """The name of the folder of a model's vectors."""
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:8]


def folders_of_others(folder: Path, kept: Collection[str]) -> list[Path]:
    """The folders of vectors of models that are not among these fingerprints."""
    names = {folder_name(fingerprint) for fingerprint in kept}
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.is_dir() and p.name not in names)


def discard(folder: Path) -> None:
    """Remove the folder of a model's vectors; whoever needs it again builds it anew.

    The manifest goes first, so that what is left of a run that was stopped counts as nothing.
    """
    with suppress(FileNotFoundError):
        (folder / _MANIFEST).unlink()
    shutil.rmtree(folder, ignore_errors=True)


def load_manifest(folder: Path, fingerprint: str, dim: int) -> tuple[str, DenseManifest] | None:
    """The manifest and its hash; None where there is none of this program, model and size."""
    found = read_manifest(folder / _MANIFEST, DenseManifest)
    if found is None:
        return None
    manifest = found[1]
    stands_for = (manifest.schema, manifest.metric, manifest.fingerprint, manifest.dim)
    return found if stands_for == (SCHEMA_VERSION, METRIC, fingerprint, dim) else None


def findings(folder: Path, manifest: DenseManifest) -> list[str]:
    """Names of the segments' files that are not as written, by their hashes."""
    marks = manifest.marks(with_graph=False)
    return [mark.name for mark in marks if not intact(folder, mark, by_hash=True)]


def marked_again(manifest: DenseManifest, marks: Iterable[FileMark]) -> DenseManifest:
    """The manifest with other marks for its segments' files."""
    named = {mark.name: mark for mark in marks}
    segments = tuple(
        replace(
            entry,
            vectors=named[entry.vectors.name],
            ids=named[entry.ids.name],
            codes=named[entry.codes.name] if entry.codes else None,
        )
        for entry in manifest.segments
    )
    return replace(manifest, segments=segments)


def map_segments(
    folder: Path, manifest: DenseManifest, known: tuple[Segment, ...]
) -> tuple[Segment, ...]:
    """Map what the manifest names; what is mapped already is kept. Raises CacheDamaged."""
    mapped = {segment.entry: segment for segment in known if segment.entry}
    return tuple(
        mapped.get(entry) or map_segment(folder, entry, manifest.dim) for entry in manifest.segments
    )


def write_manifest(folder: Path, manifest: DenseManifest) -> str:
    """Switch to `manifest`, durably, and remove what it no longer names; returns its hash."""
    sealed = seal(manifest)
    beside = write_beside(folder / _MANIFEST, sealed)
    failpoint("dense.before_rename")
    os.replace(beside, folder / _MANIFEST)
    fsync_folder(folder)
    failpoint("dense.after_rename")
    sweep(folder, manifest)
    return sealed.partition(b"\n")[0].decode()


def sweep(folder: Path, manifest: DenseManifest | None) -> None:
    """Remove files that the manifest does not name; readers keep what they have mapped."""
    keep = {mark.name for mark in manifest.marks(with_graph=True)} if manifest else set()
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(_OURS) and name not in keep:
                (folder / name).unlink(missing_ok=True)


def read_rows(
    txn: ReadTxn, window: list[tuple[int, tuple[Chunk, Doc] | None]], fingerprint: str, dim: int
) -> Segment:
    """A window of passages as rows in memory; dead where nothing is live or has a vector yet.

    A vector that is damaged or no number counts as not there; `kb check` names it.
    """
    import numpy as np

    nos = np.fromiter((no for no, _ in window), dtype="<u8", count=len(window))
    sources = np.zeros(len(window), dtype="<u8")
    vectors = np.zeros((len(window), dim), dtype="<f4")
    for row, (_, found) in enumerate(window):
        if found is None:
            continue
        vector = _vector(txn, fingerprint, found[0], dim)
        if vector is not None:
            sources[row] = found[0].source_no
            vectors[row] = vector
    sources[~np.isfinite(vectors).all(axis=1)] = 0
    vectors[sources == 0] = 0
    return in_memory(nos, sources, unit_rows(vectors))


def _vector(txn: ReadTxn, fingerprint: str, chunk: Chunk, dim: int) -> "NDArray[np.float32] | None":
    try:
        return chunks.get_vector(txn, fingerprint, chunk.text_hash, dim)
    except StoreDamaged:
        return None


def live_only(rows: Segment) -> Segment:
    """Rows in memory without the dead ones."""
    alive = rows.sources != 0
    return in_memory(rows.nos[alive], rows.sources[alive], rows.vectors[alive])


def replaced(
    folder: Path, parts: list[Segment], rows: Segment, pinned: str | None, dim: int
) -> list[Segment]:
    """The segments after `rows` took the place of whatever stood for the same passages.

    New rows become a segment, together with those before it that are not over twice as large,
    so that there are O(log n) segments and a row is rewritten O(log n) times. The `pinned` one
    (it has a graph) is never rewritten.
    """
    import numpy as np

    settled = np.zeros(len(rows.nos), dtype=np.bool_)
    kept: list[Segment] = []
    for part in parts:
        places, there = part.find(rows.nos)
        same = there & (part.sources[places] == rows.sources) if len(part.nos) else there
        hit = np.flatnonzero(same)
        same[hit] = (part.vectors[places[hit]] == rows.vectors[hit]).all(axis=1)
        settled |= same
        gone = np.zeros(len(part.nos), dtype=np.bool_)
        gone[places[there & ~same]] = True
        after = without(folder, part, gone) if gone.any() else part
        if after.live_rows:
            kept.append(after)
    fresh = (rows.sources != 0) & ~settled
    if not fresh.any():
        return kept
    merged = [in_memory(rows.nos[fresh], rows.sources[fresh], rows.vectors[fresh])]
    size = merged[0].live_rows
    while kept and token_of(kept[-1]) != pinned and kept[-1].live_rows <= 2 * size:
        size += kept[-1].live_rows
        merged.append(kept.pop())
    return [*kept, write_merged(folder, merged, dim)]


def token_of(segment: Segment) -> str | None:
    """The token of a segment at rest; None for one in memory."""
    return segment.entry.token if segment.entry else None
