"""Repair a damaged notebook without losing anything that a person wrote."""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from kb.knowledge.notebook.gitfiles import fill, sync_folder
from kb.knowledge.notebook.opening import at_work, whole
from kb.knowledge.notebook.repository import Repository
from kb.knowledge.notebook.worktree import GitIndex
from kb.store.content.lock import file_lock

ASIDE: Final = "index.damaged"
"""In `.git`: the index that was made anew, for what was staged in it."""
_NO_STAT: Final = os.stat_result((0,) * 10)


def renew_index(root: Path, wait_s: float) -> None:
    """Make git's index anew from the newest commit; a damaged one is kept aside.

    What was staged and not committed is not staged any more. Raises NotebookUnfit, StoreBusy.
    """
    with whole(root), file_lock(root, wait_s), closing(Repository(root)) as repository:
        place = repository.git.path / "index"
        repository.git.free_stale_locks()
        with repository.git.locked("index", time.monotonic() + wait_s) as lock:
            index = GitIndex(None)
            for path, entry in repository.snapshot(repository.head().commit).files():
                # Without what the file system says of it git looks at the file itself.
                is_level = repository.tree.has(path, entry)
                index.put(path, entry, repository.tree.stat(path) if is_level else _NO_STAT)
            fill(lock, index.data())
            if place.exists():
                os.rename(place, place.with_name(ASIDE))
            os.rename(lock, place)
            sync_folder(place.parent)


def put_back(root: Path, paths: Sequence[str], now_ms: int, wait_s: float) -> None:
    """Have files of the newest commit in the folder again; whatever stands there stays.

    Raises NotebookUnfit, StoreBusy.
    """
    with at_work(root, now_ms, wait_s) as repository:
        files = repository.snapshot(repository.head().commit)
        for path in paths:
            entry = files.get(path)
            if entry is not None and entry.is_file and not repository.tree.is_there(path):
                temporary = repository.git.temporary()
                temporary.parent.mkdir(mode=0o700, exist_ok=True)
                data = repository.blob(entry.sha)
                repository.tree.place(path, data, entry.mode, temporary, replace=False)
