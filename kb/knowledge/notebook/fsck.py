"""Check the notebook's repository for damage. Nothing is changed here.

`examine_in_child` runs this module with ROOT, because reading a damaged repository may kill the
process. The child writes an `Examination` to standard output.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from kb.errors import NotebookUnfit
from kb.knowledge.notebook.gitobjects import (
    faults_of_objects,
    faults_of_packs,
    is_id,
    problems_of_reachable,
    refs_of,
)
from kb.knowledge.notebook.gitopen import check_bounds
from kb.knowledge.notebook.opening import whole
from kb.knowledge.notebook.repository import Repository
from kb.knowledge.notebook.worktree import SPLIT, GitIndex, WorkTree
from kb.model.children import module_argv, module_env
from kb.model.decoding import decode_json
from kb.store.content.lock import file_lock

_MODULE: Final = "kb.knowledge.notebook.fsck"
FAULTS_MAX: Final = 200
_NOTES_MAX: Final = 100_000
_WALL_S: Final = 900
_DATA_BYTES: Final = 2 << 30
_LOCK_WAIT_S: Final = 30.0
# git holds a lock for a few seconds while it works.
_LOCK_S: Final = 600
_ENV_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")
_NAMED_MAX: Final = 3
_FSCK_ADVICE: Final = (
    "look at it with `git fsck`; get lost objects from a copy, or from the remote with `git fetch`"
)
_NEXT: Final = "the next note finishes it; if a note waits, `kb worker --drain` does"
_RESET: Final = "`git reset` makes it anew"
_GONE: Final = "bring it back from a copy, or from its remote"
_HISTORY_CHANGES: Final = (
    ("shallow", "its history is cut short", "`git fetch --unshallow`"),
    ("info/grafts", "grafts change its history", "remove that file"),
    (
        "refs/replace",
        "some objects are replaced (refs/replace), which kb does not follow",
        "`git replace -d`",
    ),
)

Mendable = Literal["", "index", "files"]


class Damage(Struct, frozen=True, kw_only=True):
    """One thing that is damaged, and what to do about it."""

    place: str
    problem: str
    advice: str
    mend: Mendable = ""
    """What kb can repair: rebuild the index, or put files back."""
    paths: tuple[str, ...] = ()


class Examination(Struct, frozen=True, kw_only=True):
    """The result of a check of a notebook."""

    damages: tuple[Damage, ...] = ()
    """Damage that stops the notebook, or lost data."""
    remarks: tuple[Damage, ...] = ()
    """States that a person may intend: uncommitted edits, a shallow history."""
    notes: tuple[str, ...] = ()
    """Paths of the notes whose files are as in the newest commit."""


def examine_in_child(root: Path) -> Examination:
    """Check everything, in a child process with limits on time and memory."""
    try:
        ran = subprocess.run(
            module_argv(_MODULE, os.fspath(root)),
            check=False,
            env=module_env(_ENV_KEPT),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WALL_S,
        )
    except subprocess.TimeoutExpired:
        return _unreadable("reading it takes too long")
    if ran.returncode == 0:
        with suppress(msgspec.MsgspecError):
            return decode_json(ran.stdout, Examination)
    return _unreadable("reading it crashes the process")


def _unreadable(problem: str) -> Examination:
    return Examination(damages=(Damage(place=".git", problem=problem, advice=_FSCK_ADVICE),))


def examine(root: Path, *, deep: bool = True, now_s: float | None = None) -> Examination:
    """Check a notebook that exists; without `deep` its objects are not checked.

    Raises StoreBusy if another kb process works in it for long.
    """
    with file_lock(root, _LOCK_WAIT_S):
        return _Examiner(root, deep=deep, now_s=time.time() if now_s is None else now_s).taken()


class _Examiner:
    """Runs one check step by step; a failed step becomes a finding, and the others go on."""

    def __init__(self, root: Path, *, deep: bool, now_s: float) -> None:
        self._root = root
        self._git = root / ".git"
        self._deep = deep
        self._now_s = now_s
        self._damages: list[Damage] = []
        self._remarks: list[Damage] = []
        self._notes: list[str] = []
        self._has_commits = False

    def taken(self) -> Examination:
        """Run every step."""
        if not os.path.lexists(self._git):
            self._add(".git", "it is missing, and with it the history of the notes", _GONE)
        elif self._step(self._bounds) and self._step(self._skeleton):
            self._leftovers()
            self._step(self._refs)
            if self._deep:
                self._step(self._objects)
            # Until a change that was cut short is finished, the folder is behind its commit.
            if self._has_commits and not (self._git / "kb/intent").exists():
                self._step(self._contents)
        return Examination(
            damages=tuple(self._damages[:FAULTS_MAX]),
            remarks=tuple(self._remarks[:FAULTS_MAX]),
            notes=tuple(self._notes[:_NOTES_MAX]),
        )

    def _add(
        self, place: str, problem: str, advice: str = _FSCK_ADVICE, mend: Mendable = ""
    ) -> None:
        damage = Damage(place=place, problem=problem, advice=advice, mend=mend)
        if damage not in self._damages:
            self._damages.append(damage)

    def _remark(self, place: str, problem: str, advice: str) -> None:
        self._remarks.append(Damage(place=place, problem=problem, advice=advice))

    def _step(self, step: Callable[[], bool | None]) -> bool:
        """Whether the next step can run."""
        try:
            with whole(self._root):
                return step() is not False
        except NotebookUnfit as error:
            # Findings of an earlier step are not repeated.
            if not self._damages:
                self._add(".git", str(error.fields["detail"]))
            return False

    def _bounds(self) -> None:
        check_bounds(self._git, self._root)

    def _skeleton(self) -> bool:
        lacking = [name for name in ("objects", "refs") if not (self._git / name).is_dir()]
        for name in lacking:
            self._add(f".git/{name}", "it is missing", _GONE)
        return not lacking

    def _refs(self) -> None:
        refs = refs_of(self._git)
        branch = self._branch(refs)
        self._has_commits = branch in refs
        # The first commit writes git's index last: if it is missing, that commit was cut short.
        is_new = not refs and not (self._git / "index").exists()
        if branch is not None and branch not in refs and not is_new:
            advice = f"`git update-ref {branch} COMMIT`; `git fsck --lost-found` names commits"
            self._add(f".git/{branch}", "the branch that is checked out is missing", advice)
        with closing(Repository(self._root)) as repository:
            for name, target in refs.items():
                problem = _problem_of_ref(target, repository)
                if problem:
                    advice = f"`git update-ref {name} COMMIT`, or `git update-ref -d {name}`"
                    self._add(f".git/{name}", problem, advice)

    def _branch(self, refs: Mapping[str, bytes]) -> str | None:
        """The branch that is checked out, if HEAD names one."""
        from dulwich.refs import Ref, check_ref_format

        heads = [name for name in refs if name.startswith("refs/heads/")]
        advice = f"`git symbolic-ref HEAD {heads[0] if heads else 'refs/heads/main'}`"
        path = self._git / "HEAD"
        raw = path.read_bytes().strip() if path.exists() else None
        name = (raw or b"").removeprefix(b"ref: ")
        if raw is None:
            self._add(".git/HEAD", "it is missing", advice)
        elif not raw:
            self._add(".git/HEAD", "it is empty", advice)
        elif name == raw and is_id(raw):
            self._remark(
                ".git/HEAD", "no branch is checked out, so notes wait", "`git switch` to one"
            )
        elif not name.startswith(b"refs/heads/") or not check_ref_format(Ref(name[5:])):
            self._add(".git/HEAD", "it names no branch", advice)
        else:
            return os.fsdecode(name)
        return None

    def _leftovers(self) -> None:
        ours = {path.lstat().st_ino for path in _files(self._git / "kb")}
        for lock in (*self._git.glob("*.lock"), *(self._git / "refs").rglob("*.lock")):
            status, place = lock.lstat(), lock.relative_to(self._root).as_posix()
            if status.st_ino in ours:
                self._remark(place, "a kb process was killed while it held the lock", _NEXT)
            elif self._now_s - status.st_mtime > _LOCK_S:
                advice = "remove it, unless git is at work in the notebook"
                self._add(place, "a stale lock; notes wait for it", advice)
        if (self._git / "kb/intent").exists():
            self._remark(".git/kb/intent", "a change was begun but not finished", _NEXT)
        for name, problem, advice in _HISTORY_CHANGES:
            if any(_files(self._git / name)):
                self._remark(f".git/{name}", problem, advice)

    def _objects(self) -> None:
        for fault in (*faults_of_objects(self._git), *faults_of_packs(self._git)):
            self._add(fault.place, fault.problem)
        starts = [(name, target) for name, target in refs_of(self._git).items() if is_id(target)]
        with closing(Repository(self._root)) as repository:
            for fault in problems_of_reachable(repository.objects, starts, self._git):
                self._add(fault.place, fault.problem)

    def _contents(self) -> None:
        """Compare the newest commit with git's index and the folder."""
        tree = WorkTree(self._root)
        with closing(Repository(self._root)) as repository:
            head = repository.head()
            files = dict(repository.snapshot(head.commit).files()) if head.commit else {}
        index = self._index(is_begun=head.commit is not None)
        regular = {path: entry for path, entry in files.items() if entry.is_file}
        as_committed = {path for path, entry in regular.items() if tree.has(path, entry)}
        staged = {path for path, entry in files.items() if index is None or index.has(path, entry)}
        missing = [path for path in regular if path in staged and not tree.is_there(path)]
        if missing:
            problem = f"{_some(missing)} in the newest commit but not in the folder"
            advice = "if you removed it, commit that; if not, `kb check --repair` puts it back"
            self._damages.append(
                Damage(
                    place="notebook",
                    problem=problem,
                    advice=advice,
                    mend="files",
                    paths=tuple(missing[:_NOTES_MAX]),
                )
            )
        edited = {*regular} - as_committed - {*missing}
        changed = sorted(edited | ({*files} - staged))
        if changed:
            problem = f"{_some(changed)} changed but not committed"
            self._remark("notebook", problem, "`git commit -a`, or `git status` says more")
        extra = sorted(path for path in _notes_below(self._root) if path not in files)
        if extra:
            problem = f"{_some(extra)} in the folder but in no commit"
            self._remark("notebook", problem, "`git add` it, and commit")
        self._notes += sorted(path for path in as_committed if path.endswith(".md"))

    def _index(self, *, is_begun: bool) -> GitIndex | None:
        path = self._git / "index"
        if not path.exists():
            if is_begun:
                problem = "it is missing, so git treats every note as removed"
                self._add(".git/index", problem, _RESET, "index")
            return None
        try:
            with whole(self._root):
                return GitIndex(path)
        except NotebookUnfit as error:
            if str(error.fields["detail"]).startswith(SPLIT):
                self._remark(".git/index", SPLIT, "`git update-index --no-split-index`")
            else:
                self._add(".git/index", "it is damaged", _RESET, "index")
            return None


def _problem_of_ref(target: bytes, repository: Repository) -> str | None:
    from dulwich.objects import ObjectID

    if not target:
        return "it is empty"
    if target.startswith(b"ref: "):
        return None
    if not is_id(target):
        return "it names no object"
    is_there = ObjectID(target) in repository.objects
    return None if is_there else f"it names {target.decode()[:10]}, which is missing"


def _files(path: Path) -> Iterator[Path]:
    """A file, or those below a folder."""
    return (file for file in (path, *path.rglob("*")) if file.is_file())


def _notes_below(root: Path) -> Iterator[str]:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            if name.endswith(".md") and not name.startswith("."):
                yield os.path.relpath(os.path.join(folder, name), root)


def _some(paths: list[str]) -> str:
    more = len(paths) - _NAMED_MAX
    named = ", ".join(paths[:_NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")
    return f"{named} {'is' if len(paths) == 1 else 'are'}"


def _main(root: Path) -> int:
    for what, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, _DATA_BYTES)):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (limit, limit))
    sys.stdout.buffer.write(msgspec.json.encode(examine(root)))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1])))
