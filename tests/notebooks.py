"""A notebook in a folder, worked on by the shipped code, and git beside it as a person has it."""

import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Final

import pytest
from homes import LEASE_MS, SmallHome

from kb.knowledge.notebook import (
    Complete,
    JobReport,
    NotebookChanges,
    Organizer,
    hand_in,
    report,
    undo,
)
from kb.knowledge.notebook.listing import Listing
from kb.knowledge.notebook.opening import at_work
from kb.knowledge.notebook.undo import UndoResult
from kb.model.ids import DocId, JobId
from kb.model.job import Claim
from kb.store.jobs import queue

NOW_MS: Final = 1_700_000_000_000
WAIT_S: Final = 0.2
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(root: Path, *args: str) -> str:
    """Git as a person runs it, without the settings of whoever runs the tests."""
    env = {**os.environ, "HOME": str(root.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", "-C", str(root), *who, *args], capture_output=True, text=True, env=env, timeout=60
    )
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


def commit_file(root: Path, path: str, text: str) -> None:
    """A person writes a file and commits it."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")
    git(root, "add", "--", path)
    git(root, "commit", "-q", "-m", f"Write {path}", "--", path)


class NoteHome:
    """A home with a notebook whose changes are only written down, not taken in."""

    def __init__(self, folder: Path, complete: Complete | None = None) -> None:
        self.home = SmallHome(folder / "home")
        self.root = folder / "book"
        self.arrivals: list[NotebookChanges] = []
        self.like: list[tuple[str, float]] = []
        self.apart: set[str] = set()
        self.organizer = Organizer(
            self.home.store,
            self.root,
            self.take_in,
            lambda _: self.like,
            complete,
            lock_wait_s=WAIT_S,
        )

    def close(self) -> None:
        self.home.close()

    def take_in(self, arrival: NotebookChanges) -> dict[str, DocId]:
        self.arrivals.append(arrival)
        return {}

    def hand_in(
        self, text: str, hint: str | None = None, *tags: str, owner: str | None = None
    ) -> JobId:
        with self.home.store.write() as txn:
            return hand_in(txn, self.home.clock, text, hint, tags, owner=owner)

    def may_merge(self, paths: Collection[str]) -> bool:
        """Whether notes may be merged: those in `apart` are somebody else's."""
        return len({path in self.apart for path in paths}) == 1

    def claims(self) -> list[Claim]:
        with self.home.store.write() as txn:
            clock = self.home.clock
            return queue.claim(txn, clock, ["organize"], limit=64, lease_ms=LEASE_MS)

    def place(
        self, text: str, hint: str | None = None, *tags: str, owner: str | None = None
    ) -> JobReport:
        """Hand a note in, and have it placed."""
        job = self.hand_in(text, hint, *tags, owner=owner)
        self.organizer.work(self.claims())
        return self.report(job)

    def undo(self, job: str) -> UndoResult:
        return undo(self.root, job, self.home.clock, self.take_in, WAIT_S)

    def report(self, job: JobId) -> JobReport:
        with self.home.store.read() as txn:
            return report(txn, job)

    def open(self) -> None:
        """Have the notebook made, or brought level."""
        with at_work(self.root, NOW_MS, WAIT_S):
            pass

    def subjects(self) -> list[str]:
        """The first lines of the branch's commits, the oldest first."""
        with at_work(self.root, NOW_MS, WAIT_S) as repository:
            return [one.subject for one in repository.log()][::-1]

    def committed(self) -> dict[str, bytes]:
        """What the branch holds."""
        with at_work(self.root, NOW_MS, WAIT_S) as repository:
            files = repository.draft().files.files()
            return {path: repository.blob(held.sha) for path, held in files if held.is_file}

    def listed(self) -> list[str]:
        """The paths that INDEX.md lists, in the branch."""
        index = self.committed()["INDEX.md"].decode("utf-8", "surrogateescape")
        return [entry.path for entry in Listing(index).entries()]

    def seen(self) -> dict[str, bytes]:
        """The files that lie in the work tree."""
        found = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        inside = (path.relative_to(self.root) for path in found)
        return {
            path.as_posix(): (self.root / path).read_bytes()
            for path in inside
            if path.parts[0] != ".git"
        }
