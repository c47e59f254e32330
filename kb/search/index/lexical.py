"""One lexical cache: BM25 over the words of the docs of one audience, on tantivy."""

import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import StoreDamaged
from kb.model.doc import Audience
from kb.model.job import LogEntry
from kb.search.index import follow
from kb.search.index.files import CacheDamaged, FileMark, fsync_folder, settled, untouched
from kb.search.index.follow import CatchUp, Place
from kb.search.index.joint import Frequencies, rarity
from kb.search.index.lexical_engine import (
    best,
    create_index,
    engine_errors,
    holds_term,
    on_and_on,
    open_index,
    write_passages,
)
from kb.search.index.lexical_files import (
    LexicalManifest,
    drop_other_generations,
    findings,
    folder_of,
    generation_path,
    load_manifest,
    lock_path,
    read_meta,
    write_manifest,
)
from kb.search.index.lexical_query import as_in_the_index, only_where, words_query
from kb.search.index.renewal import WORN_SHARE, renew
from kb.search.index.result import NO_HITS, CacheStats, Hits
from kb.search.index.threads import run_async
from kb.search.index.words import ANALYSIS_VERSION
from kb.store import chunks, docs
from kb.store.kv import ReadTxn
from kb.store.store import Store

if TYPE_CHECKING:
    from tantivy import Index, Query, Searcher

# Up to so many values a filter is part of the query; above, hits are filtered as they come.
_FILTER_VALUES_MAX: Final = 4_096
_REPAIR_WAIT_S: Final = 5.0


class _View(Struct, frozen=True, kw_only=True):
    """An index opened once; replaced as a whole, so that a search never sees a half of two."""

    digest: str
    """Of the manifest; empty for an index in memory."""
    manifest: LexicalManifest | None
    marks: tuple[FileMark, ...]
    """How a stat knows the files, which the manifest may not say after a copy."""
    index: "Index"
    searcher: "Searcher"
    place: Place

    @property
    def has_moved(self) -> bool:
        """Whether the files are not known by what the manifest says of them."""
        return bool(self.manifest and self.manifest.files != self.marks)


