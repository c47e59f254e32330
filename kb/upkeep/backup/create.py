"""Making a backup: a snapshot of the store, then every file that the snapshot names."""

import datetime as dt
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

import kb
from kb.errors import Unreadable, UsageError
from kb.model.failpoints import failpoint
from kb.store.content.layout import HomePaths
from kb.store.content.lock import file_lock
from kb.store.records import DOCS
from kb.store.store import Store
from kb.upkeep.backup import copying, manifest
from kb.upkeep.backup.catalog import BackupCatalog
from kb.upkeep.backup.manifest import HOME, STORE_FILE, Backup, Manifest, StoredFile
from kb.upkeep.check.lookup import find
from kb.upkeep.transfer import FolderTarget, holdings_of, staging, transfer
from kb.upkeep.transfer.reading import ExtraFile, extra_files, is_inside

REASON_CHARS_MAX: Final = 1_000
_WAIT_S: Final = 30.0


class CreateReport(Struct, frozen=True, kw_only=True):
    """A new backup, and the older ones that were removed for it."""

    backup: Backup
    pruned: tuple[str, ...]
    """Names of older backups that were removed because `keep` was reached."""
    spared: int = 0
    """How many older backups stay beyond `keep`, because the new one holds no doc."""


class _CopiedContent(Struct, frozen=True, kw_only=True):
    """What was copied of a home's content."""

    docs: int
    passages: int
    files: list[StoredFile]
    problems: list[str]


