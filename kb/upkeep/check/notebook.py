"""Check the notebook: its git repository, and its notes against their docs."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from kb.errors import NotebookUnfit, StoreBusy
from kb.intake.sync.origins import list_origins
from kb.intake.sync.walk import WalkedFile, walk
from kb.knowledge.notebook.fsck import Damage, Examination, examine, examine_in_child
from kb.knowledge.notebook.repair import put_back, renew_index
from kb.model.origin import NOTEBOOK_INDEX
from kb.model.source import display_name, file_lsid, path_of
from kb.store import docs
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.store import Store
from kb.upkeep.check.collector import FindingCollector
from kb.upkeep.check.doctor import Advice
from kb.upkeep.check.repairs import ManualRepair, Repair, RepairNotebook, SyncNotebook

_WAIT_S: Final = 30.0
_NAME: Final = "notebook"
_RESTORE_ADVICE: Final = (
    "bring it back from a copy, or from its remote (`git clone --no-checkout ADDRESS x`, then move "
    "x/.git there); `git init` in it begins a history anew"
)


class NotebookPlace(Struct, frozen=True, kw_only=True):
    """Where a home's notebook is, and a function that syncs its docs."""

    root: Path
    sync: Callable[[], None]


def notebook_state(store: Store, root: Path) -> Literal["none", "gone", "there"]:
    """Whether there is a notebook; `gone` if notes were synced and the repository is missing."""
    if os.path.lexists(root / ".git"):
        return "there"
    with store.read() as txn:
        return "gone" if _was_synced(txn, root) else "none"


def _was_synced(txn: ReadTxn, root: Path) -> bool:
    """Whether notes were synced from this folder."""
    place = display_name(root)
    return any(
        origin.kind == "notebook" and origin.location == place for origin in list_origins(txn)
    )


def check_notebook(store: Store, collector: FindingCollector, root: Path) -> None:
    """Check the repository in a child process, then the docs of its notes."""
    match notebook_state(store, root):
        case "none":
            return
        case "gone":
            collector.add(_NAME, _gone_problem(root), ManualRepair(_RESTORE_ADVICE))
            return
        case "there":
            repository = examine_in_child(root)
    for damage in repository.damages:
        collector.add(_place(damage), damage.problem, _repair_of(damage))
    if not repository.damages:
        with store.read() as txn:
            _check_docs(txn, collector, root, repository)


def notebook_advice(store: Store, root: Path) -> list[Advice]:
    """Advice on a notebook, from a quick check that does not read every object."""
    match notebook_state(store, root):
        case "none":
            return []
        case "gone":
            return [Advice(place=_NAME, problem=_gone_problem(root), mend=_RESTORE_ADVICE)]
        case "there":
            repository = examine(root, deep=False)
    return [
        Advice(place=_place(damage), problem=damage.problem, mend=damage.advice)
        for damage in (*repository.damages, *repository.remarks)
    ]


def repair_notebook(notebook: NotebookPlace, repairs: Sequence[Repair], now_ms: int) -> None:
    """Apply the notebook's repairs; one that fails now is reported by the next check."""
    root = notebook.root
    for repair in repairs:
        with suppress(NotebookUnfit, StoreBusy):
            match repair:
                case RepairNotebook("index"):
                    renew_index(root, _WAIT_S)
                case RepairNotebook("files", paths):
                    put_back(root, paths, now_ms, _WAIT_S)
                case SyncNotebook():
                    notebook.sync()
                case _:
                    pass


def _gone_problem(root: Path) -> str:
    if root.is_dir():
        return f"the .git of {root} is missing, and with it the history of the notes"
    return f"its folder is missing: {root}"


def _place(damage: Damage) -> str:
    return damage.place if damage.place == _NAME else f"{_NAME}/{damage.place}"


def _repair_of(damage: Damage) -> Repair:
    return RepairNotebook(damage.mend, damage.paths) if damage.mend else ManualRepair(damage.advice)


def _check_docs(
    txn: ReadTxn, collector: FindingCollector, root: Path, repository: Examination
) -> None:
    """Report notes without a doc, and docs whose note is missing."""
    if not _was_synced(txn, root):
        # The home was moved, or its notes were never synced.
        return
    if any(True for _ in queue.pending(txn, "organize")):
        # A note that is being placed gets its doc only after its commit.
        return
    committed = set(repository.notes) - {NOTEBOOK_INDEX}
    for file in walk(root, ("md",)):
        path = os.path.relpath(file.path, root)
        is_note = isinstance(file, WalkedFile) and path in committed
        if is_note and docs.latest_of(txn, file_lsid(file.path)) is None:
            collector.add(f"{_NAME}/{path}", "a note that no search finds", SyncNotebook())
    for no in docs.with_facet(txn, "kind", "notebook"):
        doc = docs.latest(txn, no)
        place = path_of(doc.place) if doc and doc.status == "active" else None
        if doc and place and place.is_relative_to(root) and not os.path.lexists(place):
            collector.add(doc.doc_id, f"its note is gone: {place}", SyncNotebook())
