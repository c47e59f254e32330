"""Where a registry is published: a folder, or a tar of one. Both are read before they are written.

In a folder every file is replaced whole: first the files that the index names, then the index,
then obsolete files are removed. A pull that reads meanwhile meets a wrong hash at worst, and the
next pull succeeds.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from kb.errors import Refused, StoreFull, Unreadable, UsageError
from kb.knowledge.packs.portable import ARCHIVE_BYTES_MAX
from kb.knowledge.packs.tar import TarMember, is_plain, packed, unpacked
from kb.knowledge.registry.index import ENTRIES_MAX, INDEX, SIGNATURE
from kb.model.source import display_name
from kb.store.content.durable import fsync_folder, write_temporary
from kb.store.content.inside import read_inside

TAR_SUFFIX: Final = ".tar"
_FILE_MODE: Final = 0o644
_FOLDER_MODE: Final = 0o755
_FILES_MAX: Final = 64 * ENTRIES_MAX


class RegistryTarget(Protocol):
    """A registry as files; paths are relative, with slashes."""

    def read(self, path: str, bytes_max: int) -> bytes | None:
        """A file, None where it is not there. Raises SourceError's children."""
        ...

    def write(self, files: Mapping[str, bytes], gone: set[str]) -> None:
        """Write these files, in their order, and then remove those that are gone.

        Raises StoreFull or UsageError.
        """
        ...


def target_at(target: Path) -> RegistryTarget:
    """The target at a path. Raises UsageError, and SourceError where a tar cannot be read."""
    if target.suffix == TAR_SUFFIX:
        return TarTarget(target)
    return FolderTarget(target)


class FolderTarget:
    """A folder, which is made where it is missing; others may read what is in it."""

    def __init__(self, folder: Path) -> None:
        """Raise UsageError for a folder with other things in it."""
        self._folder = folder
        taken = folder.is_dir() and any(folder.iterdir()) and not (folder / INDEX).exists()
        if taken or (os.path.lexists(folder) and not folder.is_dir()):
            raise UsageError(f"{display_name(folder)} is there and no registry; name a new folder")

    def read(self, path: str, bytes_max: int) -> bytes | None:
        """Read it from inside the folder."""
        try:
            return read_inside(self._folder, path, bytes_max)
        except Unreadable:
            if os.path.lexists(self._folder / path):
                raise
            return None

    def write(self, files: Mapping[str, bytes], gone: set[str]) -> None:
        """Replace each file whole."""
        try:
            for path, data in files.items():
                self._replace(self._folder / path, data)
            for path in sorted(gone):
                (self._folder / path).unlink(missing_ok=True)
        except OSError as error:
            raise StoreFull(error.strerror or "", place=display_name(self._folder)) from error

    def _replace(self, path: Path, data: bytes) -> None:
        for folder in (self._folder, path.parent.parent, path.parent):
            if not folder.is_dir():
                folder.mkdir(parents=True)
                folder.chmod(_FOLDER_MODE)
        temporary = write_temporary(path, data)
        temporary.chmod(_FILE_MODE)
        os.replace(temporary, path)
        fsync_folder(path.parent)


class TarTarget:
    """A tar, written anew as a whole."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._members: dict[str, bytes] = {}
        if file.exists():
            data = read_inside(file.parent, file.name, ARCHIVE_BYTES_MAX)
            members = unpacked(
                data, display_name(file), members_max=_FILES_MAX, bytes_max=ARCHIVE_BYTES_MAX
            )
            self._members = {member.name: bytes(member.data) for member in members}

    def read(self, path: str, bytes_max: int) -> bytes | None:
        """Give a member of it."""
        data = self._members.get(path)
        if data is not None and len(data) > bytes_max:
            raise Refused(f"over the limit of {bytes_max:,} bytes", source=path)
        return data

    def write(self, files: Mapping[str, bytes], gone: set[str]) -> None:
        """Write every member into a new file, and move that to its place."""
        all_files = {**self._members, **files}
        files_left = {path: data for path, data in all_files.items() if path not in gone}
        if wrong := next((path for path in files_left if not is_plain(path)), None):
            raise UsageError(f"{wrong} is too long a name for a tar; publish to a folder")
        last_names = (INDEX, SIGNATURE)
        names = [
            *sorted(files_left.keys() - set(last_names)),
            *(name for name in last_names if name in files_left),
        ]
        content = b"".join(packed(TarMember(name, files_left[name]) for name in names))
        try:
            os.replace(write_temporary(self._file, content), self._file)
            fsync_folder(self._file.parent)
        except OSError as error:
            raise StoreFull(error.strerror or "", place=display_name(self._file)) from error
