"""Is the notebook whole? Its repository, and its notes against the docs that were made of them."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from kb.errors import NotebookUnfit, StoreBusy
from kb.intake.sync.origins import listed
from kb.intake.sync.walk import Found, walk
from kb.knowledge.notebook.fsck import Damage, Examination, examine, examine_in_child
from kb.knowledge.notebook.repair import put_back, renew_index
from kb.model.origin import NOTEBOOK_INDEX
from kb.model.source import display_name, file_lsid, path_of
from kb.store import docs
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.store import Store
from kb.upkeep.check.doctor import Advice
from kb.upkeep.check.mends import ByHand, Mend, MendNotebook, SyncNotebook
from kb.upkeep.check.notes import Notes

_WAIT_S: Final = 30.0
_NAME: Final = "notebook"
_BACK: Final = (
    "bring it back from a copy, or from its remote (`git clone --no-checkout ADDRESS x`, then move "
    "x/.git there); `git init` in it begins a history anew"
)


class NotebookPlace(Struct, frozen=True, kw_only=True):
    """Where a home's notebook is, and who brings its docs level with it."""

    root: Path
    sync: Callable[[], None]


def standing(store: Store, root: Path) -> Literal["none", "gone", "there"]:
    """Whether there is a notebook; `gone` where there was one and its repository is no more."""
    if os.path.lexists(root / ".git"):
        return "there"
    with store.read() as txn:
        return "gone" if _is_known(txn, root) else "none"


def _is_known(txn: ReadTxn, root: Path) -> bool:
    """Whether notes were taken in from this very folder."""
    place = display_name(root)
    return any(one.kind == "notebook" and one.location == place for one in listed(txn))


def check_notebook(store: Store, notes: Notes, root: Path) -> None:
    """Look at the repository, in a process of its own, and at the docs of its notes."""
    match standing(store, root):
        case "none":
            return
        case "gone":
            notes.add(_NAME, _gone(root), ByHand(_BACK))
            return
        case "there":
            found = examine_in_child(root)
    for damage in found.damages:
        notes.add(_place(damage), damage.problem, _mend(damage))
    if not found.damages:
        with store.read() as txn:
            _check_docs(txn, notes, root, found)


def look_at(store: Store, root: Path) -> list[Advice]:
    """What a person should know of a notebook, without a look at every object."""
    match standing(store, root):
        case "none":
            return []
        case "gone":
            return [Advice(place=_NAME, problem=_gone(root), mend=_BACK)]
        case "there":
            found = examine(root, deep=False)
    return [
        Advice(place=_place(one), problem=one.problem, mend=one.advice)
        for one in (*found.damages, *found.remarks)
    ]


def mend_notebook(place: NotebookPlace, mends: Sequence[Mend], now_ms: int) -> None:
    """Do what can be done; what cannot be done now is found again."""
    root = place.root
    for mend in mends:
        with suppress(NotebookUnfit, StoreBusy):
            match mend:
                case MendNotebook("index"):
                    renew_index(root, _WAIT_S)
                case MendNotebook("files", paths):
                    put_back(root, paths, now_ms, _WAIT_S)
                case SyncNotebook():
                    place.sync()
                case _:
                    pass


def _gone(root: Path) -> str:
    if root.is_dir():
        return f"the .git of {root} is gone, and with it the history of the notes"
    return f"its folder is gone: {root}"


def _place(damage: Damage) -> str:
    return damage.place if damage.place == _NAME else f"{_NAME}/{damage.place}"


def _mend(damage: Damage) -> Mend:
    return MendNotebook(damage.mend, damage.paths) if damage.mend else ByHand(damage.advice)


def _check_docs(txn: ReadTxn, notes: Notes, root: Path, found: Examination) -> None:
    """Notes that were never taken in, and docs whose note is no more."""
    if not _is_known(txn, root):
        # The home was moved, or nothing of it was synced yet.
        return
    if any(True for _ in queue.pending(txn, "organize")):
        # A note that is being placed is taken in behind its commit.
        return
    committed = set(found.notes) - {NOTEBOOK_INDEX}
    for one in walk(root, ("md",)):
        path = os.path.relpath(one.path, root)
        is_note = isinstance(one, Found) and path in committed
        if is_note and docs.latest_of(txn, file_lsid(one.path)) is None:
            notes.add(f"{_NAME}/{path}", "a note that no search finds", SyncNotebook())
    for no in docs.with_facet(txn, "kind", "notebook"):
        doc = docs.latest(txn, no)
        place = path_of(doc.place) if doc and doc.status == "active" else None
        if doc and place and place.is_relative_to(root) and not os.path.lexists(place):
            notes.add(doc.doc_id, f"its note is gone: {place}", SyncNotebook())