class LexicalIndex:
    """Words of titles and passages of one audience, following the store's log.

    It lies in a folder of its own under `folder`.
    """

    def __init__(self, folder: Path, audience: Audience) -> None:
        self.name = "lexical"
        self.audience = audience
        self.folder = folder_of(folder, audience)
        self.lock_path = lock_path(self.folder)
        self._view: _View | None = None
        self._store: Store | None = None
        self._unsound = False

    def catch_up(self, store: Store, *, wait_s: float, rebuild: bool = False) -> CatchUp:
        """Bring the cache level with the store, or say in the outcome why it is not.

        Waits `wait_s` for another process that is at it. Damaged, missing or foreign files and a
        log cut short lead to a rebuild, as does `rebuild`. Raises only the store's own errors.
        """
        self._store = store
        outcome = follow.catch_up(self, store, wait_s, anew=rebuild or self._unsound)
        self._unsound = self._unsound and not outcome.rebuilt
        return outcome

    def search(
        self,
        query: str,
        limit: int,
        *,
        allowed: frozenset[int] | None = None,
        restrict_nos: frozenset[int] | None = None,
    ) -> Hits:
        """The best `limit` passages that hold any of the query's words.

        `allowed` names the sources and `restrict_nos` the passages that may be found; None is
        all. As many as there are survive, however few they let through. No input raises.
        """
        try:
            return self.ranked(query, limit, allowed, restrict_nos)
        except CacheDamaged:
            self.mend()
        try:
            return self.ranked(query, limit, allowed, restrict_nos)
        except CacheDamaged:
            return NO_HITS

    def mend(self) -> None:
        """Make the index anew, after a CacheDamaged."""
        if self._store is not None:
            self.catch_up(self._store, wait_s=_REPAIR_WAIT_S, rebuild=True)

    def frequencies(self) -> Frequencies | None:
        """How often what occurs; None where nothing does. Its functions may raise CacheDamaged."""
        view = self._opened()
        return _frequencies(view) if view else None

    def ranked(
        self,
        query: str,
        limit: int,
        allowed: frozenset[int] | None,
        restrict_nos: frozenset[int] | None,
        joint: Frequencies | None = None,
    ) -> Hits:
        """As `search`, by the term weights of several indexes if `joint` gives them.

        Raises CacheDamaged.
        """
        view = self._opened()
        if view is None or limit < 1 or allowed == frozenset() or restrict_nos == frozenset():
            return NO_HITS
        filters = {"source_no": allowed, "no": restrict_nos}
        with engine_errors():
            asked = self._asked(view, query, joint)
            if asked is None:
                return NO_HITS
            late: dict[str, frozenset[int]] = {}
            for field, values in filters.items():
                if values is not None and len(values) > _FILTER_VALUES_MAX:
                    late[field] = values
                else:
                    asked = only_where(view.index.schema, asked, field, values)
            return best(view.searcher, asked, limit, late)

    def _asked(self, view: _View, query: str, joint: Frequencies | None) -> "Query | None":
        own = _frequencies(view)
        if own is None:
            return None
        return words_query(
            view.index.schema,
            (joint or own).holds,
            query,
            rarity(own, joint) if joint else as_in_the_index,
        )

    def _opened(self) -> _View | None:
        if self._view is None:
            self.refresh()
        return self._view

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
        view = self._view
        manifest = view.manifest if view else None
        return CacheStats(
            watermark=view.place.watermark if view else -1,
            rows=view.searcher.num_docs if view else 0,
            dead_rows=manifest.worn_rows if manifest else 0,
            segments=view.searcher.num_segments if view else 0,
            size_bytes=sum(mark.size_bytes for mark in manifest.files) if manifest else 0,
            mode="bm25",
            in_memory=self.in_memory,
        )

    def verify(self) -> list[str]:
        """Read every byte again and say what is not as written; the next catch-up rebuilds it."""
        found = load_manifest(self.folder, self.audience)
        if found is None:
            return ["lexical: there is no sound manifest"]
        problems = findings(self.folder, found[1], by_hash=True)
        self._unsound = self._unsound or bool(problems)
        return [f"lexical: {problem}" for problem in problems]

    def verify_async(self) -> "Future[list[str]]":
        """As `verify`, in a thread of its own."""
        return run_async(self.verify)

    def renew(
        self,
        store: Store,
        *,
        wait_s: float,
        worn_share: float = WORN_SHARE,
        goes_on: Callable[[], bool] = on_and_on,
    ) -> str | None:
        """Where over a share of its rows is gone, write the index anew beside itself and switch.

        See kb/search/index/renewal.py. Returns why not, or None.
        """
        return renew(self, store, wait_s=wait_s, worn_share=worn_share, goes_on=goes_on)

    @property
    def manifest(self) -> LexicalManifest | None:
        """What is open holds; None where nothing is, or in memory alone."""
        return self._view.manifest if self._view else None

    def close(self) -> None:
        """Let go of the files."""
        self._view = None

    # What follow.Cache asks for.

    def wants(self, entry: LogEntry) -> bool:
        """Entries about words."""
        return entry.words

    def numbers(self, txn: ReadTxn) -> list[int]:
        """Of the audience's passages; see follow.Cache."""
        if docs.audiences(txn) == (self.audience,):
            return list(chunks.all_numbers(txn))
        found: list[int] = []
        for source_no in docs.with_facet(txn, "audience", self.audience):
            try:
                found += chunks.numbers_of(txn, source_no)
            except StoreDamaged:
                # One record that cannot be read must not hide all others; `kb check` names it.
                continue
        return sorted(found)

    def refresh(self) -> Place | None:
        """Open what the manifest names, unless it is open; see follow.Cache."""
        view = self._view
        found = load_manifest(self.folder, self.audience)
        if found is None or found[1].analysis != ANALYSIS_VERSION:
            if not self.in_memory:
                self._view = None
            return self._view.place if self._view else None
        digest, manifest = found
        path = generation_path(self.folder, manifest.generation)
        if view and view.digest == digest and all(untouched(path, m) for m in view.marks):
            return view.place
        # Swapped once, at the end: other threads search meanwhile.
        self._view = self._read(path, digest, manifest)
        return self._view.place if self._view else None

    def _read(self, path: Path, digest: str, manifest: LexicalManifest) -> _View | None:
        found = [settled(path, mark) for mark in manifest.files]
        # Only what is not as the manifest says wants a closer look: a newer commit is no damage.
        if None in found and findings(self.folder, manifest, by_hash=False):
            return None
        place = Place(watermark=manifest.watermark, tail=manifest.tail)
        marks = tuple(now or mark for now, mark in zip(found, manifest.files, strict=True))
        try:
            return _view_of(open_index(path), digest, manifest, marks, place)
        except CacheDamaged:
            return None

    def apply(self, store: Store, nos: list[int], place: Place) -> None:
        """Delete and add again; see follow.Cache."""
        view = self._view
        if view is None or view.manifest is None:
            raise CacheDamaged("the index is not open")
        manifest = view.manifest
        path = generation_path(self.folder, manifest.generation)
        before, added = read_meta(path), 0
        if nos:
            with engine_errors():
                added = write_passages(view.index, store, nos, self.audience, replace=True)
        # What a commit removed that its manifest did not live to see, nobody has counted.
        uncounted = int(before.opstamp != manifest.opstamp)
        gone = before.rows + added - read_meta(path).rows
        self.record(manifest.generation, place, removed=manifest.removed + gone + uncounted)

    def rebuild(self, store: Store, nos: list[int], place: Place) -> None:
        """Write a new generation beside the old one, then switch; see follow.Cache."""
        generation = secrets.token_hex(8)
        path = generation_path(self.folder, generation)
        path.mkdir(mode=0o700)
        try:
            with engine_errors():
                index = create_index(path)
                write_passages(index, store, nos, self.audience, replace=False)
                del index
            fsync_folder(self.folder)
            self.record(generation, place, removed=0)
        finally:
            kept = load_manifest(self.folder, self.audience)
            drop_other_generations(self.folder, kept[1].generation if kept else "")

    def mark_again(self) -> None:
        """Record the marks of now; see follow.Cache."""
        view = self._view
        if view is not None and view.manifest is not None:
            manifest = view.manifest
            self.record(manifest.generation, view.place, removed=manifest.removed)

    def hold_in_memory(self, store: Store, nos: list[int], place: Place) -> None:
        """Index into memory; see follow.Cache."""
        with engine_errors():
            index = create_index(None)
            write_passages(index, store, nos, self.audience, replace=False)
            self._view = _view_of(index, "", None, (), place)

    def record(
        self,
        generation: str,
        place: Place,
        *,
        removed: int,
        hashes: Mapping[str, str] | None = None,
    ) -> None:
        """Switch to a generation, or to what it holds now, and open it."""
        write_manifest(
            self.folder,
            generation,
            place,
            audience=self.audience,
            analysis=ANALYSIS_VERSION,
            removed=removed,
            hashes=hashes,
        )
        self.refresh()


def _frequencies(view: _View) -> Frequencies | None:
    with engine_errors():
        rows = view.searcher.num_docs
    if not rows:
        return None

    def doc_freq(field: str, term: str) -> int:
        with engine_errors():
            return view.searcher.doc_freq(field, term)

    def holds(field: str, term: str) -> bool:
        with engine_errors():
            return holds_term(view.index, view.searcher, field, term)

    dead = view.manifest.dead_rows if view.manifest else 0
    return Frequencies(rows=rows + dead, doc_freq=doc_freq, holds=holds)


def _view_of(
    index: "Index",
    digest: str,
    manifest: LexicalManifest | None,
    marks: tuple[FileMark, ...],
    place: Place,
) -> _View:
    with engine_errors():
        return _View(
            digest=digest,
            manifest=manifest,
            marks=marks,
            index=index,
            searcher=index.searcher(),
            place=place,
        )
