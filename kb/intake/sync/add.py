"""`add`: takes the sources that a person names into the store, and accounts for every file."""

# Long because all that can become of a source stands together.

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from kb.errors import NotWritten, Refused, SourceError, TooLarge
from kb.intake.canonicalize import (
    CanonicalizeInput,
    Parser,
    detect_mime,
    fingerprint_of,
    keeps_raw,
    reads_as_before,
)
from kb.intake.ingest.changes import was_removed
from kb.intake.ingest.ingest import Ingestor, seen_record
from kb.intake.ingest.request import IngestOptions, IngestRequest, StagedDoc
from kb.intake.sync.expand import SourceExpander
from kb.intake.sync.export_names import NAMING_BYTES_MAX, ExportNames
from kb.intake.sync.items import (
    CollectionMember,
    SkippedItem,
    SourceBytes,
    SourceItem,
    as_member,
    extension_of,
    is_mailbox,
    stdin_bytes,
    walked_item,
    walked_name,
)
from kb.intake.sync.lists import FeedNamed
from kb.intake.sync.moves import apply_moves, detect_moves_into
from kb.intake.sync.origins import new_origin, register
from kb.intake.sync.parts import Attachments, without_records
from kb.intake.sync.pictures import Ocr, lacks_text, parsed, refuse_named_at_address
from kb.intake.sync.read import read_file, read_source, read_stream, stamp_of
from kb.intake.sync.report import AddReport, Tally
from kb.intake.sync.walk import SkippedFile, WalkedFile
from kb.model.doc import Doc, SourceStamp
from kb.model.ids import DocId, Lsid
from kb.model.origin import Origin, OriginKind, origin_id
from kb.model.source import STDIN_NAME, display_name, file_lsid, owned_lsid, path_of
from kb.store import docs
from kb.store.content.ends import is_of_ends
from kb.store.kv import ReadTxn
from kb.store.records import SOURCES
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.sync.url import UrlSyncer

_BATCH_DOCS: Final = 128
_BATCH_BYTES: Final = 16 << 20
# How often a file is read again because another call committed a newer version meanwhile.
_LOOKED_AT_ONCE: Final = 256
_OVERTAKEN_MAX: Final = 5


class AddOptions(Struct, frozen=True, kw_only=True):
    """The options of a call, besides its sources."""

    recursive: bool = False
    extensions: tuple[str, ...] = ()
    """Of the files in folders; empty for those of every format that has a parser."""
    takes_ignored: bool = False
    """Whether what git ignores in a folder is taken, too."""
    ingest_options: IngestOptions = IngestOptions()
    dry_run: bool = False
    file_bytes_max: int = 64 << 20
    home: Path | None = None
    """The home; a walk never enters it."""
    file_name: str | None = None
    """The name of the file whose bytes come on standard input; without it they are a text."""
    file_place: str = ""
    """The place of that file, as the client names it; the same place means the same source."""
    keep_current: bool = True
    """Whether folders and URLs are registered for `kb sync-all`."""
    accept_deletions: bool = False
    """Whether docs of mails that are gone from a mailbox are removed, however many there are."""
    ocr: Ocr = "off"
    revive: bool = True
    """Whether docs that a person removed come back; if not, they stay out until `kb add` names
    them."""


