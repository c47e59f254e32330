"""The notebook of a home that machines share: its objects and its branch lie with the records.

Each machine has a repository of its own, which follows: a commit is made in the database first, by
a transaction that moves the branch only from where the commit stands on.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.errors import NotebookUnfit
from kb.knowledge.notebook.gitfiles import GitFolder, sync_folder, write_synced
from kb.knowledge.notebook.worktree import Change
from kb.store import home_files
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import HOME_FILES, HomeFile
from kb.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from dulwich.objects import ObjectID, ShaFile

    from kb.knowledge.notebook.repository import Repository

_GIT: Final = "notebook/.git/"
_TREE: Final = "notebook/"
_OBJECTS: Final = f"{_GIT}objects/"
_BATCH: Final = 200
_HEAD_FILES: Final = ("HEAD", "config")
_SHARED_REF: Final = "refs/kb/shared"


class SharedNotebook:
    """The notebook's repository in the store of a home that machines share."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def held(self, wait_s: float) -> AbstractContextManager[None]:
        """Hold it, on one machine at a time. Raises StoreBusy after `wait_s` seconds."""
        return self._store.exclusive("notebook", wait_s)

    @property
    def branch(self) -> str | None:
        """The name of its branch; None if nobody has made it."""
        with self._store.read() as txn:
            name = _branch(txn)
        return None if name is None else name.removeprefix("refs/heads/")

    def fetch(self, repository: "Repository", wait_s: float) -> None:
        """Bring a machine's repository to the shared branch, its work tree with it.

        Edits stay. Raises NotebookUnfit if it has commits that the shared one has not.
        """
        head = repository.head()
        with self._store.read() as txn:
            branch, tip = _branch(txn), _tip(txn, head.branch)
            if tip is None and branch is None:
                # Nobody has made it so far: the first commit here does.
                if head.commit is not None:
                    raise _unshared(repository.root)
                return
            if branch is not None and branch != head.branch:
                detail = f"it is on {head.branch}, and the shared one on {branch}; `git switch`"
                raise NotebookUnfit(detail, place=repository.root)
            if tip is None or tip == head.commit:
                return
            if head.commit is None or not self._bring_newer(txn, repository, tip):
                self._bring_all(txn, repository.git)
        write_ref(repository.git, _SHARED_REF, tip)
        if head.commit is not None and not repository.leads_to(tip, head.commit):
            raise _unshared(repository.root)
        repository.follow(tip, wait_s)

    def _bring_newer(self, txn: ReadTxn, repository: "Repository", tip: "ObjectID") -> bool:
        """Write the objects that a commit leads to and that are not here; False if one lacks."""
        fetched: list[ShaFile] = []
        seen: set[ObjectID] = set()
        pending = [tip]
        while pending:
            names = [sha for sha in dict.fromkeys(pending) if sha not in seen]
            pending = []
            lacking = [sha for sha in names if sha not in repository.objects]
            for start in range(0, len(lacking), _BATCH):
                batch = lacking[start : start + _BATCH]
                seen.update(batch)
                for sha, data in _objects(txn, batch):
                    if data is None:
                        return False
                    obj = _object(sha, data, repository.root)
                    fetched.append(obj)
                    pending += _named_by(obj)
        # What an object names comes first, so that a kill leaves none that leads nowhere.
        repository.git.write_objects(reversed(fetched))
        return True

    def _bring_all(self, txn: ReadTxn, git: GitFolder) -> None:
        """Write every object and pack that is not here."""
        names = [file for file in home_files.listed(txn) if file.path.startswith(_OBJECTS)]
        folders = set()
        # An index of a pack comes after its pack.
        for file in sorted(names, key=lambda file: file.path.endswith(".idx")):
            target = git.path / file.path.removeprefix(_GIT)
            if ".." in target.parts or target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name("tmp_obj_kb")
            write_synced(temporary, home_files.read(txn, file), 0o444)
            temporary.rename(target)
            folders |= {target.parent, target.parent.parent}
        for folder in folders:
            sync_folder(folder)

    def publish(
        self,
        repository: "Repository",
        old: "ObjectID | None",
        new: "ObjectID",
        objects: "Iterable[ShaFile]",
        changes: Iterable[Change],
    ) -> bool:
        """Commit a move of the branch from `old` to `new`; False if another machine has moved it.

        The files of the commit come along, so that the records alone make up the whole notebook.
        """
        branch, git = repository.head().branch, repository.git
        made = {f"{_OBJECTS}{obj.id.decode()[:2]}/{obj.id.decode()[2:]}": obj for obj in objects}
        files = list(changes)
        with self._store.write() as txn:
            if _tip(txn, branch) != old:
                return False
            txn.expect(HOME_FILES.name, map(lsid_key, made))
            for path, obj in made.items():
                if home_files.get(txn, path) is None:
                    _put(txn, path, obj.as_legacy_object())
            _put_files(txn, files, repository.blob)
            if home_files.get(txn, f"{_GIT}HEAD") is None:
                for name in _HEAD_FILES:
                    _put(txn, f"{_GIT}{name}", (git.path / name).read_bytes())
            _put(txn, f"{_GIT}{branch}", new + b"\n")
            # What a folder brought along is not that of the new commit.
            home_files.remove(txn, f"{_GIT}index")
        return True


