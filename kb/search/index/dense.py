"""The dense cache: vectors of passages, scanned exactly or, past a size, by a graph."""

# Long because searches, the log and compaction ask one object, which has one set of files.

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal, assert_never

from msgspec import Struct

from kb.errors import StoreBusy
from kb.model.job import LogEntry
from kb.search.index import follow, hnsw, scan
from kb.search.index.dense_files import (
    METRIC,
    SCHEMA_VERSION,
    DenseManifest,
    findings,
    folder_name,
    live_only,
    load_manifest,
    map_segments,
    marked_again,
    read_rows,
    replaced,
    sweep,
    token_of,
    write_manifest,
)
from kb.search.index.files import CacheDamaged, FileMark, intact, settled, untouched
from kb.search.index.follow import CatchUp, Place
from kb.search.index.hnsw import Graph, GraphEntry
from kb.search.index.lock import file_lock
from kb.search.index.result import NO_HITS, CacheStats, Hits
from kb.search.index.segments import Segment, SegmentWriter, in_memory, write_merged
from kb.search.index.threads import run_async
from kb.store import chunks
from kb.store.kv import ReadTxn
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.index.segments import Matrix, Numbers

DenseMode = Literal["auto", "exact", "hnsw"]
# See docs/adr/0003: below it a scan takes under 70 ms, a graph longer than that to load.
CROSSOVER_ROWS: Final = 1_000_000
_EF: Final = 256
_DEAD_SHARE_MAX: Final = 0.2
_TAIL_SHARE_MAX: Final = 0.2


class _View(Struct, frozen=True, kw_only=True):
    """The cache opened once; replaced as a whole, so that a search never sees a half of two."""

    digest: str
    """Of the manifest; empty for a cache in memory."""
    manifest: DenseManifest | None
    marks: tuple[FileMark, ...]
    """How a stat knows the segments' files, which the manifest may not say after a copy."""
    segments: tuple[Segment, ...]
    place: Place

    @property
    def has_moved(self) -> bool:
        """Whether the files are not known by what the manifest says of them."""
        return bool(self.manifest and self.manifest.marks(with_graph=False) != self.marks)


