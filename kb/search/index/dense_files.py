"""The files of the dense index: its manifest, and changes of its rows."""

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
from kb.search.index.files import FileMark, content_matches
from kb.search.index.hnsw import GraphEntry
from kb.search.index.segments import (
    Segment,
    SegmentEntry,
    map_segment,
    memory_segment,
    unit_rows,
    with_dead_rows,
    write_merged,
)
from kb.store import chunks
from kb.store.content.durable import fsync_folder, write_temporary
from kb.store.content.sealed_json import read_sealed_json, sealed_json
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA_VERSION: Final = 4
METRIC: Final = "cosine"
_MANIFEST: Final = "manifest.json"
_PREFIXES: Final = ("seg-", "ids-", "cod-", "hnsw-", _MANIFEST + ".new")


class DenseManifest(Struct, frozen=True, kw_only=True):
    """What the index holds."""

    schema: int
    metric: str
    fingerprint: str
    dim: int
    watermark: int
    tail: str
    segments: tuple[SegmentEntry, ...]
    """Oldest first; the one with a graph before all others."""
    graph: GraphEntry | None

    def marks(self, *, with_graph: bool) -> tuple[FileMark, ...]:
        """The marks of the files that it names."""
        marks = tuple(mark for entry in self.segments for mark in entry.marks)
        return (*marks, self.graph.file) if self.graph and with_graph else marks


def folder_name(fingerprint: str) -> str:
    """The name of the folder with a model's vectors."""
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:8]


def unused_folders(folder: Path, used: Collection[str]) -> list[Path]:
    """The folders of models that are not among these fingerprints."""
    names = {folder_name(fingerprint) for fingerprint in used}
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.is_dir() and p.name not in names)


def remove_vectors(folder: Path) -> None:
    """Remove the folder of a model's vectors; it is rebuilt when needed.

    The manifest goes first, so that the rest is ignored if the removal is interrupted.
    """
    with suppress(FileNotFoundError):
        (folder / _MANIFEST).unlink()
    shutil.rmtree(folder, ignore_errors=True)


def manifest_path(folder: Path) -> Path:
    """The manifest of an index in a folder."""
    return folder / _MANIFEST


def load_manifest(folder: Path, fingerprint: str, dim: int) -> tuple[str, DenseManifest] | None:
    """The manifest and its hash; None where there is none of this schema, model and dimension."""
    loaded = read_sealed_json(manifest_path(folder), DenseManifest)
    if loaded is None:
        return None
    manifest = loaded[1]
    identity = (manifest.schema, manifest.metric, manifest.fingerprint, manifest.dim)
    return loaded if identity == (SCHEMA_VERSION, METRIC, fingerprint, dim) else None


def damaged_files(folder: Path, manifest: DenseManifest) -> list[str]:
    """Names of the segments' files whose hashes differ from their marks."""
    marks = manifest.marks(with_graph=False)
    return [mark.name for mark in marks if not content_matches(folder, mark, by_hash=True)]


def with_marks(manifest: DenseManifest, marks: Iterable[FileMark]) -> DenseManifest:
    """The manifest with other marks for its segments' files."""
    by_name = {mark.name: mark for mark in marks}
    segments = tuple(
        replace(
            entry,
            vectors=by_name[entry.vectors.name],
            ids=by_name[entry.ids.name],
            codes=by_name[entry.codes.name] if entry.codes else None,
        )
        for entry in manifest.segments
    )
    return replace(manifest, segments=segments)


def map_segments(
    folder: Path, manifest: DenseManifest, already_mapped: tuple[Segment, ...]
) -> tuple[Segment, ...]:
    """Map the manifest's segments, except those already mapped. Raises CacheDamaged."""
    mapped = {segment.entry: segment for segment in already_mapped if segment.entry}
    return tuple(
        mapped.get(entry) or map_segment(folder, entry, manifest.dim) for entry in manifest.segments
    )


