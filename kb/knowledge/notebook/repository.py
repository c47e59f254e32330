"""The notebook's git repository: its branch moves by whole commits, each exactly once."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import NotebookUnfit, StoreBusy
from kb.intake.git.remote import BadRemote
from kb.knowledge.notebook.gitfiles import GitFolder, fill, sync_folder
from kb.knowledge.notebook.gitopen import opened
from kb.knowledge.notebook.tree import Snapshot, TreeEntry
from kb.knowledge.notebook.worktree import Change, GitIndex, WorkTree, level, new_file
from kb.model.failpoints import failpoint

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from dulwich.config import ConfigFile
    from dulwich.object_store import BaseObjectStore
    from dulwich.objects import Commit, ObjectID, ShaFile
    from dulwich.pack import UnpackedObject

    from kb.knowledge.notebook.sharing import SharedNotebook

# How often a commit is made again because somebody else has moved the branch.
_TRIES_MAX: Final = 5
_AUTHOR: Final = b"kb <kb@localhost>"
_MESSAGE: Final = re.compile(
    rb"(?P<verb>store|undo|tidy)\((?P<job>j[0-9a-f]{1,40}|t[0-9a-f]{12})\): (?P<path>[^\n]*)"
)
# While one of these files exists, a person is in the middle of something on this branch.
_UNDER_WAY: Final = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
)


class Head(Struct, frozen=True, kw_only=True):
    """The checked out branch and its newest commit; None if it has none."""

    branch: str
    commit: "ObjectID | None"


class Logged(Struct, frozen=True, kw_only=True):
    """A commit of the branch; `verb`, `job_id` and `path` where its message is one of ours.

    Of one that tidies, `job_id` is the id that it gives itself, and `path` says how much it did.
    """

    commit: str
    parent: str | None
    subject: str
    committed_s: int
    verb: str = ""
    job_id: str = ""
    path: str = ""


class Draft:
    """Prepared commits: each follows the one before, and none exists until published."""

    def __init__(self, repository: "Repository", head: Head) -> None:
        self._repository = repository
        self.head = head
        self.tip = head.commit
        self.files = repository.snapshot(head.commit)
        self.objects: list[ShaFile] = []
        self._blobs: dict[ObjectID, bytes] = {}

    def read(self, path: str) -> bytes | None:
        """The bytes of the file at a path in the newest commit; None if there is none."""
        entry = self.files.get(path)
        if entry is None or not entry.is_file:
            return None
        cached = self._blobs.get(entry.sha)
        return self._repository.blob(entry.sha) if cached is None else cached

    def put(self, path: str, data: bytes) -> None:
        """Set a file's bytes; an existing file keeps its mode."""
        from dulwich.objects import Blob

        existing, new = self.files.get(path), new_file(data)
        self.files.put(path, TreeEntry(existing.mode, new.sha) if existing else new)
        self._blobs[new.sha] = data
        self.objects.append(Blob.from_string(data))

    def move(self, old: str, new: str) -> None:
        """Move a file to another path."""
        entry = self.files.get(old)
        assert entry is not None
        self.files.remove(old)
        self.files.put(new, entry)

    def commit(self, message: str, now_ms: int) -> "ObjectID":
        """Make a commit of the files as they are now; returns its id."""
        from dulwich.objects import Commit

        tree, made = self.files.written()
        commit = Commit()
        commit.tree = tree
        commit.parents = [self.tip] if self.tip else []
        commit.author = commit.committer = self._repository.author
        commit.author_time = commit.commit_time = now_ms // 1000
        commit.author_timezone = commit.commit_timezone = 0
        commit.encoding = b"UTF-8"
        commit.message = message.encode("utf-8", "replace") + b"\n"
        self.objects += [*made, commit]
        self.tip = commit.id
        return commit.id