class Backups(BackupCatalog):
    """The backups of an open home: a catalog that can also create them."""

    def __init__(
        self,
        paths: HomePaths,
        store: Store,
        token: Callable[[], str] = lambda: secrets.token_hex(3),
    ) -> None:
        """`token` makes the names of two backups of the same second differ."""
        super().__init__(paths)
        self._store = store
        self._token = token

    def create(
        self, reason: str = "", *, keep: int | None = None, to: Path | None = None
    ) -> CreateReport:
        """Copy the home as it is at one moment; others may go on writing.

        The backup is made in the home, or in the new or empty folder `to`. With `keep`, the oldest
        backups in the home are removed until `keep` are left. None is removed if the new backup
        has problems, and none with docs is removed for a new one without docs. Files that the home
        lacks are listed as problems of the backup. Waits up to 30 s for a compaction or another
        backup, so it must not be called from within one. Raises UsageError, StoreBusy, StoreFull,
        ReadOnlyHome, StoreDamaged; then there is no backup.
        """
        if not self.paths.has_store:
            raise UsageError(f"there is no home at {self.paths.shown} to back up")
        if len(reason) > REASON_CHARS_MAX:
            raise UsageError(f"a reason has at most {REASON_CHARS_MAX:,} characters")
        if keep is not None and (keep < 1 or to is not None):
            raise UsageError("--keep works only for backups in the home, and keeps at least one")
        with self._exclusive():
            now_ms = self._store.clock.now_ms()
            target = (
                self.paths.backups / self._name(now_ms) if to is None else self.resolve_outside(to)
            )
            if to is None:
                staging.remove_parts(self.paths.backups)
            with staging.staged_folder(target) as folder:
                contents = self._fill(folder, reason, now_ms)
            excess = self._excess(keep, target.name) if keep and not contents.problems else []
            spared = [] if contents.docs else [backup for backup in excess if backup.docs]
            pruned = [] if spared else [backup.name for backup in excess]
            for name in pruned:
                staging.remove(self.paths.backups / name)
        summary = manifest.summarize(target, contents)
        return CreateReport(backup=summary, pruned=tuple(pruned), spared=len(spared))

    def _name(self, now_ms: int) -> str:
        moment = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
        return f"{moment:%Y%m%dT%H%M%SZ}-{self._token()}"

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the compaction lock: no other backup is made and no content file is removed."""
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.paths.compact_lock, _WAIT_S))
            except OSError as error:
                # If the lock cannot be written, nothing can be removed either.
                if error.errno not in staging.NOT_WRITABLE:
                    raise
            yield

    def _fill(self, folder: Path, reason: str, now_ms: int) -> Manifest:
        home = folder / HOME
        copied = self._copy_shared(home) if self._store.is_shared else self._copy_folder(home)
        files = [copying.hash_file(home, STORE_FILE), *copied.files]
        failpoint("backup.before_manifest")
        contents = Manifest(
            created_ms=now_ms,
            reason=reason,
            kb_version=kb.__version__,
            docs=copied.docs,
            passages=copied.passages,
            problems=tuple(copied.problems),
            files=tuple(sorted(files, key=lambda file: file.path)),
        )
        manifest.write(folder, contents)
        return contents

    def _copy_folder(self, home: Path) -> _CopiedContent:
        store = (home / STORE_FILE).parent
        store.mkdir(mode=0o700, parents=True)
        self._store.copy_to(store)
        failpoint("backup.after_copy")
        copied = self._copy_content(home)
        self._copy_extra_files(home, copied)
        return copied

    def _copy_shared(self, home: Path) -> _CopiedContent:
        """Make a home in a folder of one in a database, and list its files but the store's."""
        with self._store.read() as txn:
            target = FolderTarget(home)
            counts = transfer(holdings_of(self._store, txn, self.paths), target)
        failpoint("backup.after_copy")
        files: list[StoredFile] = []
        for folder, _, names in os.walk(home):
            for name in names:
                path = (Path(folder) / name).relative_to(home).as_posix()
                if path.startswith("store/"):
                    continue
                is_link = (home / path).is_symlink()
                read = copying.read_link if is_link else copying.hash_file
                files.append(read(home, path))
        (home / STORE_FILE).with_name("lock.mdb").unlink(missing_ok=True)
        return _CopiedContent(
            docs=counts.docs,
            passages=counts.passages,
            files=files,
            problems=list(counts.problems),
        )

    def _copy_content(self, home: Path) -> _CopiedContent:
        """Copy every content file that the copied store names."""
        active = 0
        expected: dict[str, str] = {}
        problems: list[str] = []
        copy = Store.open(home / "store", create=False, read_only=True, locked=False)
        with copy as store, store.read() as txn:
            for key, _ in txn.scan("docs"):
                doc = find(DOCS, txn, key)
                if doc is None:
                    problems.append(f"docs/{key.decode('ascii', 'replace')}: cannot be read")
                    continue
                active += doc.status == "active"
                expected |= {doc.raw_path: doc.raw_sha256} if doc.raw_path else {}
                expected[doc.md_path] = doc.md_sha256
            passages = txn.count("chunks")
        files: list[StoredFile] = []
        for path, sha256 in expected.items():
            try:
                files.append(self._copy_content_file(path, sha256, home))
            except Unreadable as error:
                problems.append(str(error))
        return _CopiedContent(docs=active, passages=passages, files=files, problems=problems)

    def _copy_content_file(self, path: str, sha256: str, home: Path) -> StoredFile:
        if not is_inside(path):
            raise Unreadable("its path leads out of the home", source=path)
        size_bytes = copying.link_file(self.paths.root, path, home)
        if size_bytes is not None:
            return StoredFile(path=path, size_bytes=size_bytes, sha256=sha256)
        stored = copying.copy_file(self.paths.root, path, home)
        if stored.sha256 != sha256:
            (home / path).unlink()
            raise Unreadable("the file is not what was written", source=path)
        return stored

    def _copy_extra_files(self, home: Path, copied: _CopiedContent) -> None:
        for extra in extra_files(self.paths):
            try:
                copied.files.append(self._copy_extra_file(extra, home))
            except Unreadable as error:
                # A file that was removed since it was listed is no problem of the home.
                if os.path.lexists(self.paths.root / extra.path):
                    copied.problems.append(str(error))

    def _copy_extra_file(self, extra: ExtraFile, home: Path) -> StoredFile:
        if (readable := _as_utf8(extra.path)) != extra.path:
            raise Unreadable("its name is not UTF-8", source=readable)
        if not extra.is_link:
            return copying.copy_file(self.paths.root, extra.path, home)
        link = copying.read_link(self.paths.root, extra.path)
        if link.link != _as_utf8(str(link.link)):
            raise Unreadable("the path that it links to is not UTF-8", source=extra.path)
        copying.make_link(link, home)
        return link

    def _excess(self, keep: int, newest: str) -> list[Backup]:
        """Complete backups beyond `keep`, newest first; `newest` counts as one of those kept."""
        older = [backup for backup in self.list_backups().backups if backup.name != newest]
        return older[keep - 1 :]


def _as_utf8(path: str) -> str:
    """A path as a manifest can store it: bytes that are not UTF-8 become U+FFFD."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
