"""A lexical index: BM25 over the docs of one audience, on tantivy."""

# Long because searching, following the log and repairing share one snapshot of the files.

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import StoreDamaged
from kb.model.doc import Audience
from kb.model.job import LogEntry
from kb.search.index import log_follower
from kb.search.index.analysis import ANALYSIS_VERSION, query_words
from kb.search.index.files import CacheDamaged, FileMark, KeptFile, current_mark, stats_match
from kb.search.index.hits import NO_HITS, IndexHits, IndexStats
from kb.search.index.idf import TermFrequencies, idf_factors, score_ceiling
from kb.search.index.lexical_files import (
    DEAD_SHARE_MAX,
    LexicalManifest,
    damaged_files,
    drop_other_generations,
    folder_of,
    generation_path,
    load_manifest,
    lock_path,
    manifest_path,
    read_meta,
    write_manifest,
)
from kb.search.index.lexical_query import Holding, build_query, restrict_to, unchanged_weight
from kb.search.index.lexical_tantivy import (
    all_rows,
    always,
    best_hits,
    create_index,
    engine_errors,
    first_holders,
    holders,
    open_index,
    term_frequencies,
    write_chunks,
)
from kb.search.index.log_follower import CatchUpReport, LogPosition
from kb.store import chunks, docs
from kb.store.content.durable import fsync_folder
from kb.store.kv import ReadTxn
from kb.store.store import Store

if TYPE_CHECKING:
    from tantivy import Index, Query, Searcher

# A filter with more values than this is applied to the hits instead of being part of the query.
_FILTER_VALUES_MAX: Final = 4_096
# What a doc's name counts if it is the query, as a share of the highest score of a body.
_CALLED_SHARE: Final = 0.75
_REPAIR_WAIT_S: Final = 5.0


class _LexicalSnapshot(Struct, frozen=True, kw_only=True):
    """The index as opened; replaced as a whole, so that a search never mixes two versions."""

    digest: str
    """Of the manifest; empty for an index in memory."""
    manifest: LexicalManifest | None
    marks: tuple[FileMark, ...]
    """Of the files, with their current stat; a copy's differs from the manifest's."""
    index: "Index"
    searcher: "Searcher"
    frequencies: TermFrequencies | None
    """None for an index without rows."""
    position: LogPosition

    @property
    def has_new_marks(self) -> bool:
        """Whether the files' stat differs from the manifest's."""
        return bool(self.manifest and self.manifest.files != self.marks)


