"""Making a backup: one moment of the store, then every file that this moment names."""

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
from kb.search.index import file_lock
from kb.store.content.layout import HomePaths
from kb.store.records import DOCS
from kb.store.store import Store
from kb.upkeep.backup import copying, manifest, staging
from kb.upkeep.backup.manifest import HOME, STORE_FILE, Backup, Manifest, StoredFile
from kb.upkeep.backup.shelf import Shelf
from kb.upkeep.check.lookup import find

REASON_CHARS_MAX: Final = 1_000
_WAIT_S: Final = 30.0


class Created(Struct, frozen=True, kw_only=True):
    """A backup that was made, and those that went for it."""

    backup: Backup
    pruned: tuple[str, ...]
    """Names of older backups, removed because `keep` was reached."""
    spared: int = 0
    """Older backups that `keep` would have removed, but for this one, which holds no doc."""


class _Copied(Struct, frozen=True, kw_only=True):
    """What came over of a home."""

    docs: int
    passages: int
    files: list[StoredFile]
    problems: list[str]


class Backups(Shelf):
    """The backups of a home that is open."""

    def __init__(
        self,
        paths: HomePaths,
        store: Store,
        token: Callable[[], str] = lambda: secrets.token_hex(3),
    ) -> None:
        """`token` tells apart two backups of one second."""
        super().__init__(paths)
        self._store = store
        self._token = token

    def create(
        self, reason: str = "", *, keep: int | None = None, to: Path | None = None
    ) -> Created:
        """Copy the home as it is at one moment, while others go on writing.

        The backup is made in the home, or is the new or empty folder `to`. With `keep`, the oldest
        in the home go until so many are left, but not for one that has problems, and none that
        holds docs goes for one that holds none. What the home
        lacks is noted as a problem of the backup. Waits 30 s for a compaction or another backup,
        so it must not be called from within one. Raises UsageError, StoreBusy, StoreFull,
        ReadOnlyHome, StoreDamaged; then there is no backup.
        """
        if not self.paths.has_store:
            raise UsageError(f"there is no home at {self.paths.root} to back up")
        if len(reason) > REASON_CHARS_MAX:
            raise UsageError(f"a reason has at most {REASON_CHARS_MAX:,} characters")
        if keep is not None and (keep < 1 or to is not None):
            raise UsageError("backups in the home alone are pruned, and one at least is kept")
        with self._alone():
            now_ms = self._store.clock.now_ms()
            target = self.paths.backups / self._name(now_ms) if to is None else self.outside(to)
            if to is None:
                staging.remove_parts(self.paths.backups)
            with staging.staged(target) as folder:
                made = self._fill(folder, reason, now_ms)
            beyond = self._beyond(keep, target.name) if keep and not made.problems else []
            spared = [] if made.docs else [backup for backup in beyond if backup.docs]
            pruned = [] if spared else [backup.name for backup in beyond]
            for name in pruned:
                staging.remove(self.paths.backups / name)
        described = manifest.described(target, made)
        return Created(backup=described, pruned=tuple(pruned), spared=len(spared))

    def _name(self, now_ms: int) -> str:
        moment = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
        return f"{moment:%Y%m%dT%H%M%SZ}-{self._token()}"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other backup is made, and no content file goes."""
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.paths.compact_lock, _WAIT_S))
            except OSError as error:
                # Where the lock cannot be written, nothing can be removed either.
                if error.errno not in staging.NOT_WRITABLE:
                    raise
            yield

    def _fill(self, folder: Path, reason: str, now_ms: int) -> Manifest:
        home = folder / HOME
        store = (home / STORE_FILE).parent
        store.mkdir(mode=0o700, parents=True)
        self._store.copy_to(store)
        failpoint("backup.after_copy")
        copied = self._copy_content(home)
        self._copy_others(home, copied)
        files = [copying.hashed(home, STORE_FILE), *copied.files]
        failpoint("backup.before_manifest")
        made = Manifest(
            created_ms=now_ms,
            reason=reason,
            kb_version=kb.__version__,
            docs=copied.docs,
            passages=copied.passages,
            problems=tuple(copied.problems),
            files=tuple(sorted(files, key=lambda file: file.path)),
        )
        manifest.write(folder, made)
        return made

    def _copy_content(self, home: Path) -> _Copied:
        """Bring over what the copied store names."""
        active = 0
        wanted: dict[str, str] = {}
        problems: list[str] = []
        copy = Store.open(home / "store", create=False, read_only=True, locked=False)
        with copy as store, store.read() as txn:
            for key, _ in txn.scan("docs"):
                doc = find(DOCS, txn, key)
                if doc is None:
                    problems.append(f"docs/{key.decode('ascii', 'replace')}: cannot be read")
                    continue
                active += doc.status == "active"
                wanted |= {doc.raw_path: doc.raw_sha256, doc.md_path: doc.md_sha256}
            passages = txn.count("chunks")
        files: list[StoredFile] = []
        for path, sha256 in wanted.items():
            try:
                files.append(self._bring(path, sha256, home))
            except Unreadable as error:
                problems.append(str(error))
        return _Copied(docs=active, passages=passages, files=files, problems=problems)

    def _bring(self, path: str, sha256: str, home: Path) -> StoredFile:
        if not manifest.is_inside(path):
            raise Unreadable("its path leads out of the home", source=path)
        size_bytes = copying.linked(self.paths.root, path, home)
        if size_bytes is not None:
            return StoredFile(path=path, size_bytes=size_bytes, sha256=sha256)
        done = copying.copied(self.paths.root, path, home)
        if done.sha256 != sha256:
            (home / path).unlink()
            raise Unreadable("the file is not what was written", source=path)
        return done

    def _copy_others(self, home: Path, copied: _Copied) -> None:
        for other in copying.others(self.paths):
            try:
                copied.files.append(self._bring_other(other, home))
            except Unreadable as error:
                # Else it went since it was listed: its owner is at work in there.
                if os.path.lexists(self.paths.root / other.path):
                    copied.problems.append(str(error))

    def _bring_other(self, other: copying.Other, home: Path) -> StoredFile:
        if (shown := _text(other.path)) != other.path:
            raise Unreadable("its name is not UTF-8", source=shown)
        if not other.is_link:
            return copying.copied(self.paths.root, other.path, home)
        link = copying.link_at(self.paths.root, other.path)
        if link.link != _text(str(link.link)):
            raise Unreadable("where it leads is not UTF-8", source=other.path)
        copying.put_link(link, home)
        return link

    def _beyond(self, keep: int, newest: str) -> list[Backup]:
        """Whole backups beyond `keep`, the newest of them first; `newest` is one to keep."""
        others = [backup for backup in self.listed().backups if backup.name != newest]
        return others[keep - 1 :]


def _text(path: str) -> str:
    """A path as a manifest can hold it: bytes that are no UTF-8 become U+FFFD."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
