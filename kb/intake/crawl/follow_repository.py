"""The files of one repository: each a doc. What its newest commit has not is gone."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec import Struct, structs

from kb.errors import EmptySource, SourceError, Unsupported
from kb.intake.canonicalize import detect_mime
from kb.intake.canonicalize.title import fallback_title
from kb.intake.crawl.book import PageBook
from kb.intake.crawl.judge import REMOVED
from kb.intake.crawl.taker import PageBytes, PageTaker
from kb.intake.git.fetch_commit import Check, FetchedCommit, FetchLimits, fetch
from kb.intake.git.repository_address import RepositoryAddress
from kb.intake.ingest.changes import move_doc
from kb.intake.sync.read import read_source
from kb.intake.sync.walk import SkippedFile, walk
from kb.model.failpoints import failpoint
from kb.model.ids import sha256_hex
from kb.model.origin import Origin
from kb.model.site import SitePage
from kb.model.source import repository_source
from kb.store import docs
from kb.store.kv import WriteTxn
from kb.store.store import Store

MARK: Final = "commit:"
_BLOB: Final = "blob:"
_LFS: Final = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES_MAX: Final = 1_024
TAKEN_OVER: Final = "another process has taken over"


class RepositoryTools(Struct, frozen=True, kw_only=True):
    """What a repository is read with."""

    store: Store
    taker: PageTaker
    scratch: Path
    """Where the files of a commit are while they are read; it is made and removed here."""
    check: Check
    limits: FetchLimits
    on_progress: Callable[[int, int], None]


class _File(Struct, frozen=True, kw_only=True):
    """A file of the commit that is to be a doc."""

    url: str
    path: Path
    blob: str

    @property
    def cursor(self) -> str:
        """What is known of its content."""
        return _BLOB + self.blob


class RepositoryRun:
    """One look at a repository."""

    def __init__(self, tools: RepositoryTools, address: RepositoryAddress, origin: Origin) -> None:
        self._tools = tools
        self._address = address
        self._origin = origin
        self._taker = tools.taker
        self._book: PageBook = tools.taker.book
        self._tally = tools.taker.tally
        self.stopped: str | None = None
        """Why not all of it was looked at; None if it was."""

    def run(self, cursor: str) -> str:
        """Take what changed since the commit of `cursor`; returns the new cursor.

        A ref that has not moved costs one request. What is committed stays if this is interrupted,
        and the next run takes the rest. Raises Refused or Transient if the repository cannot be
        had.
        """
        folder = self._tools.scratch
        folder.mkdir(mode=0o700)
        try:
            known = cursor.removeprefix(MARK)
            fetched = fetch(self._address, known, folder, self._tools.check, self._tools.limits)
            if fetched is None:
                return cursor
            self._take_all(fetched)
            return cursor if self.stopped else MARK + fetched.tip
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _take_all(self, fetched: FetchedCommit) -> None:
        try:
            files = list(self._files(fetched))
            self._follow_moves(files)
            for done, file in enumerate(files, 1):
                self._take_one(file)
                self._taker.flush_if_due()
                self._tools.on_progress(done, len(files))
                if not self._taker.is_held:
                    self.stopped = TAKEN_OVER
                    return
                # A sweep of old scratch folders looks at this time.
                os.utime(self._tools.scratch)
            self._drop_gone({file.url for file in files})
        finally:
            # After Ctrl-C, too: what was read is complete.
            self._taker.flush()

    def _files(self, fetched: FetchedCommit) -> Iterator[_File]:
        """The files to take; what is left out is counted here."""
        location = self._origin.location
        for quoted, reason in fetched.listing.left.items():
            self._tally.left(f"{location}#{quoted}", "skipped", reason)
        root = fetched.files
        ignoring = not self._origin.takes_ignored
        for entry in walk(root, self._origin.extensions, ignoring=ignoring):
            path = os.path.relpath(entry.path, root)
            url = repository_source(location, path)
            if isinstance(entry, SkippedFile):
                self._tally.left(url, "failed" if entry.failed else "skipped", entry.reason)
            elif blob := fetched.listing.blobs.get(quote(os.fsencode(path))):
                yield _File(url=url, path=entry.path, blob=blob)

    def _follow_moves(self, files: list[_File]) -> None:
        """Let docs of files that are gone follow to new files of the same content."""
        here = {file.url for file in files}
        lost: dict[str, list[SitePage]] = {}
        for page in self._book:
            if page.url not in here and page.doc == "own":
                lost.setdefault(page.cursor, []).append(page)
        moves = []
        for file in files:
            known = self._book.get(file.url)
            waiting = lost.get(file.cursor)
            if waiting and (known is None or known.doc == "none"):
                moves.append((waiting.pop(0), file))
        if moves and not self._taker.options.dry_run:
            self._book.commit(lambda txn: self._move(txn, moves))
            failpoint("sync.after_move")

    def _move(self, txn: WriteTxn, moves: list[tuple[SitePage, _File]]) -> None:
        for page, file in moves:
            doc = self._book.doc(txn, page)
            place = self._book.lsid(file.url)
            # A place with a history of its own keeps it.
            if doc is None or docs.latest_of(txn, place):
                continue
            moved = structs.replace(doc, source=file.url)
            if doc.title_given is None and doc.title == _own_title(page.url):
                moved = structs.replace(moved, title=_own_title(file.url))
            move_doc(txn, self._tools.store, moved, place, None)
            self._book.drop(page)
            self._book.put(structs.replace(page, url=file.url, state="taken", reason=""))

    def _take_one(self, file: _File) -> None:
        page = self._book.get(file.url) or SitePage(url=file.url)
        if self._taker.stays_out(page):
            self._tally.left(file.url, "skipped", REMOVED)
            return
        if page.cursor == file.cursor and page.doc == "own":
            doc = self._taker.kept(page, os.fspath(file.path))
            if doc is not None:
                if page.state != "taken":
                    self._book.put(structs.replace(page, state="taken", reason=""))
                self._tally.took(file.url, doc.doc_id, "unchanged")
                return
        try:
            self._read(file, page)
        except SourceError as error:
            by_rule = isinstance(error, Unsupported | EmptySource)
            self._leave(page, error.reason, is_failure=not by_rule)

    def _read(self, file: _File, page: SitePage) -> None:
        now_ms = self._tools.store.clock.file_ms()
        source = read_source(file.path, self._tools.limits.file_bytes_max, now_ms, listed=True)
        data = source.data
        if not data.strip():
            self._leave(page, "it is empty")
            return
        if len(data) <= _LFS_BYTES_MAX and data.startswith(_LFS):
            self._leave(page, "its content is kept elsewhere (git LFS)")
            return
        name = file.path.name
        mime = detect_mime(data, name)
        read = PageBytes(data=data, raw_sha256=source.digest, mime=mime, charset=None, name=name)
        canonical = self._taker.read(read, takes_pictures=True)
        taken = structs.replace(
            page,
            state="taken",
            cursor=file.cursor,
            raw_sha256=read.raw_sha256,
            text_sha256=sha256_hex(canonical.markdown),
            asked_ms=self._tools.store.clock.now_ms(),
            reason="",
        )
        self._taker.take(taken, read, canonical)

    def _leave(self, page: SitePage, reason: str, *, is_failure: bool = False) -> None:
        """A file of which nothing is taken; what was taken of it before stays."""
        if page.doc == "own":
            self._book.put(structs.replace(page, reason=reason))
        self._tally.left(page.url, "failed" if is_failure else "skipped", reason)

    def _drop_gone(self, here: set[str]) -> None:
        for page in self._book:
            if page.url in here:
                continue
            if page.doc == "own":
                reason = "the newest commit has no such file, or it is left out"
                self._book.put(structs.replace(page, state="gone", reason=reason))
            elif page.doc == "none":
                self._book.drop(page)


def _own_title(url: str) -> str:
    """The title of a file that has none but its name."""
    from urllib.parse import unquote

    return fallback_title(unquote(url.rpartition("#")[2].rpartition("/")[2]), "")
