"""Adds docs to the store: stages their files, then commits them in one transaction."""

# Long because all that becomes of a source's version stands together.

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from kb.intake.ingest.changes import mark_pending, release_hold, request_chunking, was_removed
from kb.intake.ingest.own_dates import date_in_name, local_time
from kb.intake.ingest.request import (
    FileStamp,
    IngestOptions,
    IngestOutcome,
    IngestRequest,
    StagedDoc,
)
from kb.model.doc import LOCAL_USER, Doc, SourceStamp
from kb.model.failpoints import failpoint
from kb.model.ids import DocId, Lsid, SourceNo, doc_id, generation_lsid, sha256_hex
from kb.model.text import Canonical
from kb.store import chunks, docs, log
from kb.store.content.files import ContentStore
from kb.store.content.layout import markdown_path, raw_path
from kb.store.generations import next_generation
from kb.store.jobs import queue
from kb.store.keys import lsid_key, text_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.link_names import PATH, WIKI
from kb.store.records import ORPHANS, SEEN
from kb.store.store import Store

# A file that changed this shortly before it was read may have changed again with the same stamp.
_SETTLED_NS = 2_000_000_000
_LINKS_MAX = 1_000


class Ingestor:
    """Adds canonicalised sources to one home."""

    def __init__(self, store: Store, content: ContentStore) -> None:
        self._store = store
        self._content = content
        self.on_commit: list[Callable[[], None]] = []
        """Called after each commit of docs, outside its transaction: there may be work now."""

    def unchanged(
        self,
        txn: ReadTxn,
        lsid: Lsid,
        stamp: FileStamp,
        ingest_options: IngestOptions,
        reads_as_before: Callable[[Doc], bool],
    ) -> Doc | None:
        """The doc of a file that need not be read again: same stamp, same options, still active.

        `reads_as_before` says whether its bytes would be read in the same way now.
        """
        seen = SEEN.get(txn, lsid_key(lsid))
        if seen is None or not same_stamp(seen, stamp):
            return None
        doc = docs.get(txn, seen.doc_id)
        if doc is None or doc.status != "active" or doc.place != lsid:
            return None
        return doc if reads_as_before(doc) and _matches_options(doc, ingest_options) else None

    def same_bytes(
        self,
        txn: ReadTxn,
        request_lsid: Lsid,
        raw_sha256: str,
        ingest_options: IngestOptions,
        reads_as_before: Callable[[Doc], bool],
    ) -> Doc | None:
        """The active doc with these bytes and options, if there is one: nothing to parse.

        `reads_as_before` is as for `unchanged`.
        """
        doc = docs.latest_of(txn, request_lsid)
        if doc is None or not self.is_level(doc, raw_sha256, ingest_options, reads_as_before):
            return None
        return doc

    def is_level(
        self,
        doc: Doc,
        raw_sha256: str,
        ingest_options: IngestOptions,
        reads_as_before: Callable[[Doc], bool],
    ) -> bool:
        """Whether a doc is active and has these bytes and options: nothing to parse.

        `reads_as_before` is as for `unchanged`.
        """
        return (
            doc.status == "active"
            and doc.raw_sha256 == raw_sha256
            and reads_as_before(doc)
            and _matches_options(doc, ingest_options)
        )

    def stage(self, request: IngestRequest) -> StagedDoc:
        """Write the raw bytes and the markdown, durably; nothing else changes.

        Raises StoreFull, ReadOnlyHome or StoreDamaged.
        """
        markdown = request.canonical.markdown.encode()
        title = request.ingest_options.title or request.canonical.title
        staged = StagedDoc(
            request=request,
            raw_path=raw_path(request.raw_sha256, request.extension) if request.keeps_raw else "",
            md_path=markdown_path(request.kind, title, request.lsid, request.canonical.markdown),
            md_sha256=sha256_hex(markdown),
            links=_links(request.canonical),
        )
        self._stage_files(staged)
        return staged

    def _stage_files(self, staged: StagedDoc) -> None:
        for path, data in _files(staged):
            self._content.stage(path, data)

    def commit(
        self, batch: list[StagedDoc], first: Callable[[WriteTxn], None] | None = None
    ) -> list[IngestOutcome | None]:
        """Add a batch in one transaction: on return all of it is durable, or none.

        `first` runs at the start of that transaction.

        The result has None for a source that was overtaken: after its bytes were read, another call
        committed a version, or a person removed the source. Nothing of it is stored; read it again.

        The transaction itself finds whether a source has changed, and its version number. So if two
        callers bring the same bytes, one adds them and the other learns that they are there. If a
        compaction removed a staged file in the meantime, it is written again first.
        """
        while True:
            with self._store.write() as txn:
                lost = [item for item in batch if not self._keep_files(txn, item)]
                if not lost:
                    if first is not None:
                        first(txn)
                    now_ms = self._store.clock.now_ms()
                    outcomes = [self._commit_one(txn, item, now_ms) for item in batch]
                    failpoint("ingest.before_commit")
            if not lost:
                failpoint("ingest.after_commit")
                for told in self.on_commit:
                    told()
                return outcomes
            for item in lost:
                self._stage_files(item)

    def _keep_files(self, txn: WriteTxn, staged: StagedDoc) -> bool:
        return all(self._content.keep(txn, path, data) for path, data in _files(staged))

    def _commit_one(self, txn: WriteTxn, staged: StagedDoc, now_ms: int) -> IngestOutcome | None:
        request = staged.request
        if _is_overtaken(txn, staged):
            return None
        release_hold(txn, request.lsid)
        source_no = docs.ensure_source_no(txn, request.lsid)
        current = docs.latest(txn, source_no)
        proposed = self._wanted(txn, staged, source_no, current, now_ms)
        if current is None or not _same_content(current, proposed):
            outcome = self._put_version(txn, request, proposed, current)
        else:
            outcome = self._keep_version(txn, request, proposed, current)
        for path in (staged.raw_path, staged.md_path):
            ORPHANS.delete(txn, text_key(path))
        self._put_seen(txn, request, outcome)
        if request.wants_ocr and outcome.status != "unchanged":
            key = queue.dedupe_key("ocr", outcome.doc_id)
            queue.enqueue(txn, self._store.clock, "ocr", outcome.doc_id, key=key)
        return outcome

    def _wanted(
        self,
        txn: WriteTxn,
        staged: StagedDoc,
        source_no: SourceNo,
        current: Doc | None,
        now_ms: int,
    ) -> Doc:
        """The doc as the source's next version; counts the generation of a new source."""
        request, canonical = staged.request, staged.request.canonical
        ingest_options = _merge_options(request.ingest_options, current)
        version = current.version + 1 if current else 1
        tags_given = ingest_options.tags or ()
        # A source that moved keeps its lsid, and so do its chunks.
        lsid = (
            current.lsid
            if current
            else generation_lsid(request.lsid, next_generation(txn, request.lsid))
        )
        return Doc(
            doc_id=doc_id(lsid, version),
            lsid=lsid,
            moved_to=None if lsid == request.lsid else request.lsid,
            source_no=source_no,
            version=version,
            title=ingest_options.title or canonical.title,
            source=request.source,
            kind=request.kind,
            mime=canonical.mime,
            tags=tuple(dict.fromkeys((*canonical.tags, *tags_given))),
            aliases=canonical.aliases,
            links=staged.links,
            mail=canonical.mail,
            has_names=True,
            by_name=canonical.by_name,
            date=canonical.date or date_in_name(request.source, request.kind),
            created=canonical.created,
            modified=canonical.modified or _changed(request, current, now_ms),
            visibility=ingest_options.visibility or ingest_options.visibility_first or "private",
            owner=ingest_options.owner or LOCAL_USER,
            status="active",
            raw_sha256=request.raw_sha256,
            raw_path=staged.raw_path,
            md_path=staged.md_path,
            md_sha256=staged.md_sha256,
            raw_bytes=len(request.raw) if request.raw_bytes is None else request.raw_bytes,
            md_chars=len(canonical.markdown),
            coverage=canonical.coverage,
            canonicalizer=request.canonicalizer,
            added_ms=current.added_ms if current else now_ms,
            updated_ms=now_ms,
            front_lines=canonical.front_lines,
            sheet_rows=canonical.sheet_rows,
            definitions=canonical.definitions,
            tags_given=tags_given,
            title_given=ingest_options.title,
            charset=request.charset,
            entry=ingest_options.entry,
            pack=ingest_options.pack,
        )

    def _put_version(
        self, txn: WriteTxn, request: IngestRequest, proposed: Doc, current: Doc | None
    ) -> IngestOutcome:
        docs.put_new_version(txn, proposed)
        if current is not None and current.status == "tombstoned":
            # Cutting it does not touch the chunks that the new version keeps.
            _log_resurrected(txn, proposed)
        _log_audience_change(txn, current, proposed)
        _store_or_request_chunks(txn, self._store, request, proposed)
        return IngestOutcome(doc_id=proposed.doc_id, status="updated" if current else "added")

    def _keep_version(
        self, txn: WriteTxn, request: IngestRequest, proposed: Doc, current: Doc
    ) -> IngestOutcome:
        """Same content: bring a tombstoned doc back, apply changed options, or do nothing."""
        revived = current.status == "tombstoned"
        # The doc keeps the files of the version that wrote them.
        same_version = msgspec.structs.replace(
            proposed,
            doc_id=current.doc_id,
            version=current.version,
            raw_path=current.raw_path,
            md_path=current.md_path,
            # A file that is merely touched is no other.
            modified=current.modified or proposed.modified,
            updated_ms=current.updated_ms,
        )
        if same_version == current:
            return IngestOutcome(doc_id=current.doc_id, status="unchanged")
        same_version = msgspec.structs.replace(same_version, updated_ms=proposed.updated_ms)
        docs.replace(txn, same_version)
        for path in (same_version.raw_path, same_version.md_path):
            ORPHANS.delete(txn, text_key(path))
        if revived or same_version.label != current.label:
            # Chunker and model may have changed meanwhile, because only active docs follow them.
            _store_or_request_chunks(txn, self._store, request, same_version)
        if revived:
            _log_resurrected(txn, same_version)
        _log_audience_change(txn, current, same_version)
        return IngestOutcome(
            doc_id=same_version.doc_id, status="resurrected" if revived else "updated"
        )

    def _put_seen(self, txn: WriteTxn, request: IngestRequest, outcome: IngestOutcome) -> None:
        if request.stamp is not None:
            seen = seen_record(request.lsid, outcome.doc_id, request.raw_sha256, request.stamp)
            SEEN.put(txn, lsid_key(request.lsid), seen)
            return
        # The same bytes, read anew: what was seen of the file holds for the new version, too.
        before = SEEN.get(txn, lsid_key(request.lsid))
        if before is not None and before.raw_sha256 == request.raw_sha256:
            now = msgspec.structs.replace(before, doc_id=outcome.doc_id)
            SEEN.put(txn, lsid_key(request.lsid), now)

    def refresh_seen(self, records: list[SourceStamp]) -> None:
        """Store new stamps of files whose bytes are unchanged, in one transaction.

        It skips docs that were hidden or moved since: a stamp there would mean that a person did
        it.
        """
        if not records:
            return
        with self._store.write() as txn:
            for seen in records:
                doc = docs.latest_of(txn, seen.lsid)
                if doc is not None and doc.status == "active":
                    SEEN.put(txn, lsid_key(seen.lsid), seen)


