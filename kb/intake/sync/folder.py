"""A folder and its docs are brought level: added, updated, moved, and removed with care."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.intake.ingest.changes import tombstone_missing
from kb.intake.sync.moves import MissingDoc, missing_elsewhere
from kb.intake.sync.origins import covers, inner_folders, list_origins, origin_folder
from kb.intake.sync.walk import SkippedFile, WalkedFile, walk
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.ids import DocId
from kb.model.origin import Origin
from kb.model.source import display_name, file_lsid, path_of
from kb.store import docs
from kb.store.store import Store

# The fuse: more vanished docs than both of these are taken for an accident.
VANISHED_SHARE_MAX: Final = 0.20
VANISHED_MIN: Final = 10


class FolderDiff(Struct, frozen=True, kw_only=True):
    """A folder against its docs, before anything is changed."""

    seen: Sequence[WalkedFile | SkippedFile]
    """What a walk brought."""
    vanished: list[Doc]
    """Active docs of the folder whose file is not there any more, or is ignored now."""
    known: int
    """Active docs of the folder."""
    fresh: list[Path]
    """Files that no doc has."""
    hold_back_reason: str | None
    """Why no doc may be removed without a confirmation."""
    missing_elsewhere: list[MissingDoc] = []
    """What a fresh file may be, besides the vanished docs."""

    @property
    def lost(self) -> list[MissingDoc]:
        """What a fresh file may be, by its bytes."""
        return [*(MissingDoc(doc=doc) for doc in self.vanished), *self.missing_elsewhere]


def diff_folder(
    store: Store, origin: Origin, home: Path | None, known_before: int | None = None
) -> FolderDiff:
    """Look at both sides. Reads no file.

    At a second look `known_before` is the first one's count: what has come in between does not
    make a loss look smaller.

    A doc is the folder's own where its name is one that the folder asks for. What was added by
    name besides, and what a registered folder further in asks for, is left alone.
    """
    root = origin_folder(origin)
    amiss = unavailable_reason(root)
    with store.read() as txn:
        inner, origins = inner_folders(txn, root), list_origins(txn)
        newest = list(docs.all_latest(txn))
    active = [doc for doc in newest if doc.status == "active"]
    seen = (
        [] if amiss else list(_own_entries(walk(root, origin.extensions, home=home), origin, inner))
    )
    present = {file_lsid(one.path): one.path for one in seen if isinstance(one, WalkedFile)}
    lost = [one.path for one in seen if isinstance(one, SkippedFile) and one.failed]
    places = {doc.place for doc in active}
    start = file_lsid(root).rstrip("/") + "/"
    known = [
        doc for doc in active if doc.place.startswith(start) and _is_own_doc(doc, origin, inner)
    ]
    vanished = [doc for doc in known if doc.place not in present and not _is_under(doc, lost)]
    fresh = [path for lsid, path in present.items() if lsid not in places]
    with store.read() as txn:
        others = missing_elsewhere(txn, newest, origin, origins) if fresh else []
    return FolderDiff(
        seen=seen,
        vanished=vanished,
        known=len(known),
        fresh=fresh,
        missing_elsewhere=others,
        hold_back_reason=hold_back_reason(
            display_name(root), amiss, len(present), len(vanished), known_before or len(known)
        ),
    )


def unavailable_reason(root: Path) -> str | None:
    """Why a folder cannot be looked at; None where it can."""
    if not os.path.isdir(root):
        return f"{display_name(root)} is not there; is it mounted?"
    if os.path.realpath(root) != os.fspath(root):
        return f"{display_name(root)} is reached by a link now; add the folder it leads to"
    return None


def _own_entries(
    seen: Iterable[WalkedFile | SkippedFile], origin: Origin, inner: list[Origin]
) -> Iterable[WalkedFile | SkippedFile]:
    if not inner and origin.kind == "folder":
        return seen
    return (
        one
        for one in seen
        if (isinstance(one, SkippedFile) or covers(origin, one.path))
        and not any(covers(other, one.path) for other in inner)
    )


def _is_own_doc(doc: Doc, origin: Origin, inner: list[Origin]) -> bool:
    path = path_of(doc.place)
    kind = "file" if origin.kind == "folder" else origin.kind
    if doc.kind != kind or path is None or not covers(origin, path):
        return False
    return not any(covers(other, path) for other in inner)


def _is_under(doc: Doc, folders: list[Path]) -> bool:
    path = path_of(doc.place)
    return path is not None and any(path.is_relative_to(folder) for folder in folders)


def hold_back_reason(
    name: str, amiss: str | None, files: int, vanished: int, known: int
) -> str | None:
    """The fuse: why docs that vanished are not removed unasked; None where they may be.

    `files` are there now, `known` were there, `vanished` of those are not.
    """
    if amiss:
        return amiss
    if not vanished:
        return None
    if not files:
        came = "1 doc" if known == 1 else f"{known:,} docs"
        return f"{name} is empty, but {came} came from it; is it mounted?"
    if vanished >= VANISHED_MIN and vanished > known * VANISHED_SHARE_MAX:
        return f"{vanished:,} of {known:,} docs have vanished from {name}"
    return None


def tombstone_vanished(store: Store, vanished: Iterable[Doc]) -> list[DocId]:
    """Tombstone the docs whose files are gone; a file that comes back brings its doc back."""
    failpoint("sync.before_remove")
    return tombstone_missing(store, [doc.doc_id for doc in vanished])