class Repository:
    """An open notebook. Write only to one that `at_work` returns."""

    def __init__(self, root: Path, shared: "SharedNotebook | None" = None) -> None:
        """`shared` is the repository that it is a copy of.

        Raises NotebookUnfit if kb cannot work with the repository.
        """
        from dulwich.errors import NotGitRepository
        from dulwich.repo import UnsupportedExtension, UnsupportedVersion

        self.root = root
        self.shared = shared
        self.tree = WorkTree(root)
        self.git = GitFolder(root / ".git")
        try:
            self._repo = opened(root)
        except (NotGitRepository, UnsupportedExtension, UnsupportedVersion, ValueError) as error:
            raise NotebookUnfit(f"git cannot read it ({error})", place=root) from error
        self._check_form()

    def close(self) -> None:
        """Close the files."""
        self._repo.close()

    @property
    def objects(self) -> "BaseObjectStore":
        """All objects of the repository."""
        return self._repo.object_store

    @property
    def author(self) -> bytes:
        """The author of commits: from the repository's own settings, or else kb."""
        config = self._repo.get_config()
        try:
            name, mail = config.get((b"user",), b"name"), config.get((b"user",), b"email")
        except KeyError:
            return _AUTHOR
        if not name.strip() or re.search(rb"[\n\0<>]", name + mail):
            return _AUTHOR
        return name.strip() + b" <" + mail.strip() + b">"

    def head(self) -> Head:
        """The checked out branch. Raises NotebookUnfit if no branch is checked out."""
        from dulwich.refs import Ref, check_ref_format

        raw = (self.git.path / "HEAD").read_bytes().strip()
        name = raw.removeprefix(b"ref: ")
        if name == raw:
            detail = "no branch is checked out (its HEAD is detached); `git switch` to one"
            raise NotebookUnfit(detail, place=self.root)
        if not name.startswith(b"refs/heads/") or not check_ref_format(Ref(name[5:])):
            raise NotebookUnfit("its HEAD names no branch", place=self.root)
        return Head(branch=name.decode("utf-8", "surrogateescape"), commit=self._tip(name))

    def snapshot(self, commit: "ObjectID | None") -> Snapshot:
        """The files of a commit; with None, no files."""
        return Snapshot(self._repo.object_store, self._commit(commit).tree if commit else None)

    def blob(self, sha: "ObjectID") -> bytes:
        """The bytes of a file that a snapshot holds."""
        from dulwich.objects import Blob

        obj = self._repo.object_store[sha]
        if not isinstance(obj, Blob):
            raise NotebookUnfit("a folder or a link is in place of a note", place=self.root)
        return obj.data

    def log(self) -> Iterator[Logged]:
        """The commits of the branch, the newest first."""
        tip = self.head().commit
        for walked in self._repo.get_walker(include=[tip]) if tip else ():
            yield _logged(walked.commit)

    def leads_to(self, tip: "ObjectID | None", ancestor: "ObjectID") -> bool:
        """Whether a commit is the other one or one of its ancestors."""
        if tip == ancestor:
            return True
        walker = self._repo.get_walker(include=[tip]) if tip else ()
        return any(walked.commit.id == ancestor for walked in walker)

    def origin(self) -> str | None:
        """The address of the remote `origin`, None without one. Raises BadRemote.

        Only the repository's own settings are read, and kb does not push to an address that git
        would rewrite.
        """
        config, section = self._repo.get_config(), (b"remote", b"origin")
        addresses = _values(config, section, b"url")
        if not addresses:
            return None
        address = addresses[0].decode("utf-8", "surrogateescape")
        if len(addresses) > 1:
            raise BadRemote("it has several addresses")
        if _values(config, section, b"pushurl"):
            raise BadRemote(
                "kb does not follow remote.origin.pushurl; use one address to fetch and to push"
            )
        if any(section_name[0].lower() == b"url" for section_name in config.sections()):
            raise BadRemote("kb does not follow url.*.insteadOf; write the address in full")
        return address

    def packed(
        self,
        have: "AbstractSet[ObjectID]",
        want: "AbstractSet[ObjectID]",
        *,
        ofs_delta: bool = False,
        progress: Callable[[bytes], None] | None = None,  # noqa: ARG002  nobody looks on
    ) -> "tuple[int, Iterator[UnpackedObject]]":
        """The objects of `want` that `have` lacks, as a pack: their number, and each."""
        return self._repo.generate_pack_data(set(have), set(want), ofs_delta=ofs_delta)

    def changes_of(self, commit: str) -> list[Change]:
        """The changes of a commit against its first parent."""
        changed = self._commit(commit.encode())
        return self._changes(changed.parents[0] if changed.parents else None, changed.id)

    def draft(self) -> Draft:
        """A draft of commits on the present branch."""
        return Draft(self, self.head())

    def is_clean(self, path: str, entry: TreeEntry) -> bool:
        """Whether a person has neither edited the file nor staged changes to it."""
        return self.tree.has(path, entry) and self._index().has(path, entry)

    def publish(self, draft: Draft, wait_s: float) -> list[str] | None:
        """Move the branch to a draft's last commit, then update the work tree.

        Returns the paths that were left as they are, because a person has changed them. Returns
        None if somebody else has moved the branch meanwhile: then nothing has changed, except for
        objects that nothing names. Raises StoreBusy if another git holds its lock for longer than
        `wait_s`, NotebookUnfit in the middle of a merge.
        """
        assert draft.tip is not None
        self.git.write_objects(draft.objects)
        failpoint("notebook.after_objects")
        return self._move(draft.head, draft.tip, wait_s, draft.objects)

    def follow(self, tip: "ObjectID", wait_s: float) -> list[str]:
        """Move the branch to a commit of another machine, then update the work tree.

        Returns the paths that were left as they are. Raises StoreBusy and NotebookUnfit.
        """
        left = self._move(self.head(), tip, wait_s, None)
        if left is None:
            raise StoreBusy(place=self.root)
        return left

    def catch_up(self, wait_s: float) -> None:
        """Follow the branch that machines share, if this is a copy of one."""
        if self.shared is not None:
            self.shared.fetch(self, wait_s)

    def _move(
        self, head: Head, tip: "ObjectID", wait_s: float, objects: "list[ShaFile] | None"
    ) -> list[str] | None:
        """As `publish`; of a notebook that machines share, new `objects` go to all of them."""
        deadline = time.monotonic() + wait_s
        branch = head.branch
        with self.git.locked("index", deadline) as index_lock:
            self.git.wait_until_free("HEAD", deadline)
            with self.git.locked(branch, deadline) as lock:
                if not self._is_still(head):
                    return None
                index = self._index()
                changes = self._changes(head.commit, tip)
                if self.shared is not None and objects is not None:
                    if not self.shared.publish(self, head.commit, tip, objects, changes):
                        return None
                    failpoint("notebook.after_share")
                self._write_intent(head.commit, tip)
                failpoint("notebook.before_ref")
                fill(lock, tip + b"\n")
                os.rename(lock, self.git.path / branch)
                sync_folder((self.git.path / branch).parent)
            failpoint("notebook.after_ref")
            return self._bring(index, index_lock, changes)

    def bring_level(self, wait_s: float) -> None:
        """Finish a publish that was killed: the branch has moved, the work tree has not."""
        self.git.free_stale_locks()
        if not self.git.intent.exists():
            return
        old, new = _read_intent(self.git.intent)
        head = self.head()
        if not self.leads_to(head.commit, new):
            self.git.intent.unlink()
            return
        now = self.snapshot(head.commit)
        changes = [
            change for change in self._changes(old, new) if now.get(change.path) == change.new
        ]
        with self.git.locked("index", time.monotonic() + wait_s) as lock:
            self._bring(self._index(), lock, changes)

    def _is_still(self, head: Head) -> bool:
        # Opened again, because the library caches packed refs.
        with closing(Repository(self.root)) as now:
            return now.head() == head

    def _bring(self, index: GitIndex, lock: Path, changes: list[Change]) -> list[str]:
        left = level(self.tree, index, changes, self.blob, self.git.temporary())
        failpoint("notebook.before_index")
        fill(lock, index.data())
        os.rename(lock, self.git.path / "index")
        failpoint("notebook.after_level")
        self.git.intent.unlink()
        return left

    def _changes(self, old: "ObjectID | None", new: "ObjectID") -> list[Change]:
        before, after = dict(self.snapshot(old).files()), dict(self.snapshot(new).files())
        paths = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        return [Change(path=path, old=before.get(path), new=after.get(path)) for path in paths]

    def _write_intent(self, old: "ObjectID | None", new: "ObjectID") -> None:
        intent = {"from": old.decode("ascii") if old else None, "to": new.decode("ascii")}
        temporary = self.git.temporary()
        fill(temporary, json.dumps(intent).encode())
        os.rename(temporary, self.git.intent)
        sync_folder(self.git.own)

    def _index(self) -> GitIndex:
        index = GitIndex(self.git.path / "index")
        under_way = [name for name in _UNDER_WAY if (self.git.path / name).exists()]
        if under_way or index.is_merging:
            detail = "a merge, a rebase or the like is under way in it; finish it, then try again"
            raise NotebookUnfit(detail, place=self.root)
        return index

    def _tip(self, branch: bytes) -> "ObjectID | None":
        from dulwich.refs import Ref

        sha = self._repo.refs.read_ref(Ref(branch))
        if sha is not None and not re.fullmatch(rb"[0-9a-f]{40}", sha):
            raise NotebookUnfit("its branch does not point to a commit", place=self.root)
        return self._commit(sha).id if sha else None

    def _commit(self, sha: "bytes") -> "Commit":
        from dulwich.objects import Commit, ObjectID

        commit = self._repo.object_store[ObjectID(sha)]
        if not isinstance(commit, Commit):
            raise NotebookUnfit("its branch does not point to a commit", place=self.root)
        return commit

    def _check_form(self) -> None:
        from dulwich.refs import DiskRefsContainer

        config = self._repo.get_config()
        if config.get_boolean((b"core",), b"bare", False):
            raise NotebookUnfit("it is a bare repository, without files", place=self.root)
        if config.has_section((b"core",)) and b"worktree" in config[(b"core",)]:
            raise NotebookUnfit("its files lie elsewhere (core.worktree)", place=self.root)
        is_known = isinstance(self._repo.refs, DiskRefsContainer)
        if not is_known or self._repo.object_format.oid_length != 20:
            detail = "it uses a newer format of git that kb does not read (reftable, SHA-256)"
            raise NotebookUnfit(detail, place=self.root)


