"""Brings the work tree and git's index to a commit, except where a person has edits."""

import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import NotebookUnfit
from kb.knowledge.notebook.gitfiles import write_synced
from kb.knowledge.notebook.paths import folded
from kb.knowledge.notebook.tree import FILE, Snapshot, TreeEntry
from kb.model.failpoints import failpoint

if TYPE_CHECKING:
    from dulwich.index import ConflictedIndexEntry, IndexEntry
    from dulwich.objects import ObjectID

_COMPARED_BYTES_MAX: Final = 64 << 20
_SEAL_BYTES: Final = 20
SPLIT: Final = "its index is split or sparse"
_STEP: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Change(Struct, frozen=True, kw_only=True):
    """A path whose content a commit changes; None for a missing file."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None


class WorkTree:
    """The files that a person sees. It follows no link, so it touches nothing outside."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes | None:
        """The bytes of a regular file; None if there is none, or it is over 64 MiB."""
        parent = self._parent(path)
        if parent is None:
            return None
        try:
            fd = os.open(
                os.path.basename(path),
                os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                dir_fd=parent,
            )
        except OSError:
            return None
        finally:
            os.close(parent)
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _COMPARED_BYTES_MAX:
                return None
            return file.read()

    def is_there(self, path: str) -> bool:
        """Whether anything is at a path, or in place of one of its folders."""
        at = self.root
        for step in path.split("/"):
            at = at / step
            if not os.path.lexists(at):
                return False
            if at.is_symlink() or not at.is_dir():
                return True
        return True

    def has(self, path: str, entry: TreeEntry | None) -> bool:
        """Whether exactly this is at a path; with None, nothing."""
        if entry is None:
            return not self.is_there(path)
        data = self.read(path) if entry.is_file else None
        return data is not None and blob_id(data) == entry.sha

    def place(self, path: str, data: bytes, mode: int, temporary: Path, *, replace: bool) -> bool:
        """Put a complete file in place at once; False if that is not possible any more.

        Without `replace` an existing file stays. Raises OSError if the disk fails.
        """
        parent = self._parent(path, make=True)
        if parent is None:
            return False
        # As in a checkout: the mode that the owner's umask leaves.
        write_synced(temporary, data, 0o777 if mode & 0o100 else 0o666)
        name = os.path.basename(path)
        try:
            if replace:
                os.rename(temporary, name, dst_dir_fd=parent)
            else:
                os.link(temporary, name, dst_dir_fd=parent)
            os.fsync(parent)
        except (FileExistsError, IsADirectoryError):
            return False
        finally:
            os.close(parent)
            temporary.unlink(missing_ok=True)
        return True

    def remove(self, path: str) -> None:
        """Remove a file, and the folders above it that become empty."""
        parent = self._parent(path)
        if parent is None:
            return
        with suppress(FileNotFoundError):
            os.unlink(os.path.basename(path), dir_fd=parent)
        os.close(parent)
        for folder in list((self.root / path).parents)[: path.count("/")]:
            try:
                os.rmdir(folder)
            except OSError:
                return

    def stat(self, path: str) -> os.stat_result:
        """The stat of a file, as git's index stores it."""
        return os.lstat(self.root / path)

    def _parent(self, path: str, *, make: bool = False) -> int | None:
        """The folder of a path, opened; None if there is none, or it is behind a link."""
        fd = os.open(self.root, _STEP)
        for step in path.split("/")[:-1]:
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, 0o777, dir_fd=fd)
                inner = os.open(step, _STEP, dir_fd=fd)
            except (FileNotFoundError, NotADirectoryError, OSError) as error:
                os.close(fd)
                if make and isinstance(error, PermissionError):
                    raise
                return None
            os.close(fd)
            fd = inner
        return fd


class OccupiedPaths:
    """The taken paths of commit and disk, as a case-insensitive file system sees them."""

    def __init__(self, snapshot: Snapshot, tree: WorkTree) -> None:
        self._tree = tree
        self._files: set[str] = set()
        self._folders: dict[str, str] = {}
        for path, _ in snapshot.files():
            self.add(path)

    def add(self, path: str) -> None:
        """Add the path of a new file."""
        self._files.add(folded(path))
        for folder in _folders_of(path):
            self._folders.setdefault(folded(folder), folder)

    def discard(self, path: str) -> None:
        """Remove the path of a file that is gone."""
        self._files.discard(folded(path))

    def __contains__(self, path: object) -> bool:
        """Whether something is at a path, or in its way."""
        if not isinstance(path, str):
            return False
        if folded(path) in self._files or folded(path) in self._folders:
            return True
        for folder in _folders_of(path):
            if folded(folder) in self._files:
                return True
            if self._folders.get(folded(folder), folder) != folder:
                return True
        return self._tree.is_there(path)

    def folders(self) -> list[str]:
        """Every folder of the commit."""
        return sorted(self._folders.values())