def write_ref(git: GitFolder, name: str, commit: "ObjectID") -> None:
    """Let a ref of ours name a commit."""
    place = git.path / name
    for folder in (place.parent, git.own):
        folder.mkdir(parents=True, exist_ok=True)
    write_synced(git.temporary(), commit + b"\n", 0o644)
    git.temporary().rename(place)


def _unshared(root: Path) -> NotebookUnfit:
    detail = (
        "it has commits that the shared notebook has not; keep them on a branch of their own "
        f"(`git branch mine`), `git reset --keep {_SHARED_REF}`, and hand the notes in by "
        "`kb note add`"
    )
    return NotebookUnfit(detail, place=root)


def _branch(txn: ReadTxn) -> str | None:
    """The shared branch; None if there is no notebook."""
    file = home_files.get(txn, f"{_GIT}HEAD")
    if file is None:
        return None
    return home_files.read(txn, file).decode().strip().removeprefix("ref: ")


def _tip(txn: ReadTxn, branch: str) -> "ObjectID | None":
    """The newest commit of a branch; None if it has none."""
    from dulwich.objects import ObjectID

    file = home_files.get(txn, f"{_GIT}{branch}")
    if file is not None:
        return ObjectID(home_files.read(txn, file).strip())
    packed = home_files.get(txn, f"{_GIT}packed-refs")
    for line in home_files.read(txn, packed).splitlines() if packed else ():
        target, _, name = line.partition(b" ")
        if name == branch.encode():
            return ObjectID(target)
    return None


def _objects(
    txn: ReadTxn, names: "Iterable[ObjectID]"
) -> "Iterator[tuple[ObjectID, bytes | None]]":
    """The stored bytes of loose objects; None for one that is not there."""
    paths = {name: f"{_OBJECTS}{name.decode()[:2]}/{name.decode()[2:]}" for name in names}
    txn.expect(HOME_FILES.name, map(lsid_key, paths.values()))
    for name, path in paths.items():
        file = home_files.get(txn, path)
        yield name, None if file is None else home_files.read(txn, file)


def _object(name: "ObjectID", data: bytes, root: Path) -> "ShaFile":
    from dulwich.objects import ShaFile

    obj = ShaFile.from_file(io.BytesIO(data))
    if obj.id != name:
        raise NotebookUnfit("an object in the database is not what its name says", place=root)
    return obj


def _named_by(obj: "ShaFile") -> "list[ObjectID]":
    from dulwich.objects import Commit, Tree

    match obj:
        case Commit():
            return [obj.tree, *obj.parents]
        case Tree():
            return [entry.sha for entry in obj.iteritems()]
        case _:
            return []


def _put_files(
    txn: WriteTxn, changes: Iterable[Change], blob: "Callable[[ObjectID], bytes]"
) -> None:
    for change in changes:
        path = f"{_TREE}{change.path}"
        if path.encode("utf-8", "replace").decode() != path:
            continue
        if change.new is None:
            home_files.remove(txn, path)
        elif change.new.is_file:
            _put(txn, path, blob(change.new.sha), executable=bool(change.new.mode & 0o100))


def _put(txn: WriteTxn, path: str, data: bytes, *, executable: bool = False) -> None:
    digest = hashlib.sha256(data).hexdigest()
    file = HomeFile(path=path, size_bytes=len(data), sha256=digest, executable=executable)
    home_files.put(txn, file, data)