def write_manifest(folder: Path, manifest: DenseManifest) -> str:
    """Write the manifest, durably, and remove files that it does not name; returns its hash."""
    sealed = sealed_json(manifest)
    temporary = write_temporary(folder / _MANIFEST, sealed)
    failpoint("dense.before_rename")
    os.replace(temporary, folder / _MANIFEST)
    fsync_folder(folder)
    failpoint("dense.after_rename")
    remove_unnamed_files(folder, manifest)
    return sealed.partition(b"\n")[0].decode()


def remove_unnamed_files(folder: Path, manifest: DenseManifest | None) -> None:
    """Remove files that the manifest does not name; readers keep their mapped files."""
    keep = {mark.name for mark in manifest.marks(with_graph=True)} if manifest else set()
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(_PREFIXES) and name not in keep:
                (folder / name).unlink(missing_ok=True)


def read_rows(
    txn: ReadTxn, window: list[tuple[int, tuple[Chunk, Doc] | None]], fingerprint: str, dim: int
) -> Segment:
    """A window of chunks as rows in memory; dead where the chunk is not live or has no vector.

    A damaged vector, or one with NaN, counts as missing; `kb check` reports it.
    """
    import numpy as np

    nos = np.fromiter((no for no, _ in window), dtype="<u8", count=len(window))
    sources = np.zeros(len(window), dtype="<u8")
    vectors = np.zeros((len(window), dim), dtype="<f4")
    live = (pair[0].text_hash for _, pair in window if pair is not None)
    chunks.expect_vectors(txn, fingerprint, live)
    for row, (_, pair) in enumerate(window):
        if pair is None:
            continue
        chunk = pair[0]
        vector = _vector(txn, fingerprint, chunk, dim)
        if vector is not None:
            sources[row] = chunk.source_no
            vectors[row] = vector
    sources[~np.isfinite(vectors).all(axis=1)] = 0
    vectors[sources == 0] = 0
    return memory_segment(nos, sources, unit_rows(vectors))


def _vector(txn: ReadTxn, fingerprint: str, chunk: Chunk, dim: int) -> "NDArray[np.float32] | None":
    try:
        return chunks.get_vector(txn, fingerprint, chunk.text_hash, dim)
    except StoreDamaged:
        return None


def without_dead_rows(rows: Segment) -> Segment:
    """Rows in memory without the dead ones."""
    live = rows.sources != 0
    return memory_segment(rows.nos[live], rows.sources[live], rows.vectors[live])


def replace_rows(
    folder: Path, parts: list[Segment], rows: Segment, pinned: str | None, dim: int
) -> list[Segment]:
    """The segments after `rows` replaced the rows of the same chunks.

    New rows become a segment, merged with the segments before it that are at most twice as large,
    so that there are O(log n) segments and a row is rewritten O(log n) times. The segment with the
    token `pinned`, which has a graph, is never rewritten.
    """
    import numpy as np

    unchanged = np.zeros(len(rows.nos), dtype=np.bool_)
    segments: list[Segment] = []
    for part in parts:
        part_rows, is_present = part.find(rows.nos)
        same = (
            is_present & (part.sources[part_rows] == rows.sources) if len(part.nos) else is_present
        )
        matched = np.flatnonzero(same)
        same[matched] = (part.vectors[part_rows[matched]] == rows.vectors[matched]).all(axis=1)
        unchanged |= same
        dead = np.zeros(len(part.nos), dtype=np.bool_)
        dead[part_rows[is_present & ~same]] = True
        after = with_dead_rows(folder, part, dead) if dead.any() else part
        if after.live_rows:
            segments.append(after)
    new = (rows.sources != 0) & ~unchanged
    if not new.any():
        return segments
    merged = [memory_segment(rows.nos[new], rows.sources[new], rows.vectors[new])]
    size = merged[0].live_rows
    while segments and segment_token(segments[-1]) != pinned and segments[-1].live_rows <= 2 * size:
        size += segments[-1].live_rows
        merged.append(segments.pop())
    return [*segments, write_merged(folder, merged, dim)]


def segment_token(segment: Segment) -> str | None:
    """The token of a segment on disk; None for one in memory."""
    return segment.entry.token if segment.entry else None