def _files(staged: StagedDoc) -> Iterator[tuple[str, bytes]]:
    """The paths of a doc's content, each with its bytes."""
    if staged.raw_path:
        yield staged.raw_path, staged.request.raw
    yield staged.md_path, staged.request.canonical.markdown.encode()


def seen_record(lsid: Lsid, doc: DocId, raw_sha256: str, stamp: FileStamp) -> SourceStamp:
    """The seen record of a file that was added or found unchanged."""
    return SourceStamp(
        lsid=lsid,
        doc_id=doc,
        raw_sha256=raw_sha256,
        size_bytes=stamp.size_bytes,
        mtime_ns=stamp.mtime_ns,
        ctime_ns=stamp.ctime_ns,
        inode=stamp.inode,
        seen_ms=stamp.taken_ms,
    )


def _changed(request: IngestRequest, current: Doc | None, now_ms: int) -> str | None:
    """When the source was changed; of bytes that are read anew, what is known of them."""
    if request.stamp is None and current and current.raw_sha256 == request.raw_sha256:
        return current.modified
    if request.kind == "stdin":
        # What is handed in has no file that would know better.
        return local_time(now_ms // 1_000)
    return None if request.stamp is None else local_time(request.stamp.mtime_ns // 1_000_000_000)


def _links(canonical: Canonical) -> tuple[str, ...]:
    if canonical.mime != "text/markdown":
        return canonical.links[:_LINKS_MAX]
    from kb.intake.chunker.links import links

    prefixes = {"wiki": WIKI, "path": PATH}
    found = (prefixes[link.kind] + link.target for link in links(canonical.markdown))
    return (*canonical.links, *islice(found, _LINKS_MAX))


def same_stamp(seen: SourceStamp, stamp: FileStamp) -> bool:
    """Whether a file is surely as it was when it was seen."""
    if seen.seen_ms * 1_000_000 - max(seen.mtime_ns, seen.ctime_ns) < _SETTLED_NS:
        return False
    return (seen.size_bytes, seen.mtime_ns, seen.ctime_ns, seen.inode) == (
        stamp.size_bytes,
        stamp.mtime_ns,
        stamp.ctime_ns,
        stamp.inode,
    )


def _matches_options(doc: Doc, ingest_options: IngestOptions) -> bool:
    return (
        (ingest_options.title is None or ingest_options.title == doc.title_given)
        and (ingest_options.tags is None or ingest_options.tags == doc.tags_given)
        and (ingest_options.visibility is None or ingest_options.visibility == doc.visibility)
        and (ingest_options.owner is None or ingest_options.owner == doc.owner)
        and (ingest_options.entry is None or ingest_options.entry == doc.entry)
        and (ingest_options.pack is None or ingest_options.pack == doc.pack)
    )


def _merge_options(ingest_options: IngestOptions, current: Doc | None) -> IngestOptions:
    if current is None:
        return ingest_options
    return IngestOptions(
        title=current.title_given if ingest_options.title is None else ingest_options.title,
        tags=current.tags_given if ingest_options.tags is None else ingest_options.tags,
        visibility=ingest_options.visibility or current.visibility,
        owner=ingest_options.owner or current.owner,
        entry=ingest_options.entry or current.entry,
        pack=ingest_options.pack or current.pack,
    )


def _is_overtaken(txn: ReadTxn, staged: StagedDoc) -> bool:
    request = staged.request
    if not request.revive and was_removed(txn, request.lsid):
        return True
    current = docs.latest_of(txn, request.lsid)
    return (
        current is not None
        and request.read_after not in (None, current.doc_id)
        and current.raw_sha256 != request.raw_sha256
    )


def _same_content(current: Doc, proposed: Doc) -> bool:
    return (
        current.raw_sha256 == proposed.raw_sha256
        and current.md_sha256 == proposed.md_sha256
        and current.canonicalizer == proposed.canonicalizer
    )


def _log_resurrected(txn: WriteTxn, doc: Doc) -> None:
    """Log the chunks of a doc that came back, so that the indexes take them up again."""
    log.append(txn, chunks.numbers_of(txn, doc.source_no), words=True, vectors=True)


def _log_audience_change(txn: WriteTxn, before: Doc | None, doc: Doc) -> None:
    """Log a change of audience: each audience has its own lexical index, and both look again."""
    if before is not None and before.audience != doc.audience:
        log.append(txn, chunks.numbers_of(txn, doc.source_no), words=True)


def _store_or_request_chunks(txn: WriteTxn, store: Store, request: IngestRequest, doc: Doc) -> None:
    """Store the chunks that came with a doc, or add a job to cut it."""
    from kb.intake.chunks import build_chunks, is_usable, put_vectors, write_chunks

    ready, markdown = request.ready, request.canonical.markdown
    if ready is None or not is_usable(txn, ready, markdown):
        request_chunking(txn, store, doc)
        return
    mark_pending(txn, store, doc)
    cut = build_chunks(doc, markdown, list(ready.chunks))
    put_vectors(txn, ready, cut)
    write_chunks(txn, store, cut)