class GitIndex:
    """The staged files. `data` is the file to write back, without git's caches."""

    def __init__(self, path: Path | None) -> None:
        """With None, or if the file does not exist, nothing is staged."""
        from dulwich.index import read_index_dict_with_version

        self._entries: dict[bytes, IndexEntry | ConflictedIndexEntry] = {}
        self._version: int | None = None
        if path is None or not path.exists():
            return
        raw = path.read_bytes()
        body, seal = raw[:-_SEAL_BYTES], raw[-_SEAL_BYTES:]
        if seal not in (_seal(body), bytes(_SEAL_BYTES)):
            raise NotebookUnfit("its index is damaged; remove it and run `git reset`", place=path)
        file = io.BytesIO(raw)
        entries, self._version, _ = read_index_dict_with_version(file)
        self._entries = dict(entries)
        if file.tell() != len(body):
            # The library refuses an extension that a program must understand to write it back.
            raise NotebookUnfit(SPLIT, place=path)

    @property
    def is_merging(self) -> bool:
        """Whether a merge has left conflicts."""
        from dulwich.index import ConflictedIndexEntry

        return any(isinstance(entry, ConflictedIndexEntry) for entry in self._entries.values())

    def has(self, path: str, entry: TreeEntry | None) -> bool:
        """Whether exactly this is staged at a path; with None, nothing."""
        from dulwich.index import IndexEntry

        staged = self._entries.get(os.fsencode(path))
        if entry is None:
            return staged is None
        return isinstance(staged, IndexEntry) and staged.sha == entry.sha

    def put(self, path: str, entry: TreeEntry, status: os.stat_result) -> None:
        """Stage a commit's file at a path."""
        from dulwich.index import index_entry_from_stat

        self._entries[os.fsencode(path)] = index_entry_from_stat(status, entry.sha, mode=entry.mode)

    def remove(self, path: str) -> None:
        """Stage the removal of a path."""
        self._entries.pop(os.fsencode(path), None)

    def data(self) -> bytes:
        """The index file."""
        from dulwich.index import write_index_dict

        file = io.BytesIO()
        write_index_dict(file, self._entries, version=self._version)
        body = file.getvalue()
        return body + _seal(body)


def _seal(body: bytes) -> bytes:
    """The hash that git's format requires."""
    import hashlib

    return hashlib.sha1(body, usedforsecurity=False).digest()


def level(
    tree: WorkTree,
    index: GitIndex,
    changes: Iterable[Change],
    read: "Callable[[ObjectID], bytes]",
    temporary: Path,
) -> list[str]:
    """Bring each path from its old state to its new state; returns those that stay.

    A path stays if something else is there or staged: somebody's edit. New files come first and
    removals last, so that an interruption loses nothing.
    """
    left: list[str] = []
    for change in sorted(changes, key=lambda change: change.new is None):
        if not (index.has(change.path, change.old) or index.has(change.path, change.new)):
            left.append(change.path)
        elif tree.has(change.path, change.new) or _brought(tree, change, read, temporary):
            if change.new is None:
                index.remove(change.path)
            else:
                index.put(change.path, change.new, tree.stat(change.path))
        else:
            left.append(change.path)
        failpoint("notebook.after_file")
    return left


def _brought(
    tree: WorkTree, change: Change, read: "Callable[[ObjectID], bytes]", temporary: Path
) -> bool:
    if not tree.has(change.path, change.old):
        return False
    if change.new is None:
        tree.remove(change.path)
        return True
    data = read(change.new.sha)
    is_new = change.old is None
    return tree.place(change.path, data, change.new.mode, temporary, replace=not is_new)


def blob_id(data: bytes) -> "ObjectID":
    """The id that git gives these bytes."""
    from dulwich.objects import Blob

    return Blob.from_string(data).id


def new_file(data: bytes) -> TreeEntry:
    """The tree entry of a new file with these bytes."""
    return TreeEntry(FILE, blob_id(data))


def _folders_of(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))