def commit_on_top(
    repository: Repository, build: Callable[[Draft], None], wait_s: float
) -> list[str]:
    """Let `build` make commits on the present branch, and publish them; as `publish`.

    If somebody else moves the branch meanwhile, `build` is called again for the new one. Raises
    StoreBusy if that goes on.
    """
    for attempt in range(_TRIES_MAX):
        if attempt:
            repository.catch_up(wait_s)
        draft = repository.draft()
        build(draft)
        if draft.tip == draft.head.commit:
            return []
        left = repository.publish(draft, wait_s)
        if left is not None:
            return left
    raise StoreBusy(place=repository.root)


def _values(config: "ConfigFile", section: tuple[bytes, ...], name: bytes) -> list[bytes]:
    """All values of a setting."""
    try:
        return list(config.get_multivar(section, name))
    except KeyError:
        return []


def _read_intent(path: Path) -> "tuple[ObjectID | None, ObjectID]":
    from dulwich.objects import ObjectID

    intent = json.loads(path.read_bytes())
    old = intent["from"]
    return ObjectID(old.encode()) if old else None, ObjectID(intent["to"].encode())


def _logged(commit: "Commit") -> Logged:
    message = commit.message
    ours = _MESSAGE.match(message)
    groups = ours.groupdict() if ours else {}
    named = {name: part.decode("utf-8", "replace") for name, part in groups.items()}
    return Logged(
        commit=commit.id.decode("ascii"),
        parent=commit.parents[0].decode("ascii") if len(commit.parents) == 1 else None,
        subject=message.partition(b"\n")[0].decode("utf-8", "replace"),
        committed_s=commit.commit_time,
        verb=named.get("verb", ""),
        job_id=named.get("job", ""),
        path=named.get("path", ""),
    )
