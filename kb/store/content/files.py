"""Files written whole: into tmp/, fsynced, then linked to their name, which must be free."""

import errno
import os
import secrets
from pathlib import Path

from kb.errors import ReadOnlyHome, StoreDamaged, StoreFull
from kb.model.failpoints import failpoint
from kb.model.ids import sha256_hex
from kb.store.content.layout import HomePaths


class ContentStore:
    """The files of one home. Nothing here deletes a file that has a name."""

    def __init__(self, paths: HomePaths) -> None:
        self.paths = paths
        self._made: set[Path] = set()

    def write_if_new(self, relative: str, data: bytes) -> bool:
        """Make `relative` hold `data`, durably; False where a file of that name was there.

        Of several writers exactly one makes the file, and no reader ever sees part of it. A sweep
        may take it again while no doc names it: who names it looks first, in that transaction.
        Raises StoreDamaged where the file that is there has another length, StoreFull and
        ReadOnlyHome; then nothing is under that name, or the whole file.
        """
        target = self.paths.root / relative
        try:
            self._make_folder(target.parent)
            made = _length_of(target) is None and self._link_new(target, data)
            # Also where another writer made it: it may not have come to this, or may never.
            _sync_folder(target.parent)
            length = _length_of(target)
        except OSError as error:
            raise translate_os_error(error, target) from error
        if length not in (None, len(data)):
            raise StoreDamaged("another file has this name", place=relative)
        return made

    def _link_new(self, target: Path, data: bytes) -> bool:
        temporary = self.paths.tmp / f"{os.getpid()}-{secrets.token_hex(8)}"
        failpoint("content.before_write")
        try:
            _write_synced(temporary, data)
            # A link fails where the name is taken; a rename would replace what is there.
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
        # kb makes no links here: whoever did would have us write where it leads.
        if os.path.realpath(folder) != os.path.join(top, folder.relative_to(self.paths.root)):
            raise OSError(errno.ELOOP, "a link lies on the way; remove it")
        # Also where it was there: whoever made it may not have come to this.
        _sync_folder(folder.parent)
        _sync_folder(folder.parent.parent)
        self._made.add(folder)

    def read(self, relative: str, sha256: str) -> bytes:
        """The bytes of a file; StoreDamaged where it is absent or not what was written."""
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


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _length_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def translate_os_error(error: OSError, place: Path) -> StoreFull | ReadOnlyHome | StoreDamaged:
    """The error of this program that says what the system said."""
    detail = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFull(detail, place=place)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnlyHome(detail, place=place)
    return StoreDamaged(detail, place=place)
