"""Reads the notebook: a note as it is now, and the log. Locks and creates nothing."""

from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from kb.errors import NoNote, Refused, Unreadable
from kb.knowledge.notebook.opening import whole
from kb.knowledge.notebook.repository import Logged, Repository
from kb.store.content.inside import read_inside

_NOTE_BYTES_MAX: Final = 16 << 20


def read_note(root: Path, path: str) -> bytes:
    """The bytes of a note in the work tree, edits included. Raises NoNote or TooLarge."""
    if path.startswith("."):
        raise NoNote(id=path)
    try:
        return read_inside(root, path, _NOTE_BYTES_MAX)
    except (Refused, Unreadable) as error:
        raise NoNote(id=path) from error


def log(root: Path, limit: int) -> list[Logged]:
    """The newest commits of the notebook's branch, the newest first; none without a notebook.

    Raises NotebookUnfit.
    """
    if not (root / ".git").exists():
        return []
    with whole(root), closing(Repository(root)) as repository:
        return list(islice(repository.log(), limit))
