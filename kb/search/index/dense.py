"""The dense index: vectors of chunks, searched by an exact scan or, when large, by HNSW."""

# Long because searching, following the log and compacting share one set of files.

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, assert_never

from msgspec import Struct

from kb.errors import StoreBusy
from kb.model.job import LogEntry
from kb.search.index import hnsw, log_follower, scan
from kb.search.index.dense_files import (
    METRIC,
    SCHEMA_VERSION,
    DenseManifest,
    damaged_files,
    folder_name,
    load_manifest,
    manifest_path,
    map_segments,
    read_rows,
    remove_unnamed_files,
    replace_rows,
    segment_token,
    with_marks,
    without_dead_rows,
    write_manifest,
)
from kb.search.index.files import (
    CacheDamaged,
    FileMark,
    KeptFile,
    content_matches,
    current_mark,
    stats_match,
)
from kb.search.index.hits import NO_HITS, IndexHits, IndexStats
from kb.search.index.hnsw import Graph, GraphEntry
from kb.search.index.log_follower import CatchUpReport, LogPosition
from kb.search.index.segments import Segment, SegmentWriter, memory_segment, write_merged
from kb.store import chunks
from kb.store.content.lock import file_lock
from kb.store.kv import ReadTxn
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.index.segments import Matrix, Numbers

DenseMode = Literal["auto", "exact", "hnsw"]
# See docs/adr/0098: below it a scan takes under 70 ms; loading a graph takes longer than that.
CROSSOVER_ROWS: Final = 3_000_000
_EF: Final = 256
_DEAD_SHARE_MAX: Final = 0.2
_TAIL_SHARE_MAX: Final = 0.2


class _DenseSnapshot(Struct, frozen=True, kw_only=True):
    """The index as opened; replaced as a whole, so that a search never mixes two versions."""

    digest: str
    """Of the manifest; empty for an index in memory."""
    manifest: DenseManifest | None
    marks: tuple[FileMark, ...]
    """Of the segments' files, with their current stat; a copy's differs from the manifest's."""
    segments: tuple[Segment, ...]
    position: LogPosition

    @property
    def has_new_marks(self) -> bool:
        """Whether the files' stat differs from the manifest's."""
        return bool(self.manifest and self.manifest.marks(with_graph=False) != self.marks)


