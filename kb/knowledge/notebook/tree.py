"""The files of a commit, and changes to them for the next one; only changed trees are written."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from dulwich.object_store import BaseObjectStore
    from dulwich.objects import ObjectID, Tree

FILE: Final = 0o100644
_FOLDER: Final = 0o040000
_STEPS_OUT: Final = frozenset((b"", b".", b"..", b".git"))


class TreeEntry(Struct, frozen=True):
    """An entry of a git tree: its mode, and its object's id in hexadecimal."""

    mode: int
    sha: "ObjectID"

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file: no link, no submodule."""
        return self.mode & 0o170000 == 0o100000


class _TreeNode:
    """One level: its entries by name, and the folders below that were opened."""

    def __init__(self, entries: dict[bytes, TreeEntry]) -> None:
        self.entries = entries
        self.opened: dict[bytes, _TreeNode] = {}
        self.is_changed = False


class Snapshot:
    """Paths are relative, with slashes, any byte of a name kept (surrogate escapes)."""

    def __init__(self, objects: "BaseObjectStore", tree: "ObjectID | None") -> None:
        self._objects = objects
        self._top = _TreeNode(self._read(tree) if tree else {})

    def get(self, path: str) -> TreeEntry | None:
        """The file at a path; None if there is none, or a folder."""
        *above, name = os.fsencode(path).split(b"/")
        folder: _TreeNode | None = self._top
        for step in above:
            folder = self._open(folder, step) if folder else None
        entry = folder.entries.get(name) if folder else None
        return None if entry is None or entry.mode == _FOLDER else entry

    def files(self) -> Iterator[tuple[str, TreeEntry]]:
        """Everything except folders, with its path."""
        yield from self._below(self._top, b"")

    def put(self, path: str, entry: TreeEntry) -> None:
        """Put an entry at a path; the caller has checked that no file is in the way."""
        *above, name = os.fsencode(path).split(b"/")
        folder = self._top
        folder.is_changed = True
        for step in above:
            inner = self._open(folder, step)
            if inner is None:
                inner = folder.opened[step] = _TreeNode({})
            inner.is_changed = True
            folder = inner
        folder.entries[name] = entry

    def remove(self, path: str) -> None:
        """Remove the entry at a path."""
        *above, name = os.fsencode(path).split(b"/")
        folder = self._top
        folder.is_changed = True
        for step in above:
            inner = self._open(folder, step)
            assert inner is not None
            inner.is_changed = True
            folder = inner
        del folder.entries[name]

    def written(self) -> "tuple[ObjectID, list[Tree]]":
        """The id of the root tree, and the trees that are new since the last call."""
        made: list[Tree] = []
        return self._write(self._top, made), made

    def _write(self, folder: _TreeNode, made: "list[Tree]") -> "ObjectID":
        from dulwich.objects import Tree

        for name, inner in folder.opened.items():
            if inner.is_changed:
                self._settle(folder, name, inner, made)
        folder.is_changed = False
        tree = Tree()
        for name, entry in folder.entries.items():
            tree.add(name, entry.mode, entry.sha)
        made.append(tree)
        return tree.id

    def _settle(self, folder: _TreeNode, name: bytes, inner: _TreeNode, made: "list[Tree]") -> None:
        sha = self._write(inner, made)
        if inner.entries:
            folder.entries[name] = TreeEntry(_FOLDER, sha)
        else:
            # Git keeps no empty folders.
            folder.entries.pop(name, None)
            made.pop()

    def _open(self, folder: _TreeNode, name: bytes) -> _TreeNode | None:
        if name not in folder.opened:
            entry = folder.entries.get(name)
            if entry is None or entry.mode != _FOLDER:
                return None
            folder.opened[name] = _TreeNode(self._read(entry.sha))
        return folder.opened[name]

    def _read(self, tree: "ObjectID") -> dict[bytes, TreeEntry]:
        from dulwich.objects import Tree

        obj = self._objects[tree]
        assert isinstance(obj, Tree)
        entries = {name: TreeEntry(mode, sha) for name, mode, sha in obj.iteritems()}
        # A path is followed step by step: such a name would lead out, or into git's own folder.
        if any(b"/" in name or name.lower() in _STEPS_OUT for name in entries):
            raise ValueError("a tree has a name that no file can have")
        return entries

    def _below(self, folder: _TreeNode, above: bytes) -> Iterator[tuple[str, TreeEntry]]:
        for name, entry in sorted(folder.entries.items()):
            if entry.mode == _FOLDER:
                inner = self._open(folder, name)
                if inner is not None:
                    yield from self._below(inner, above + name + b"/")
            else:
                yield os.fsdecode(above + name), entry
        for name, inner in folder.opened.items():
            if name not in folder.entries:
                yield from self._below(inner, above + name + b"/")