class Adder:
    """Takes files, folders and standard input into one home; use one for one call."""

    def __init__(
        self,
        store: Store,
        ingestor: Ingestor,
        parser: Parser,
        options: AddOptions,
        urls: "Callable[[], UrlSyncer] | None" = None,
        member_at: Callable[[str], CollectionMember | None] = lambda _: None,
    ) -> None:
        self._urls = urls
        self._member_at = member_at
        self.cursors: dict[str, str] = {}
        """By URL: the cursor that asks next time whether the page has changed."""
        self.error: SourceError | None = None
        """The error of the last source that failed."""
        self.feeds: list[str] | None = None
        """The feeds among the addresses, for a caller that takes them; for others they fail."""
        self._store = store
        self._ingestor = ingestor
        self._parser = parser
        self._options = options
        self._tally = Tally()
        self._batch: list[tuple[SourceItem | None, StagedDoc]] = []
        """Staged docs with their sources; None for what is in the file after it."""
        self._attachments = Attachments(store, ingestor, parser, options.ocr, self._tally)
        self._names = ExportNames(self._beside)
        self._refreshed: list[SourceStamp] = []
        self._overtaken: list[SourceItem] = []
        self._would_move: set[Lsid] = set()
        """In a dry run: files whose docs are of another place now."""

    def add(
        self,
        sources: Iterable[str],
        *,
        stdin_fd: int = 0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> AddReport:
        """Add every source; `on_progress` gets (done, total).

        What is committed stays committed if the call is interrupted; `report` then has the results
        so far. Raises StoreFull and its like if the home, not a source, is at fault.
        """
        options = self._options
        naming = SourceExpander(
            recursive=options.recursive,
            extensions=options.extensions,
            home=options.home,
            ignoring=not options.takes_ignored,
            stdin_name=options.file_place or options.file_name or STDIN_NAME,
            machine=self._store.machine,
        )
        items = list(naming.items(sources))
        if options.keep_current:
            self._follow_moves(naming.folders, items)
        self._take_all(items, stdin_fd, on_progress)
        if options.keep_current and not options.dry_run:
            self._register(naming.folders)
        return self.report()

    def add_walked(self, seen: Iterable[WalkedFile | SkippedFile]) -> AddReport:
        """Add the files that a walk found; otherwise as `add`."""
        self._take_all(
            [walked_item(entry, walked_name(entry, self._store.machine)) for entry in seen]
        )
        return self.report()

    def add_members(
        self, members: Sequence[CollectionMember], passed: Iterable[SkippedFile] = ()
    ) -> AddReport:
        """Add the members of a collection, under its names and options, and report the rest."""
        machine = self._store.machine
        left = [walked_item(entry, display_name(entry.path, machine)) for entry in passed]
        names = [entry.name or display_name(entry.path, machine) for entry in members]
        named = [
            SourceItem(name, str(entry.path), is_explicit=False, member=entry)
            for name, entry in zip(names, members, strict=True)
        ]
        self._take_all([*left, *named])
        for name, entry in zip(names, members, strict=True):
            if entry.remark is not None:
                self._tally.note(name, "added", entry.remark)
        return self.report()

    def title_of(self, path: Path, data: bytes) -> str | None:
        """The title of a file with these bytes; None if they cannot be read."""
        item = as_member(
            SourceItem(display_name(path), os.fspath(path), is_explicit=False),
            self._member_at,
            IngestOptions(),
        )
        if item.member and item.member.ingest_options.title:
            return item.member.ingest_options.title
        mime = detect_mime(data, path.name)
        try:
            canonical = self._parser.parse(CanonicalizeInput(data=data, mime=mime, name=path.name))
        except SourceError:
            return None
        return canonical.title

    def _take_all(
        self,
        items: list[SourceItem | SkippedItem],
        stdin_fd: int = 0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        try:
            for start in range(0, len(items), _LOOKED_AT_ONCE):
                window = items[start : start + _LOOKED_AT_ONCE]
                for done, item in enumerate(self._changed(window), start + 1):
                    if item is not None:
                        self._add_one(item, stdin_fd)
                    if on_progress:
                        on_progress(done, len(items))
        finally:
            # After Ctrl-C, too: staged docs are complete, so keep them.
            self._flush()
        self._add_overtaken(stdin_fd)

    def _follow_moves(
        self, folders: Sequence[Path], items: Iterable[SourceItem | SkippedItem]
    ) -> None:
        """Have files that have moved into the folders of this call keep their docs."""
        for folder in folders:
            moves = detect_moves_into(
                self._store,
                self._origin("folder", display_name(folder)),
                # Of a folder that is registered already nobody looks at them.
                (path for path in map(Path, _walked(items)) if path.is_relative_to(folder)),
                self._options.file_bytes_max,
                title_of=self.title_of,
            )
            if self._options.dry_run:
                self._would_move |= {file_lsid(move.path, self._store.machine) for move in moves}
                self._tally.moved += len(moves)
            else:
                self._tally.moved += len(apply_moves(self._store, moves))

    def _register(self, folders: Sequence[Path]) -> None:
        """Register the folders and pages of this call, so that syncs keep them current."""
        places: list[tuple[OriginKind, str]] = [("url", url) for url in self.cursors]
        places += [("folder", display_name(folder)) for folder in folders]
        for kind, location in places:
            register(self._store, self._origin(kind, location))

    def _origin(self, kind: OriginKind, location: str) -> Origin:
        options, now_ms = self._options, self._store.clock.now_ms()
        machine = self._store.machine if kind == "folder" else ""
        return structs.replace(
            new_origin(kind, location, options.ingest_options, now_ms, machine),
            extensions=options.extensions if kind == "folder" else (),
            takes_ignored=options.takes_ignored and kind == "folder",
            cursor=self.cursors.get(location, ""),
            synced_ms=now_ms,
        )

    def report(self) -> AddReport:
        """The results of the sources so far."""
        return self._tally.report()

    def _add_one(self, item: SourceItem, stdin_fd: int) -> None:
        try:
            if item.file is not None and item.member is None and is_mailbox(item.file):
                self._add_mailbox(Path(item.file), item)
                return
            read = self._read(item, stdin_fd)
            if read is not None:
                self._take(read)
                if read.cursor is not None:
                    self.cursors[read.item.name] = read.cursor
        except SourceError as error:
            if self.feeds is not None and isinstance(error, FeedNamed):
                self.feeds.append(item.name)
                return
            self.error = error
            by_rule = isinstance(error, TooLarge | NotWritten) and not item.is_explicit
            self._tally.left(item.name, "skipped" if by_rule else "failed", error.reason)

    def _add_mailbox(self, path: Path, item: SourceItem) -> None:
        # Imported late: most folders have no mailbox.
        from kb.intake.sync.mailbox import MailboxTaker

        tools = (self._store, self._ingestor, self._parser, self._options, self._tally)
        MailboxTaker(*tools).take(path, item.name, listed=item.is_walked)

    def _read(self, item: SourceItem, stdin_fd: int) -> SourceBytes | None:
        """The item's bytes; None if the item is accounted for without them."""
        now_ms = self._store.clock.file_ms()
        limit = self._options.file_bytes_max
        if item.url is not None:
            return self._read_url(item, item.url)
        if item.file is None:
            data = read_stream(stdin_fd, limit, item.name)
            return stdin_bytes(item, data, self._options.ingest_options, self._options.file_name)
        lsid = item.member.lsid if item.member else file_lsid(item.file, self._store.machine)
        if self._stays_out(item, lsid):
            return None
        with self._store.read() as txn:
            newest = docs.latest_of(txn, lsid)
        read = read_source(Path(item.file), limit, now_ms, listed=item.is_walked)
        return SourceBytes(
            item=item,
            lsid=lsid,
            kind=item.member.kind if item.member else "file",
            data=read.data,
            raw_sha256=read.digest,
            stamp=read.stamp,
            read_after=newest.doc_id if newest else DocId(""),
        )

    def _read_url(self, item: SourceItem, url: str) -> SourceBytes | None:
        """The page's bytes; None if the page has not changed."""
        from kb.intake.sync.url import PageChanged, PageUnchanged

        if self._urls is None:
            raise Refused("kb fetches no pages for this call", source=url)
        ingest_options = self._options.ingest_options
        lsid = owned_lsid(ingest_options.owner, f"url:{url}")
        if self._stays_out(item, lsid):
            return None
        with self._store.read() as txn:
            newest = docs.latest_of(txn, lsid)
            origin = SOURCES.get(txn, origin_id("url", url, ingest_options.owner).encode())
            # The bytes are needed if an option changes, even if the page does not.
            same = newest and self._ingestor.same_bytes(
                txn, lsid, newest.raw_sha256, ingest_options, reads_as_before()
            )
        cursor = origin.cursor if origin else ""
        known_sha256 = same.raw_sha256 if same else None
        state = self._urls().check(url, cursor, known_sha256, is_new=newest is None)
        match state:
            case PageUnchanged():
                assert same
                self.cursors[url] = state.cursor
                self._tally.took(item.name, same.doc_id, "unchanged")
                return None
            case PageChanged():
                return SourceBytes(
                    item=item,
                    lsid=lsid,
                    kind="url",
                    data=state.data,
                    raw_sha256=state.raw_sha256,
                    stamp=None,
                    read_after=newest.doc_id if newest else DocId(""),
                    mime=state.mime,
                    charset=state.charset,
                    file_name=state.name,
                    cursor=state.cursor,
                )

    def _stays_out(self, item: SourceItem, lsid: Lsid) -> bool:
        """Whether a person removed it and nobody has added it since."""
        if self._options.revive:
            return False
        with self._store.read() as txn:
            removed = was_removed(txn, lsid)
        if removed:
            self._tally.left(item.name, "skipped", "removed with kb rm; kb add brings it back")
        return removed

    def _changed(self, items: Sequence[SourceItem | SkippedItem]) -> Iterator[SourceItem | None]:
        """The items that must be read, in their order; None for each that is accounted for.

        All are looked at before the first is read, so that one transaction serves them all.
        """
        resolved = [
            item
            if isinstance(item, SkippedItem)
            else as_member(item, self._member_at, self._options.ingest_options)
            for item in items
        ]
        with self._store.read() as txn:
            known = [
                None if isinstance(item, SkippedItem) else self._unchanged(txn, item)
                for item in resolved
            ]
        for item, doc in zip(resolved, known, strict=True):
            if isinstance(item, SkippedItem):
                self._tally.left(item.name, "failed" if item.failed else "skipped", item.reason)
                yield None
            elif doc is not None:
                self._tally.took(item.name, doc.doc_id, "unchanged")
                yield None
            else:
                yield item

    def _unchanged(self, txn: ReadTxn, item: SourceItem) -> Doc | None:
        """The doc of a file that need not be read again."""
        file = item.file
        if file is None or (item.member is None and is_mailbox(file)):
            return None
        try:
            stamp = stamp_of(os.stat(file), self._store.clock.now_ms())
        except OSError:
            return None
        lsid = item.member.lsid if item.member else file_lsid(file, self._store.machine)
        options, reads = self._ingest_options(item), reads_as_before(file)
        doc = self._ingestor.unchanged(txn, lsid, stamp, options, reads)
        # A member keeps its name when its file is renamed.
        return doc if doc is not None and doc.source == item.name else None

    def _ingest_options(self, item: SourceItem) -> IngestOptions:
        return item.member.ingest_options if item.member else self._options.ingest_options

    def _take(self, read: SourceBytes) -> None:
        ingest_options = self._ingest_options(read.item)
        with self._store.read() as txn:
            same = self._ingestor.same_bytes(
                txn, read.lsid, read.raw_sha256, ingest_options, reads_as_before(read.item.file)
            )
        if same is not None and same.source == read.item.name:
            self._tally.took(read.item.name, same.doc_id, "unchanged")
            if read.stamp is not None:
                stamp = read.stamp
                self._refreshed.append(seen_record(read.lsid, same.doc_id, read.raw_sha256, stamp))
            return
        if not read.data.strip() and not read.item.is_explicit:
            self._tally.left(read.item.name, "skipped", "it is empty")
            return
        request = self._request(read)
        # All before the first is committed, since what is not among them is hidden.
        parts = [] if read.item.member else list(self._attachments.of(request))
        if not read.item.member:
            request = without_records(request)
        if self._options.dry_run:
            self._foresee(request)
            for part in parts:
                self._attachments.foresee(part)
            return
        for part in parts:
            self._stage(None, part)
        # The file comes last: with its stamp all that is in it counts as taken in.
        self._stage(read.item, request)

    def _stage(self, item: SourceItem | None, request: IngestRequest) -> None:
        self._batch.append((item, self._ingestor.stage(request)))
        raw_bytes = sum(len(staged.request.raw) for _, staged in self._batch)
        if len(self._batch) >= _BATCH_DOCS or raw_bytes >= _BATCH_BYTES:
            self._flush()

    def _request(self, read: SourceBytes) -> IngestRequest:
        path = read.item.path
        file_name = path.name if path else read.file_name
        mime = read.mime or detect_mime(read.data, file_name)
        if read.kind == "stdin" and mime == "text/plain":
            # Most text that people pipe in is markdown, and plain text reads the same.
            mime = "text/markdown"
        name = file_name or self._options.ingest_options.title or STDIN_NAME
        if read.kind == "url":
            refuse_named_at_address(mime, read.item.name)
        source = CanonicalizeInput(data=read.data, mime=mime, name=name, charset=read.charset)
        canonical = parsed(self._parser, source, self._options.ocr, self._tally)
        if read.item.file is not None and read.item.member is None:
            canonical = self._names.named(canonical, read.item.file)
        for warning in canonical.warnings:
            self._tally.note(read.item.name, "added", warning)
        return IngestRequest(
            lsid=read.lsid,
            source=read.item.name,
            kind=read.kind,
            canonical=canonical,
            raw=read.data,
            raw_bytes=read.stamp.size_bytes if read.stamp and is_of_ends(read.raw_sha256) else None,
            raw_sha256=read.raw_sha256,
            extension=extension_of(path, mime),
            canonicalizer=fingerprint_of(mime),
            ingest_options=self._ingest_options(read.item),
            stamp=read.stamp,
            read_after=read.read_after,
            revive=self._options.revive,
            charset=read.charset,
            ready=read.item.member.ready if read.item.member else None,
            # Of bytes that came without a file there is no other copy, nor for other machines.
            keeps_raw=keeps_raw(canonical.mime) or path_of(read.lsid) is None,
            wants_ocr=lacks_text(canonical) and self._options.ocr == "there",
        )

    def _beside(self, file: str) -> bytes:
        # Through no link, since nobody has named this file.
        return read_file(Path(file), NAMING_BYTES_MAX, 0, listed=True)[0]

    def _foresee(self, request: IngestRequest) -> None:
        with self._store.read() as txn:
            current = docs.latest_of(txn, request.lsid)
        if request.lsid in self._would_move:
            self._tally.took(request.source, DocId(""), "unchanged")
        elif current is None:
            self._tally.took(request.source, DocId(""), "added")
        elif current.status == "tombstoned" and current.raw_sha256 == request.raw_sha256:
            self._tally.took(request.source, current.doc_id, "resurrected")
        else:
            self._tally.took(request.source, current.doc_id, "updated")

    def _flush(self) -> None:
        batch, self._batch = self._batch, []
        refreshed, self._refreshed = self._refreshed, []
        if batch:
            staged_docs = [staged for _, staged in batch]
            outcomes = self._ingestor.commit(staged_docs, self._attachments.hide_gone)
            for (item, staged), outcome in zip(batch, outcomes, strict=True):
                if item is None:
                    self._attachments.took(staged, outcome)
                elif outcome is None:
                    self._overtaken.append(item)
                else:
                    self._tally.took(item.name, outcome.doc_id, outcome.status)
        if not self._options.dry_run:
            self._ingestor.refresh_seen(refreshed)

    def _add_overtaken(self, stdin_fd: int) -> None:
        """Read sources again of which another call has committed a newer version."""
        for _ in range(_OVERTAKEN_MAX):
            items, self._overtaken = self._overtaken, []
            for item in items:
                self._add_one(item, stdin_fd)
            self._flush()
            if not self._overtaken:
                return
        for item in self._overtaken:
            reason = "it keeps changing while other processes add it; add it again"
            self._tally.left(item.name, "failed", reason)


def _walked(items: Iterable[SourceItem | SkippedItem]) -> Iterator[str]:
    """The files that were found in folders."""
    for item in items:
        if isinstance(item, SourceItem) and item.is_walked and item.file:
            yield item.file