class DenseIndex:
    """Vectors of one model under `folder`, following the store's log.

    With `mode` auto it uses a graph from `crossover_rows` live rows on. `ef` is HNSW's breadth of
    search; if it is at least the row count, the hits equal those of the exact scan.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: str,
        dim: int,
        *,
        mode: DenseMode = "auto",
        crossover_rows: int = CROSSOVER_ROWS,
        ef: int = _EF,
    ) -> None:
        self.name = "dense"
        self.folder = folder / folder_name(fingerprint)
        self.lock_path = self.folder / "lock"
        self.level_at: log_follower.LevelMark | None = None
        self.fingerprint = fingerprint
        self.dim = dim
        self._mode = mode
        self._crossover_rows = crossover_rows
        self._ef = ef
        self._snapshot: _DenseSnapshot | None = None
        self._graph: tuple[GraphEntry, Graph | None] | None = None
        self._graph_lock = Lock()
        self._is_damaged = False
        self._manifest = KeptFile(
            manifest_path(self.folder), lambda: load_manifest(self.folder, fingerprint, dim)
        )

    def catch_up(
        self, store: Store, *, wait_s: float, rebuild: bool = False, commit: int | None = None
    ) -> CatchUpReport:
        """Bring the index up to date with the store; the report says if and why it is behind.

        Waits `wait_s` for another process that does the same. Damaged, missing or foreign files
        and a truncated log lead to a rebuild, as does `rebuild`. Raises only the store's errors.
        """
        rebuild = rebuild or self._is_damaged
        report = log_follower.catch_up(self, store, wait_s, rebuild=rebuild, commit=commit)
        self._is_damaged = self._is_damaged and not report.rebuilt
        return report

    def is_level(self, store: Store) -> bool:
        """Whether its files are as they were written, and up to date; opens none of them.

        On a home that machines share it never is: each has to say how far it is.
        """
        if store.node or self._is_damaged:
            return False
        loaded = load_manifest(self.folder, self.fingerprint, self.dim)
        if loaded is None:
            return False
        manifest = loaded[1]
        position = LogPosition(watermark=manifest.watermark, tail=manifest.tail)
        is_level = log_follower.is_up_to_date(store, position)
        return is_level and stats_match(self.folder, manifest.marks(with_graph=True))

    def search(
        self,
        query: "Matrix",
        limit: int,
        *,
        allowed: frozenset[int] | None = None,
        restrict_nos: frozenset[int] | None = None,
    ) -> IndexHits:
        """The `limit` chunks nearest to the query (shape (dim,)) by cosine.

        `allowed` has the numbers of the sources and `restrict_nos` those of the chunks that may be
        found; None is all. Filters apply before the limit.
        """
        snapshot = self._ensure_open()
        unit_query = scan.unit_vector(query)
        if snapshot is None or unit_query is None or limit < 1 or not snapshot.segments:
            return NO_HITS
        parts = list(snapshot.segments)
        if allowed is None and restrict_nos is None and self._uses_graph(snapshot):
            loaded = self._loaded_graph(snapshot)
            if loaded is not None:
                return scan.rank_by_graph(parts, *loaded, unit_query, limit)
        rows = scan.candidate_rows(
            parts, unit_query, limit, _to_array(allowed), _to_array(restrict_nos)
        )
        return scan.rank_exact(parts, rows, unit_query, limit)

    def vectors(self, nos: "list[int]") -> "tuple[Matrix, NDArray[np.bool_]]":
        """Vectors of chunks, each of length 1 or zero if missing, and a mask of those present.

        Shapes (len(nos), dim) and (len(nos),).
        """
        import numpy as np

        chunk_nos = np.asarray(nos, dtype=np.uint64)
        matrix = np.zeros((len(nos), self.dim), dtype=np.float32)
        present = np.zeros(len(nos), dtype=np.bool_)
        snapshot = self._ensure_open()
        for segment in snapshot.segments if snapshot else ():
            rows, is_present = segment.find(chunk_nos)
            if is_present.all():
                return segment.vectors.take(rows, axis=0), is_present
            matrix[is_present] = segment.vectors.take(rows[is_present], axis=0)
            present |= is_present
        return matrix, present

    def rows(self) -> "tuple[Numbers, Numbers]":
        """The number and the source of each live row; each chunk has one."""
        import numpy as np

        snapshot = self._ensure_open()
        parts = snapshot.segments if snapshot else ()
        none = np.empty(0, dtype="<u8")
        nos = np.concatenate([none, *(part.nos[part.sources != 0] for part in parts)])
        return nos, np.concatenate([none, *(part.sources[part.sources != 0] for part in parts)])

    @property
    def count(self) -> int:
        """Live rows."""
        snapshot = self._ensure_open()
        return sum(segment.live_rows for segment in snapshot.segments) if snapshot else 0

    @property
    def in_memory(self) -> bool:
        """Whether it exists only in memory, because nothing can be written."""
        return self._snapshot is not None and self._snapshot.manifest is None

    @property
    def has_new_marks(self) -> bool:
        """Whether the open files have another stat than recorded; see FollowingIndex."""
        return self._snapshot is not None and self._snapshot.has_new_marks

    def stats(self) -> IndexStats:
        """The size of the index, as this process has it open."""
        snapshot = self._ensure_open()
        manifest = snapshot.manifest if snapshot else None
        entries = manifest.segments if manifest else ()
        graph = manifest.graph if manifest else None
        return IndexStats(
            watermark=snapshot.position.watermark if snapshot else -1,
            rows=self.count,
            dead_rows=sum(entry.dead for entry in entries),
            segments=len(snapshot.segments) if snapshot else 0,
            size_bytes=sum(mark.size_bytes for entry in entries for mark in entry.marks),
            mode="hnsw" if snapshot and graph and self._uses_graph(snapshot) else "exact",
            in_memory=self.in_memory,
        )

    def verify(self) -> list[str]:
        """Read every byte and list the damaged files; the next catch-up rebuilds them."""
        loaded = load_manifest(self.folder, self.fingerprint, self.dim)
        if loaded is None:
            return ["dense: its manifest is missing or damaged"]
        manifest = loaded[1]
        problems = damaged_files(self.folder, manifest)
        self._is_damaged = self._is_damaged or bool(problems)
        graph = manifest.graph
        if graph and not content_matches(self.folder, graph.file, by_hash=True):
            # Searches do not depend on it: it is checked before each load, and rebuilt.
            problems.append(graph.file.name)
        return [f"dense: {problem}" for problem in problems]

    def merge(self, *, wait_s: float) -> str | None:
        """Compact segments, and rebuild the graph where one is wanted and is missing or outdated.

        A segment is compacted if over a fifth of its rows are dead. A graph is outdated if over a
        fifth of all rows are newer, or its segment is to be compacted. Returns an error, or None.
        """
        return self._maintain(wait_s, force=False)

    def build_hnsw(self, *, wait_s: float) -> str | None:
        """Merge all rows into one segment and build a graph over it, in any mode.

        Takes about 0.4 ms a row; searches continue meanwhile. Returns an error, or None.
        """
        if not hnsw.is_available():
            return f"hnswlib is not installed: {hnsw.how_to_get()}"
        return self._maintain(wait_s, force=True)

    def close(self) -> None:
        """Release the files."""
        self._snapshot = None
        self._graph = None

    # The methods of FollowingIndex.

    def concerns(self, entry: LogEntry) -> bool:
        """Whether an entry changes vectors; see FollowingIndex."""
        return entry.vectors

    def chunk_numbers(self, txn: ReadTxn) -> list[int]:
        """The numbers of all chunks; see FollowingIndex."""
        return list(chunks.all_numbers(txn))

    @property
    def watermark(self) -> int:
        """The last log entry that the index holds, by its manifest; 0 without one. Opens none."""
        loaded = load_manifest(self.folder, self.fingerprint, self.dim)
        if self.in_memory and self._snapshot is not None:
            return self._snapshot.position.watermark
        return loaded[1].watermark if loaded else 0

    def refresh(self) -> LogPosition | None:
        """Map the files that the manifest names, unless they are mapped; see FollowingIndex."""
        loaded = self._manifest.read()
        if loaded is None:
            if not self.in_memory:
                self._snapshot = None
            return self._snapshot.position if self._snapshot else None
        digest, manifest = loaded
        snapshot = self._snapshot
        if snapshot and snapshot.digest == digest and stats_match(self.folder, snapshot.marks):
            return snapshot.position
        mapped = snapshot.segments if snapshot and snapshot.digest != digest else ()
        # Assigned once, at the end: other threads search meanwhile.
        self._snapshot = self._map(digest, manifest, mapped)
        return self._snapshot.position if self._snapshot else None

    def _map(
        self, digest: str, manifest: DenseManifest, mapped: tuple[Segment, ...]
    ) -> _DenseSnapshot | None:
        current = [current_mark(self.folder, mark) for mark in manifest.marks(with_graph=False)]
        marks = tuple(mark for mark in current if mark is not None)
        if len(marks) < len(current):
            return None
        try:
            parts = map_segments(self.folder, manifest, mapped)
        except CacheDamaged:
            return None
        position = LogPosition(watermark=manifest.watermark, tail=manifest.tail)
        return _DenseSnapshot(
            digest=digest, manifest=manifest, marks=marks, segments=parts, position=position
        )

    def apply(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Replace the rows of these chunks; see FollowingIndex."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.manifest is None:
            raise CacheDamaged("the index is not open")
        with self._cleaning_up():
            graph = snapshot.manifest.graph
            parts = list(snapshot.segments)
            if nos:
                rows = _concatenate([*self._windows(store, nos)], self.dim)
                pinned = graph.segment if graph else None
                parts = replace_rows(self.folder, parts, rows, pinned, self.dim)
            self._record(parts, graph, position)

    def rebuild(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Write all rows as one new segment; see FollowingIndex."""
        with self._cleaning_up():
            with SegmentWriter(self.folder, self.dim) as writer:
                for rows in self._windows(store, nos):
                    writer.append(without_dead_rows(rows))
            segment = writer.finish()
            self._record([segment] if segment.live_rows else [], None, position)

    def record_marks(self) -> None:
        """Record the current marks; see FollowingIndex."""
        snapshot = self._snapshot
        if snapshot is not None and snapshot.manifest is not None:
            write_manifest(self.folder, with_marks(snapshot.manifest, snapshot.marks))
            self.refresh()

    def build_in_memory(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Build all rows in memory; see FollowingIndex."""
        rows = _concatenate(
            [without_dead_rows(rows) for rows in self._windows(store, nos)], self.dim
        )
        self._snapshot = _DenseSnapshot(
            digest="", manifest=None, marks=(), segments=(rows,), position=position
        )

    def _windows(self, store: Store, nos: list[int]) -> Iterator[Segment]:
        for txn, window in log_follower.read_windows(store, nos):
            yield read_rows(txn, window, self.fingerprint, self.dim)

    def _record(
        self, parts: list[Segment], graph: GraphEntry | None, position: LogPosition
    ) -> None:
        tokens = {segment_token(part) for part in parts}
        manifest = DenseManifest(
            schema=SCHEMA_VERSION,
            metric=METRIC,
            fingerprint=self.fingerprint,
            dim=self.dim,
            watermark=position.watermark,
            tail=position.tail,
            segments=tuple(part.entry for part in parts if part.entry),
            graph=graph if graph and graph.segment in tokens else None,
        )
        digest = write_manifest(self.folder, manifest)
        self._snapshot = _DenseSnapshot(
            digest=digest,
            manifest=manifest,
            marks=manifest.marks(with_graph=False),
            segments=tuple(parts),
            position=position,
        )

    @contextmanager
    def _cleaning_up(self) -> Iterator[None]:
        """Remove half-written files when a write fails."""
        try:
            yield
        except OSError:
            loaded = load_manifest(self.folder, self.fingerprint, self.dim)
            remove_unnamed_files(self.folder, loaded[1] if loaded else None)
            raise

    def _ensure_open(self) -> _DenseSnapshot | None:
        if self._snapshot is None:
            self.refresh()
        return self._snapshot

    def _uses_graph(self, snapshot: _DenseSnapshot) -> bool:
        match self._mode:
            case "exact":
                return False
            case "hnsw":
                return hnsw.is_available()
            case "auto":
                rows = sum(part.live_rows for part in snapshot.segments)
                return rows >= self._crossover_rows and hnsw.is_available()
            case _:
                assert_never(self._mode)

    def _loaded_graph(self, snapshot: _DenseSnapshot) -> tuple[Segment, Graph] | None:
        """The graph and its segment; None where there is none or it is damaged."""
        entry = snapshot.manifest.graph if snapshot.manifest else None
        if entry is None:
            return None
        base = next(part for part in snapshot.segments if segment_token(part) == entry.segment)
        with self._graph_lock:
            if self._graph is None or self._graph[0] != entry:
                self._graph = (entry, hnsw.load(self.folder, entry, base, self._ef))
            graph = self._graph[1]
        return (base, graph) if graph else None

    def _maintain(self, wait_s: float, *, force: bool) -> str | None:
        try:
            with file_lock(self.lock_path, wait_s):
                position = self.refresh()
                snapshot = self._snapshot
                if position is None or snapshot is None or snapshot.manifest is None:
                    return "the dense cache does not exist yet; a search makes it"
                with self._cleaning_up():
                    self._rewrite(snapshot, snapshot.manifest, position, force=force)
        except (OSError, StoreBusy) as error:
            return str(error)
        return None

    def _rewrite(
        self,
        snapshot: _DenseSnapshot,
        manifest: DenseManifest,
        position: LogPosition,
        *,
        force: bool,
    ) -> None:
        parts, graph = list(snapshot.segments), manifest.graph
        if parts and (force or (self._uses_graph(snapshot) and self._is_graph_outdated(snapshot))):
            base = write_merged(self.folder, parts, self.dim)
            graph = hnsw.build(self.folder, base)
            self._record([base], graph, position)
            return
        # A graph that no search uses keeps no dead rows.
        pinned = graph.segment if graph and self._uses_graph(snapshot) else None
        to_compact = [_has_many_dead(part) and segment_token(part) != pinned for part in parts]
        if any(to_compact):
            pairs = zip(parts, to_compact, strict=True)
            parts = [write_merged(self.folder, [p], self.dim) if w else p for p, w in pairs]
            self._record(parts, graph, position)

    def _is_graph_outdated(self, snapshot: _DenseSnapshot) -> bool:
        loaded = self._loaded_graph(snapshot)
        if loaded is None:
            return True
        total = sum(part.live_rows for part in snapshot.segments)
        return total - loaded[0].live_rows > _TAIL_SHARE_MAX * total or _has_many_dead(loaded[0])


def _has_many_dead(part: Segment) -> bool:
    return len(part.nos) - part.live_rows > _DEAD_SHARE_MAX * len(part.nos)


def _to_array(values: frozenset[int] | None) -> "Numbers | None":
    import numpy as np

    return None if values is None else np.fromiter(values, dtype=np.uint64, count=len(values))


def _concatenate(windows: list[Segment], dim: int) -> Segment:
    """Windows of rows in memory as one segment; numbers ascend over all windows."""
    import numpy as np

    none = np.empty(0, dtype="<u8")
    return memory_segment(
        np.concatenate([none, *(rows.nos for rows in windows)]),
        np.concatenate([none, *(rows.sources for rows in windows)]),
        np.concatenate([np.empty((0, dim), dtype="<f4"), *(rows.vectors for rows in windows)]),
    )
