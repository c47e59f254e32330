"""Content files: written into tmp/, fsynced, then hard-linked to a name that must be free."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from kb.errors import ReadOnlyHome, StoreDamaged, StoreFull
from kb.model.failpoints import failpoint
from kb.model.ids import sha256_hex
from kb.store.content.durable import fsync_folder
from kb.store.content.layout import HomePaths
from kb.store.kv import ReadTxn, WriteTxn

_CONTENT_FOLDERS: Final = ("raw", "md")


class RemovedContent(Struct, frozen=True, kw_only=True):
    """What a transaction has removed."""

    size_bytes: int
    object: str = ""
    """What is left outside the store, to be discarded once the transaction is committed."""


class ContentStore(Protocol):
    """The bytes and the markdown of docs, by the paths that records name."""

    @property
    def paths(self) -> HomePaths:
        """The folders of the home on this machine."""
        ...

    @property
    def machine(self) -> str:
        """Whose files can be looked at: this machine's name, empty where no others use the home."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether it is of a home in a database."""
        ...

    def stage(self, relative: str, data: bytes) -> None:
        """Prepare bytes that a transaction will `keep`, outside of it.

        Raises StoreDamaged, StoreFull or ReadOnlyHome.
        """
        ...

    def keep(self, txn: WriteTxn, relative: str, data: bytes) -> bool:
        """Keep staged bytes, in the transaction that names them; False to stage them again."""
        ...

    def replace(self, relative: str, data: bytes) -> None:
        """Write the right bytes where damaged ones are."""
        ...

    def expect(self, txn: ReadTxn, paths: Sequence[str]) -> None:
        """Say that these paths are read next, each of few bytes."""
        ...

    def read(self, relative: str, sha256: str) -> bytes:
        """The bytes of a path. Raises StoreDamaged if they are missing or fail their checksum."""
        ...

    def all_paths(self, txn: ReadTxn) -> Iterator[str]:
        """The paths of all that is kept, whether or not a record names it."""
        ...

    def size_of(self, txn: ReadTxn, relative: str) -> int:
        """How many bytes a path has; 0 if there are none."""
        ...

    def remove(self, txn: WriteTxn, relative: str) -> RemovedContent | None:
        """Remove what no record names any more; None if it was not there, or is in use again.

        Raises OSError.
        """
        ...

    def discard(self, objects: Sequence[str]) -> None:
        """Remove what committed removals have left.

        What is left if it fails is listed by `all_paths`. Raises StoreUnreachable, StoreDenied.
        """
        ...


def entries_of(folder: Path) -> list["os.DirEntry[str]"]:
    """What lies in a folder; nothing if it is a link or not there."""
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as scan:
            return list(scan)
    except FileNotFoundError:
        return []


class ContentFiles:
    """The content files of one home. It never overwrites a file that is whole."""

    machine = ""
    is_shared = False

    def __init__(self, paths: HomePaths) -> None:
        self.paths = paths
        self._made: set[Path] = set()

    def write_if_new(self, relative: str, data: bytes) -> bool:
        """Write `data` durably as `relative`; False if a file of that name existed.

        Of several writers exactly one makes the file, and no reader sees part of it. A compaction
        may remove a file that no doc names, so a transaction that names it checks that it exists.
        Raises StoreDamaged if an existing file has another length, StoreFull and ReadOnlyHome;
        then the file is complete or missing.
        """
        target = self.paths.root / relative
        try:
            self._make_folder(target.parent)
            made = _length_of(target) is None and self._link_new(target, data)
            # Sync even if another writer made the file: that writer may die before its sync.
            fsync_folder(target.parent)
            length = _length_of(target)
        except OSError as error:
            raise translate_os_error(error, target) from error
        if length not in (None, len(data)):
            raise StoreDamaged("another file has this name", place=relative)
        return made

    def all_paths(self, txn: ReadTxn) -> Iterator[str]:  # noqa: ARG002  files need no transaction
        """Paths of the content files, as records name them; symbolic links are not followed."""
        root = self.paths.root
        for folder in _CONTENT_FOLDERS:
            for inner in entries_of(root / folder):
                if inner.is_dir(follow_symlinks=False):
                    for file in entries_of(root / folder / inner.name):
                        if file.is_file(follow_symlinks=False):
                            yield f"{folder}/{inner.name}/{file.name}"

    def size_of(self, txn: ReadTxn, relative: str) -> int:  # noqa: ARG002
        """How many bytes a file has; 0 if it is not there."""
        return _length_of(self.paths.root / relative) or 0

    def remove(self, txn: WriteTxn, relative: str) -> RemovedContent | None:  # noqa: ARG002
        """Remove a regular file; None if it was not there."""
        path = self.paths.root / relative
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                return None
            path.unlink()
        except FileNotFoundError:
            return None
        return RemovedContent(size_bytes=status.st_size)

    def discard(self, objects: Sequence[str]) -> None:
        """Nothing: the files are removed."""

    def stage(self, relative: str, data: bytes) -> None:
        """Write the file, if it is new."""
        self.write_if_new(relative, data)

    def keep(self, txn: WriteTxn, relative: str, data: bytes) -> bool:  # noqa: ARG002
        """Whether no compaction has removed the file meanwhile; none does in the transaction."""
        return (self.paths.root / relative).exists()

    def replace(self, relative: str, data: bytes) -> None:
        """Put a whole file in the place of a damaged one, or of none."""
        target = self.paths.root / relative
        temporary = self._temporary()
        try:
            self._make_folder(target.parent)
            _write_synced(temporary, data)
            os.replace(temporary, target)
            fsync_folder(target.parent)
        except OSError as error:
            raise translate_os_error(error, target) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _temporary(self) -> Path:
        import secrets

        return self.paths.tmp / f"{os.getpid()}-{secrets.token_hex(8)}"

    def _link_new(self, target: Path, data: bytes) -> bool:
        temporary = self._temporary()
        failpoint("content.before_write")
        try:
            _write_synced(temporary, data)
            # A link fails if the name is taken; a rename would replace the existing file.
            os.link(temporary, target)
            failpoint("content.after_link")
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _make_folder(self, folder: Path) -> None:
        if folder in self._made:
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        top = os.path.realpath(self.paths.root)
        # kb makes no links here; through another's link it would write outside the home.
        if os.path.realpath(folder) != os.path.join(top, folder.relative_to(self.paths.root)):
            raise OSError(errno.ELOOP, "a symbolic link is on the path; remove it")
        # Sync even if the folder existed: its maker may have died before the sync.
        fsync_folder(folder.parent)
        fsync_folder(folder.parent.parent)
        self._made.add(folder)

    def expect(self, txn: ReadTxn, paths: Sequence[str]) -> None:
        """Nothing: a file costs no round trip."""

    def read(self, relative: str, sha256: str) -> bytes:
        """The bytes of a file. Raises StoreDamaged if it is missing or fails its checksum."""
        path = self.paths.root / relative
        try:
            data = path.read_bytes()
        except OSError as error:
            detail = f"cannot be read ({error.strerror})"
            raise StoreDamaged(detail, place=relative) from error
        if sha256_hex(data) != sha256:
            raise StoreDamaged("the file is not what was written", place=relative)
        return data


def _write_synced(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        failpoint("content.after_write")
        os.fsync(fd)
        failpoint("content.after_fsync")
    finally:
        os.close(fd)


def _length_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def translate_os_error(error: OSError, place: Path) -> StoreFull | ReadOnlyHome | StoreDamaged:
    """The KbError for an error of the operating system."""
    detail = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFull(detail, place=place)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnlyHome(detail, place=place)
    return StoreDamaged(detail, place=place)