class DenseIndex:
    """Vectors of one model under `folder`, following the store's log.

    `mode` auto uses a graph from `crossover_rows` live rows on; `ef` is the graph's breadth of
    search, and from the row count on its answers are those of the exact scan.
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
        self.fingerprint = fingerprint
        self.dim = dim
        self._mode = mode
        self._crossover_rows = crossover_rows
        self._ef = ef
        self._view: _View | None = None
        self._graph: tuple[GraphEntry, Graph | None] | None = None
        self._graph_lock = Lock()
        self._unsound = False

    def catch_up(self, store: Store, *, wait_s: float, rebuild: bool = False) -> CatchUp:
        """Bring the cache level with the store, or say in the outcome why it is not.

        Waits `wait_s` for another process that is at it. Damaged, missing or foreign files and a
        log cut short lead to a rebuild, as does `rebuild`. Raises only the store's own errors.
        """
        outcome = follow.catch_up(self, store, wait_s, anew=rebuild or self._unsound)
        self._unsound = self._unsound and not outcome.rebuilt
        return outcome

    def search(
        self,
        query: "Matrix",
        limit: int,
        *,
        allowed: frozenset[int] | None = None,
        restrict_nos: frozenset[int] | None = None,
    ) -> Hits:
        """The `limit` passages nearest to the query (shape (dim,)) by cosine.

        `allowed` names the sources and `restrict_nos` the passages that may be found; None is
        all. As many as there are survive, however few they let through.
        """
        view = self._opened()
        asked = scan.unit(query)
        if view is None or asked is None or limit < 1 or not view.segments:
            return NO_HITS
        parts = list(view.segments)
        if allowed is None and restrict_nos is None and self._uses_graph(view):
            loaded = self._loaded_graph(view)
            if loaded is not None:
                return scan.rank_by_graph(parts, *loaded, asked, limit)
        rows = scan.candidate_rows(parts, asked, limit, _numbers(allowed), _numbers(restrict_nos))
        return scan.rank(parts, rows, asked, limit)

    def vectors(self, nos: "list[int]") -> "tuple[Matrix, NDArray[np.bool_]]":
        """Vectors of length 1, shape (len(nos), dim), zero where missing; and which are there."""
        import numpy as np

        wanted = np.asarray(nos, dtype=np.uint64)
        matrix = np.zeros((len(nos), self.dim), dtype=np.float32)
        present = np.zeros(len(nos), dtype=np.bool_)
        view = self._opened()
        for segment in view.segments if view else ():
            rows, there = segment.find(wanted)
            if there.all():
                return segment.vectors[rows], there
            matrix[there] = segment.vectors[rows[there]]
            present |= there
        return matrix, present

    @property
    def count(self) -> int:
        """Live rows."""
        view = self._opened()
        return sum(segment.live_rows for segment in view.segments) if view else 0

    @property
    def in_memory(self) -> bool:
        """Whether it is held in memory alone, for want of a place to write."""
        return self._view is not None and self._view.manifest is None

    @property
    def has_moved(self) -> bool:
        """Whether a stat did not know the files that are open; see follow.Cache."""
        return self._view is not None and self._view.has_moved

    def stats(self) -> CacheStats:
        """How large the cache is, as this process has it open."""
        view = self._opened()
        manifest = view.manifest if view else None
        entries = manifest.segments if manifest else ()
        graph = manifest.graph if manifest else None
        return CacheStats(
            watermark=view.place.watermark if view else -1,
            rows=self.count,
            dead_rows=sum(entry.dead for entry in entries),
            segments=len(view.segments) if view else 0,
            size_bytes=sum(mark.size_bytes for entry in entries for mark in entry.marks),
            mode="hnsw" if view and graph and self._uses_graph(view) else "exact",
            in_memory=self.in_memory,
        )

    def verify(self) -> list[str]:
        """Read every byte again and say what is not as written; the next catch-up rebuilds it."""
        found = load_manifest(self.folder, self.fingerprint, self.dim)
        if found is None:
            return ["dense: there is no sound manifest"]
        manifest = found[1]
        problems = findings(self.folder, manifest)
        self._unsound = self._unsound or bool(problems)
        graph = manifest.graph
        if graph and not intact(self.folder, graph.file, by_hash=True):
            # Not needed for a right answer: it is checked before each load, and made again.
            problems.append(graph.file.name)
        return [f"dense: {problem}" for problem in problems]

    def verify_async(self) -> "Future[list[str]]":
        """As `verify`, in a thread of its own."""
        return run_async(self.verify)

    def merge(self, *, wait_s: float) -> str | None:
        """Rewrite what is worn and make the graph where one is wanted and is missing or old.

        Worn is a segment of which over a fifth is dead; old a graph that a fifth of all rows
        came after, or whose segment is worn. Returns why not, or None.
        """
        return self._maintain(wait_s, anew=False)

    def build_hnsw(self, *, wait_s: float) -> str | None:
        """Make one segment of all rows and a graph over it, whatever the mode.

        Takes about 0.4 ms a row; searches go on meanwhile. Returns why not, or None.
        """
        return self._maintain(wait_s, anew=True)

    def close(self) -> None:
        """Let go of the files."""
        self._view = None
        self._graph = None

    # What follow.Cache asks for.

    def wants(self, entry: LogEntry) -> bool:
        """Entries about vectors."""
        return entry.vectors

    def numbers(self, txn: ReadTxn) -> list[int]:
        """Of every passage; see follow.Cache."""
        return list(chunks.all_numbers(txn))

    def refresh(self) -> Place | None:
        """Map what the manifest names, unless it is mapped; see follow.Cache."""
        found = load_manifest(self.folder, self.fingerprint, self.dim)
        if found is None:
            if not self.in_memory:
                self._view = None
            return self._view.place if self._view else None
        digest, manifest = found
        view = self._view
        if view and view.digest == digest and all(untouched(self.folder, m) for m in view.marks):
            return view.place
        known = view.segments if view and view.digest != digest else ()
        # Swapped once, at the end: other threads search meanwhile.
        self._view = self._mapped(digest, manifest, known)
        return self._view.place if self._view else None

    def _mapped(
        self, digest: str, manifest: DenseManifest, known: tuple[Segment, ...]
    ) -> _View | None:
        found = [settled(self.folder, mark) for mark in manifest.marks(with_graph=False)]
        marks = tuple(mark for mark in found if mark is not None)
        if len(marks) < len(found):
            return None
        try:
            parts = map_segments(self.folder, manifest, known)
        except CacheDamaged:
            return None
        place = Place(watermark=manifest.watermark, tail=manifest.tail)
        return _View(digest=digest, manifest=manifest, marks=marks, segments=parts, place=place)

    def apply(self, store: Store, nos: list[int], place: Place) -> None:
        """Replace the rows of these passages; see follow.Cache."""
        view = self._view
        if view is None or view.manifest is None:
            raise CacheDamaged("the index is not open")
        with self._swept():
            graph = view.manifest.graph
            parts = list(view.segments)
            if nos:
                rows = _joined([*self._windows(store, nos)], self.dim)
                pinned = graph.segment if graph else None
                parts = replaced(self.folder, parts, rows, pinned, self.dim)
            self._record(parts, graph, place)

    def rebuild(self, store: Store, nos: list[int], place: Place) -> None:
        """Write all rows as one new segment; see follow.Cache."""
        with self._swept():
            with SegmentWriter(self.folder, self.dim) as writer:
                for rows in self._windows(store, nos):
                    writer.append(live_only(rows))
            segment = writer.finish()
            self._record([segment] if segment.live_rows else [], None, place)

    def mark_again(self) -> None:
        """Record the marks of now; see follow.Cache."""
        view = self._view
        if view is not None and view.manifest is not None:
            write_manifest(self.folder, marked_again(view.manifest, view.marks))
            self.refresh()

    def hold_in_memory(self, store: Store, nos: list[int], place: Place) -> None:
        """Keep all rows in memory; see follow.Cache."""
        rows = _joined([live_only(rows) for rows in self._windows(store, nos)], self.dim)
        self._view = _View(digest="", manifest=None, marks=(), segments=(rows,), place=place)

    def _windows(self, store: Store, nos: list[int]) -> Iterator[Segment]:
        for txn, window in follow.windows(store, nos):
            yield read_rows(txn, window, self.fingerprint, self.dim)

    def _record(self, parts: list[Segment], graph: GraphEntry | None, place: Place) -> None:
        tokens = {token_of(part) for part in parts}
        manifest = DenseManifest(
            schema=SCHEMA_VERSION,
            metric=METRIC,
            fingerprint=self.fingerprint,
            dim=self.dim,
            watermark=place.watermark,
            tail=place.tail,
            segments=tuple(part.entry for part in parts if part.entry),
            graph=graph if graph and graph.segment in tokens else None,
        )
        digest = write_manifest(self.folder, manifest)
        self._view = _View(
            digest=digest,
            manifest=manifest,
            marks=manifest.marks(with_graph=False),
            segments=tuple(parts),
            place=place,
        )

    @contextmanager
    def _swept(self) -> Iterator[None]:
        """Give back the room of half-written files when a write fails."""
        try:
            yield
        except OSError:
            found = load_manifest(self.folder, self.fingerprint, self.dim)
            sweep(self.folder, found[1] if found else None)
            raise

    def _opened(self) -> _View | None:
        if self._view is None:
            self.refresh()
        return self._view

    def _uses_graph(self, view: _View) -> bool:
        match self._mode:
            case "exact":
                return False
            case "hnsw":
                return hnsw.available()
            case "auto":
                rows = sum(part.live_rows for part in view.segments)
                return rows >= self._crossover_rows and hnsw.available()
            case _:
                assert_never(self._mode)

    def _loaded_graph(self, view: _View) -> tuple[Segment, Graph] | None:
        """The graph and the segment it is of; None where there is none or it is damaged."""
        entry = view.manifest.graph if view.manifest else None
        if entry is None:
            return None
        base = next(part for part in view.segments if token_of(part) == entry.segment)
        with self._graph_lock:
            if self._graph is None or self._graph[0] != entry:
                self._graph = (entry, hnsw.load(self.folder, entry, base, self._ef))
            graph = self._graph[1]
        return (base, graph) if graph else None

    def _maintain(self, wait_s: float, *, anew: bool) -> str | None:
        try:
            with file_lock(self.lock_path, wait_s):
                place = self.refresh()
                view = self._view
                if place is None or view is None or view.manifest is None:
                    return "the dense cache is not there; search once to make it"
                with self._swept():
                    self._rewrite(view, view.manifest, place, anew=anew)
        except (OSError, StoreBusy) as error:
            return str(error)
        return None

    def _rewrite(self, view: _View, manifest: DenseManifest, place: Place, *, anew: bool) -> None:
        parts, graph = list(view.segments), manifest.graph
        if parts and (anew or (self._uses_graph(view) and self._graph_is_old(view))):
            base = write_merged(self.folder, parts, self.dim)
            graph = hnsw.build(self.folder, base)
            self._record([base], graph, place)
            return
        worn = [
            _is_worn(part) and not (graph and token_of(part) == graph.segment) for part in parts
        ]
        if any(worn):
            pairs = zip(parts, worn, strict=True)
            parts = [write_merged(self.folder, [p], self.dim) if w else p for p, w in pairs]
            self._record(parts, graph, place)

    def _graph_is_old(self, view: _View) -> bool:
        loaded = self._loaded_graph(view)
        if loaded is None:
            return True
        total = sum(part.live_rows for part in view.segments)
        return total - loaded[0].live_rows > _TAIL_SHARE_MAX * total or _is_worn(loaded[0])


def _is_worn(part: Segment) -> bool:
    return len(part.nos) - part.live_rows > _DEAD_SHARE_MAX * len(part.nos)


def _numbers(values: frozenset[int] | None) -> "Numbers | None":
    import numpy as np

    return None if values is None else np.fromiter(values, dtype=np.uint64, count=len(values))


def _joined(windows: list[Segment], dim: int) -> Segment:
    """Windows of rows in memory as one; their numbers ascend from each to the next."""
    import numpy as np

    none = np.empty(0, dtype="<u8")
    return in_memory(
        np.concatenate([none, *(rows.nos for rows in windows)]),
        np.concatenate([none, *(rows.sources for rows in windows)]),
        np.concatenate([np.empty((0, dim), dtype="<f4"), *(rows.vectors for rows in windows)]),
    )
