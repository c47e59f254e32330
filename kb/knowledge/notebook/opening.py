"""Open the notebook: create it where nothing is there, refuse a folder that is something else."""

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kb.errors import NotebookGone, NotebookUnfit
from kb.knowledge.notebook.gitfiles import STAGING, make_git_folder
from kb.knowledge.notebook.listing import SCAFFOLD
from kb.knowledge.notebook.repository import Draft, Repository, commit_on_top
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
    root: Path, now_ms: int, wait_s: float, *, may_make: bool = True
) -> Iterator[Repository]:
    """The notebook for one of us at a time, made where it is not there, its work tree level.

    A folder that is absent or empty becomes a repository, but without `may_make`. One that is a
    repository gets what it lacks, in one commit. Raises NotebookUnfit for any other, and leaves it
    as it is; StoreBusy where another of us is at work, or another git holds its lock, for longer
    than `wait_s`.
    """
    if not may_make and not os.path.lexists(root / ".git"):
        raise NotebookGone(GONE, place=root)
    with whole(root):
        _make_folder(root)
    with whole(root), file_lock(root, wait_s):
        names = set(os.listdir(root))
        if ".git" not in names:
            _check_empty(root, names)
            make_git_folder(root, _BRANCH)
        repository = Repository(root)
        try:
            repository.bring_level(wait_s)
            _bootstrap(repository, now_ms, wait_s)
            yield repository
        finally:
            repository.close()


@contextmanager
def whole(root: Path) -> Iterator[None]:
    """Say as NotebookUnfit what the library and the disk raise of a repository.

    The notebook's trouble is its own: it may lie on another disk than the home.
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
    """Commit what a notebook needs and this one lacks; content that is there stays."""

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
        # A list that a person has begun, and not committed yet, is the list.
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