class LexicalIndex:
    """The words of titles and chunks of one audience, following the store's log.

    Its files are in a folder of its own under `folder`.
    """

    def __init__(self, folder: Path, audience: Audience) -> None:
        self.name = "lexical"
        self.audience = audience
        self.folder = folder_of(folder, audience)
        self.lock_path = lock_path(self.folder)
        self.level_at: log_follower.LevelMark | None = None
        self._snapshot: _LexicalSnapshot | None = None
        self._store: Store | None = None
        self._is_damaged = False
        self._manifest = KeptFile(
            manifest_path(self.folder), lambda: load_manifest(self.folder, audience)
        )

    def catch_up(
        self, store: Store, *, wait_s: float, rebuild: bool = False, commit: int | None = None
    ) -> CatchUpReport:
        """Bring the index up to date with the store; the report says if and why it is behind.

        Waits `wait_s` for another process that does the same. Damaged, missing or foreign files
        and a truncated log lead to a rebuild, as does `rebuild`. Raises only the store's errors.
        """
        self._store = store
        rebuild = rebuild or self._is_damaged
        report = log_follower.catch_up(self, store, wait_s, rebuild=rebuild, commit=commit)
        self._is_damaged = self._is_damaged and not report.rebuilt
        return report

    def is_level(self, store: Store) -> bool:
        """Whether its files are as they were written, and up to date; opens none of them."""
        loaded = load_manifest(self.folder, self.audience)
        if loaded is None or loaded[1].analysis != ANALYSIS_VERSION or self._is_damaged:
            return False
        manifest = loaded[1]
        path = generation_path(self.folder, manifest.generation)
        position = LogPosition(watermark=manifest.watermark, tail=manifest.tail)
        is_level = log_follower.is_up_to_date(store, position)
        return is_level and stats_match(path, manifest.files)

    @property
    def is_worn(self) -> bool:
        """Whether so many of its rows are dead that `compact` would write it anew."""
        loaded = load_manifest(self.folder, self.audience)
        return loaded is not None and loaded[1].is_stale(DEAD_SHARE_MAX)

    def search(
        self,
        query: str,
        limit: int,
        *,
        allowed: frozenset[int] | None = None,
        restrict_nos: frozenset[int] | None = None,
    ) -> IndexHits:
        """The best `limit` chunks that contain any of the query's words.

        `allowed` has the numbers of the sources and `restrict_nos` those of the chunks that may be
        found; None is all. Filters apply before the limit. No input raises.
        """
        try:
            return self.search_or_raise(query, limit, allowed, restrict_nos)
        except CacheDamaged:
            self.repair()
        try:
            return self.search_or_raise(query, limit, allowed, restrict_nos)
        except CacheDamaged:
            return NO_HITS

    def holders(self, wanted: Holding, field: str, limit: int | None = None) -> frozenset[int]:
        """The numbers in `field` of chunks that hold what is wanted; none from a damaged index."""
        try:
            snapshot = self._ensure_open()
            if snapshot is None:
                return frozenset()
            with engine_errors():
                query = wanted(snapshot.index.schema)
                return holders(snapshot.searcher, query, field, limit) if query else frozenset()
        except CacheDamaged:
            return frozenset()

    def first_holders(self, wanted: Holding, count: int) -> list[int]:
        """The lowest `count` numbers of chunks that hold what is wanted; else as `holders`."""
        try:
            snapshot = self._ensure_open()
            if snapshot is None:
                return []
            with engine_errors():
                query = wanted(snapshot.index.schema)
                return first_holders(snapshot.searcher, query, count) if query else []
        except CacheDamaged:
            return []

    def rows(self) -> dict[int, int]:
        """The source of each chunk, by number; none from a damaged index."""
        try:
            snapshot = self._ensure_open()
            if snapshot is None:
                return {}
            with engine_errors():
                return all_rows(snapshot.searcher)
        except CacheDamaged:
            return {}

    def repair(self) -> None:
        """Rebuild the index, after a CacheDamaged."""
        if self._store is not None:
            self.catch_up(self._store, wait_s=_REPAIR_WAIT_S, rebuild=True)

    def frequencies(self) -> TermFrequencies | None:
        """The term frequencies; None for an empty index. Its functions may raise CacheDamaged."""
        snapshot = self._ensure_open()
        return snapshot.frequencies if snapshot else None

    def search_or_raise(
        self,
        query: str,
        limit: int,
        allowed: frozenset[int] | None,
        restrict_nos: frozenset[int] | None,
        joint: TermFrequencies | None = None,
    ) -> IndexHits:
        """As `search`; `joint` are the frequencies of several indexes that are searched together.

        Raises CacheDamaged.
        """
        snapshot = self._ensure_open()
        if snapshot is None or limit < 1 or allowed == frozenset() or restrict_nos == frozenset():
            return NO_HITS
        filters = {"source_no": allowed, "no": restrict_nos}
        with engine_errors():
            tantivy_query = self._query(snapshot, query, joint)
            if tantivy_query is None:
                return NO_HITS
            post_filters: dict[str, frozenset[int]] = {}
            for field, values in filters.items():
                if values is not None and len(values) > _FILTER_VALUES_MAX:
                    post_filters[field] = values
                else:
                    tantivy_query = restrict_to(snapshot.index.schema, tantivy_query, field, values)
            return best_hits(snapshot.searcher, tantivy_query, limit, post_filters)

    def _query(
        self, snapshot: _LexicalSnapshot, query: str, joint: TermFrequencies | None
    ) -> "Query | None":
        own = snapshot.frequencies
        if own is None:
            return None
        return build_query(
            snapshot.index.schema,
            (joint or own).has_term,
            query,
            idf_factors(own, joint) if joint else unchanged_weight,
            _CALLED_SHARE * score_ceiling(joint or own, query_words(query)),
        )

    def _ensure_open(self) -> _LexicalSnapshot | None:
        if self._snapshot is None:
            self.refresh()
        return self._snapshot

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
        snapshot = self._snapshot
        manifest = snapshot.manifest if snapshot else None
        return IndexStats(
            watermark=snapshot.position.watermark if snapshot else -1,
            rows=snapshot.searcher.num_docs if snapshot else 0,
            dead_rows=manifest.stale_rows if manifest else 0,
            segments=snapshot.searcher.num_segments if snapshot else 0,
            size_bytes=sum(mark.size_bytes for mark in manifest.files) if manifest else 0,
            mode="bm25",
            in_memory=self.in_memory,
        )

    def verify(self) -> list[str]:
        """Read every byte and list what is damaged; the next catch-up rebuilds it."""
        loaded = load_manifest(self.folder, self.audience)
        if loaded is None:
            return ["lexical: its manifest is missing or damaged"]
        problems = damaged_files(self.folder, loaded[1], by_hash=True)
        self._is_damaged = self._is_damaged or bool(problems)
        return [f"lexical: {problem}" for problem in problems]

    def compact(
        self,
        store: Store,
        *,
        wait_s: float,
        dead_share_max: float = DEAD_SHARE_MAX,
        should_continue: Callable[[], bool] = always,
    ) -> str | None:
        """Rewrite the index without dead rows if these are over a share of its rows.

        See kb/search/index/compaction.py. Returns an error, or None.
        """
        # Imported late: a search compacts nothing.
        from kb.search.index.compaction import compact

        return compact(
            self,
            store,
            wait_s=wait_s,
            dead_share_max=dead_share_max,
            should_continue=should_continue,
        )

    @property
    def manifest(self) -> LexicalManifest | None:
        """Of the open index; None where none is open, or only in memory."""
        return self._snapshot.manifest if self._snapshot else None

    def close(self) -> None:
        """Release the files."""
        self._snapshot = None

    # The methods of FollowingIndex.

    def concerns(self, entry: LogEntry) -> bool:
        """Whether an entry changes words; see FollowingIndex."""
        return entry.words

    def chunk_numbers(self, txn: ReadTxn) -> list[int]:
        """The numbers of the audience's chunks; see FollowingIndex."""
        if docs.audiences(txn) == (self.audience,):
            return list(chunks.all_numbers(txn))
        nos: list[int] = []
        for source_no in docs.with_facet(txn, "audience", self.audience):
            try:
                nos += chunks.numbers_of(txn, source_no)
            except StoreDamaged:
                # One unreadable record must not hide all others; `kb check` reports it.
                continue
        return sorted(nos)

    @property
    def watermark(self) -> int:
        """The last log entry that the index holds, by its manifest; 0 without one. Opens none."""
        loaded = load_manifest(self.folder, self.audience)
        if self.in_memory and self._snapshot is not None:
            return self._snapshot.position.watermark
        return loaded[1].watermark if loaded else 0

    def refresh(self) -> LogPosition | None:
        """Open the generation that the manifest names, unless it is open; see FollowingIndex."""
        snapshot = self._snapshot
        loaded = self._manifest.read()
        if loaded is None or loaded[1].analysis != ANALYSIS_VERSION:
            if not self.in_memory:
                self._snapshot = None
            return self._snapshot.position if self._snapshot else None
        digest, manifest = loaded
        path = generation_path(self.folder, manifest.generation)
        if snapshot and snapshot.digest == digest and stats_match(path, snapshot.marks):
            return snapshot.position
        # Assigned once, at the end: other threads search meanwhile.
        self._snapshot = self._open(path, digest, manifest)
        return self._snapshot.position if self._snapshot else None

    def _open(self, path: Path, digest: str, manifest: LexicalManifest) -> _LexicalSnapshot | None:
        current = [current_mark(path, mark) for mark in manifest.files]
        # A file that differs from the manifest may be of a newer commit, which is no damage.
        if None in current and damaged_files(self.folder, manifest, by_hash=False):
            return None
        position = LogPosition(watermark=manifest.watermark, tail=manifest.tail)
        marks = tuple(new or old for new, old in zip(current, manifest.files, strict=True))
        try:
            return _make_snapshot(open_index(path), digest, manifest, marks, position)
        except CacheDamaged:
            return None

    def apply(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Delete and add these chunks again; see FollowingIndex."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.manifest is None:
            raise CacheDamaged("the index is not open")
        manifest = snapshot.manifest
        path = generation_path(self.folder, manifest.generation)
        before, added = read_meta(path), 0
        if nos:
            with engine_errors():
                added = write_chunks(snapshot.index, store, nos, self.audience, replace=True)
        # A commit without a manifest, of a killed process, removed an unknown number of rows.
        uncounted = int(before.opstamp != manifest.opstamp)
        dead = before.rows + added - read_meta(path).rows
        self.record(manifest.generation, position, removed=manifest.removed + dead + uncounted)

    def rebuild(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Write a new generation, then switch to it; see FollowingIndex."""
        import secrets

        generation = secrets.token_hex(8)
        path = generation_path(self.folder, generation)
        path.mkdir(mode=0o700)
        try:
            with engine_errors():
                index = create_index(path)
                write_chunks(index, store, nos, self.audience, replace=False)
                del index
            fsync_folder(self.folder)
            self.record(generation, position, removed=0)
        finally:
            current = load_manifest(self.folder, self.audience)
            drop_other_generations(self.folder, current[1].generation if current else "")

    def record_marks(self) -> None:
        """Record the current marks; see FollowingIndex."""
        snapshot = self._snapshot
        if snapshot is not None and snapshot.manifest is not None:
            manifest = snapshot.manifest
            self.record(manifest.generation, snapshot.position, removed=manifest.removed)

    def build_in_memory(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Build the index in memory; see FollowingIndex."""
        with engine_errors():
            index = create_index(None)
            write_chunks(index, store, nos, self.audience, replace=False)
            self._snapshot = _make_snapshot(index, "", None, (), position)

    def record(
        self,
        generation: str,
        position: LogPosition,
        *,
        removed: int,
        hashes: Mapping[str, str] | None = None,
    ) -> None:
        """Write a manifest for a generation as it is now, and open it."""
        write_manifest(
            self.folder,
            generation,
            position,
            audience=self.audience,
            analysis=ANALYSIS_VERSION,
            removed=removed,
            hashes=hashes,
        )
        self.refresh()


def _make_snapshot(
    index: "Index",
    digest: str,
    manifest: LexicalManifest | None,
    marks: tuple[FileMark, ...],
    position: LogPosition,
) -> _LexicalSnapshot:
    with engine_errors():
        searcher = index.searcher()
        return _LexicalSnapshot(
            digest=digest,
            manifest=manifest,
            marks=marks,
            index=index,
            searcher=searcher,
            frequencies=term_frequencies(index, searcher, manifest.dead_rows if manifest else 0),
            position=position,
        )
