"""Folders of subjects, as small as a test wants them."""

from pathlib import Path
from typing import Any, Final

from kb.knowledge.topics import Learned, LearnInput, LearnLimits, LearnRefusal, Topic, execute

PROJECT: Final = {
    "maintainers/jean.md": "# Jean\n",
    "maintainers/ryan.md": "# Ryan\n",
    "code-quality.md": "# Quality\n",
    ".internal-notes.md": "# Internal\n",
}
SKILLS: Final = {"ast-grep.md": "# ast-grep\n", "ast-grep/.rules.md": "# Rules\n"}
NO_BOUND: Final = LearnLimits(answer_bytes_max=1 << 30)


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Files below a folder, by relative path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def topic(folder: Path, files: dict[str, Any] | None = None, **said: Any) -> Topic:
    """A topic over a folder, with these files in it."""
    write(folder, files or {})
    return Topic(**{"id": "project", "folder": folder, **said})


def ask(asked: Topic, *subjects: str, limits: LearnLimits = NO_BOUND) -> Learned | LearnRefusal:
    """What a topic says: its list, or some subjects."""
    return execute(LearnInput(topic=asked, subjects=subjects or None, limits=limits))


def learned(asked: Topic, *subjects: str, limits: LearnLimits = NO_BOUND) -> Learned:
    """An answer that is none of the refusals."""
    found = ask(asked, *subjects, limits=limits)
    assert isinstance(found, Learned), found
    return found


def refused(asked: Topic, *subjects: str, limits: LearnLimits = NO_BOUND) -> LearnRefusal:
    """An answer that is a refusal."""
    found = ask(asked, *subjects, limits=limits)
    assert isinstance(found, LearnRefusal), found
    return found


def reasons(found: Learned) -> dict[str, str]:
    """Why each subject that was left out was."""
    return {one.subject: one.reason for one in found.left_out}
