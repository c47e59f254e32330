"""Opens the notebook: creates a missing one, and refuses a folder that is something else."""

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from kb.errors import NotebookGone, NotebookUnfit
from kb.knowledge.notebook.gitfiles import STAGING, make_git_folder
from kb.knowledge.notebook.listing import SCAFFOLD
from kb.knowledge.notebook.repository import Draft, Repository, commit_on_top
from kb.knowledge.notebook.sharing import SharedNotebook
from kb.model.origin import NOTEBOOK_INDEX
from kb.store.content.lock import file_lock

GONE: Final = (
    "the notebook's .git is gone, and with it the history of the notes; bring it back from a copy, "
    "or from its remote (`git clone --no-checkout ADDRESS x`, then move x/.git here); `git init` "
    "begins a history anew, with the files there"
)
_BRANCH: Final = "main"
_IGNORED: Final = "/.kb/"
_IGNORE_NAME: Final = ".gitignore"
_MESSAGE: Final = "Set up the notebook"


@contextmanager
def at_work(
    root: Path,
    now_ms: int,
    wait_s: float,
    *,
    may_make: bool = True,
    shared: SharedNotebook | None = None,
) -> Iterator[Repository]:
    """The notebook, for one kb process at a time; made if missing, its work tree up to date.

    With `may_make` a missing or empty folder becomes a repository. A repository gets the files that
    it lacks, in one commit. Raises NotebookUnfit for any other folder, and changes nothing in it;
    StoreBusy if another kb process, or a git that holds its lock, works in it for longer than
    `wait_s`. Of a `shared` one only one machine at a time has it, and it follows that first.
    """
    if not may_make and not os.path.lexists(root / ".git"):
        raise NotebookGone(GONE, place=root)
    with whole(root):
        _make_folder(root)
    held = shared.held(wait_s) if shared is not None else nullcontext()
    with whole(root), file_lock(root, wait_s), held:
        names = set(os.listdir(root))
        if ".git" not in names:
            _check_empty(root, names)
            make_git_folder(root, (shared.branch if shared else None) or _BRANCH)
        repository = Repository(root, shared)
        try:
            repository.bring_level(wait_s)
            repository.catch_up(wait_s)
            _bootstrap(repository, now_ms, wait_s)
            yield repository
        finally:
            repository.close()


@contextmanager
def whole(root: Path) -> Iterator[None]:
    """Turn errors of the library and the disk on a repository into NotebookUnfit.

    They must not look like errors of the home, which may be on another disk.
    """
    from dulwich.errors import (
        ApplyDeltaError,
        ChecksumMismatch,
        FileFormatException,
        MissingCommitError,
        ObjectMissing,
        WrongObjectException,
    )
    from dulwich.index import UnsupportedIndexFormat

    try:
        yield
    except (
        ApplyDeltaError,
        AssertionError,
        ChecksumMismatch,
        EOFError,
        FileFormatException,
        LookupError,
        MissingCommitError,
        ObjectMissing,
        UnsupportedIndexFormat,
        struct.error,
        ValueError,
        WrongObjectException,
        zlib.error,
    ) as error:
        detail = f"it is damaged ({type(error).__name__}); look at it with `git fsck`"
        raise NotebookUnfit(detail, place=root) from error
    except OSError as error:
        detail = f"{error.strerror or error} ({error.filename or 'its files'})"
        raise NotebookUnfit(detail, place=root) from error


def _make_folder(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise NotebookUnfit("it is not a folder", place=root)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)


def _check_empty(root: Path, names: set[str]) -> None:
    if {"HEAD", "objects", "refs"} <= names:
        raise NotebookUnfit("it is a bare repository, without files", place=root)
    if names - {STAGING}:
        detail = "it is neither empty nor a git repository; `git init` it, or choose another"
        raise NotebookUnfit(detail, place=root)


def _bootstrap(repository: Repository, now_ms: int, wait_s: float) -> None:
    """Commit the files that a notebook needs and this one lacks; existing content stays."""

    def build(draft: Draft) -> None:
        lacking = _lacking(repository, draft)
        for name, data in lacking.items():
            draft.put(name, data)
        if lacking:
            draft.commit(_MESSAGE, now_ms)

    commit_on_top(repository, build, wait_s)


def _lacking(repository: Repository, draft: Draft) -> Mapping[str, bytes]:
    lacking: dict[str, bytes] = {}
    if draft.read(NOTEBOOK_INDEX) is None:
        # If a person has begun a list but not committed it, that list counts.
        own = repository.tree.read(NOTEBOOK_INDEX)
        if own is None and repository.tree.is_there(NOTEBOOK_INDEX):
            detail = f"something else is in the place of {NOTEBOOK_INDEX}"
            raise NotebookUnfit(detail, place=repository.root)
        lacking[NOTEBOOK_INDEX] = SCAFFOLD.encode() if own is None else own
    rules = draft.read(_IGNORE_NAME) or b""
    entry = draft.files.get(_IGNORE_NAME)
    if entry is None:
        is_ours = not repository.tree.is_there(_IGNORE_NAME)
    else:
        is_ours = entry.is_file and repository.is_clean(_IGNORE_NAME, entry)
    if is_ours and _IGNORED.encode() not in rules.split():
        start = rules if not rules or rules.endswith(b"\n") else rules + b"\n"
        lacking[_IGNORE_NAME] = start + _IGNORED.encode() + b"\n"
    return lacking
