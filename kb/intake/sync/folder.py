"""Compares a folder with its docs, and removes docs of vanished files with care."""

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.intake.ingest.changes import tombstone_missing
from kb.intake.sync.moves import MissingDoc, missing_elsewhere
from kb.intake.sync.origins import covers, inner_folders, origin_folder, origins_here
from kb.intake.sync.walk import SkippedFile, WalkedFile, walk
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.ids import DocId, Lsid
from kb.model.origin import Origin
from kb.model.source import display_name, file_lsid, file_of, path_of
from kb.store import docs
from kb.store.store import Store

# If more docs than both of these vanish, it looks like an accident, and they are held back.
VANISHED_SHARE_MAX: Final = 0.20
VANISHED_MIN: Final = 10
_MOVED: Final = "its files have moved, `kb add` the folder they are in: each keeps its doc"


class FolderDiff(Struct, frozen=True, kw_only=True):
    """The differences between a folder and its docs, before kb changes anything."""

    entries: Sequence[WalkedFile | SkippedFile]
    """The entries that a walk of the folder found."""
    vanished: list[Doc]
    """Active docs of the folder whose file is gone or ignored now."""
    known_count: int
    """Active docs of the folder."""
    fresh: list[Path]
    """Files without a doc."""
    hold_back_reason: str | None
    """Why no doc may be removed without a confirmation."""
    missing_elsewhere: list[MissingDoc] = []
    """Docs of other folders that a fresh file may belong to."""

    @property
    def missing(self) -> list[MissingDoc]:
        """All docs that a fresh file may belong to, if it has their bytes."""
        files = (doc for doc in self.vanished if file_of(doc.place) is None)
        return [*(MissingDoc(doc=doc) for doc in files), *self.missing_elsewhere]

    @property
    def unread_reason(self) -> str | None:
        """What the walk could not look at, in words: the first of it, and how much more."""
        unread = [one for one in self.entries if isinstance(one, SkippedFile) and one.failed]
        if not unread:
            return None
        more = f", and {len(unread) - 1:,} more" if len(unread) > 1 else ""
        return f"{display_name(unread[0].path)}: {unread[0].reason}{more}"

    def keeps_docs(self, moved: set[DocId]) -> bool:
        """Whether docs are left of the folder besides those that `moved` to another place."""
        return self.known_count > sum(doc.doc_id in moved for doc in self.vanished)


def diff_folder(
    store: Store, origin: Origin, home: Path | None, known_before: int | None = None
) -> FolderDiff:
    """Compare a folder with its docs, by name only.

    A second comparison passes the first one's count as `known_before`, so that docs added in
    between do not make the loss look smaller.

    Only docs whose names match the folder's extensions belong to it. Docs that were added by name,
    and docs of a registered folder inside it, are left alone.
    """
    root, machine = origin_folder(origin), store.machine
    unavailable = unavailable_reason(root)
    with store.read() as txn:
        origins = origins_here(txn, machine)
        inner = inner_folders(origins, root)
        newest = list(docs.all_latest(txn))
    active = [doc for doc in newest if doc.status == "active"]
    entries: list[WalkedFile | SkippedFile] = []
    if not unavailable:
        walked = walk(root, origin.extensions, home=home, ignoring=_is_ignoring(origin))
        entries += _own_entries(walked, origin, inner)
    present = {
        file_lsid(entry.name, machine): entry.path
        for entry in entries
        if isinstance(entry, WalkedFile)
    }
    unreadable = [
        entry.path for entry in entries if isinstance(entry, SkippedFile) and entry.failed
    ]
    places = {_file(doc) for doc in active}
    start = file_lsid(root, machine).rstrip("/") + "/"
    own_docs = [
        doc
        for doc in active
        if doc.place.startswith(start) and _is_own_doc(doc, origin, inner, machine)
    ]
    vanished = [
        doc
        for doc in own_docs
        if _file(doc) not in present and not _is_under(doc, unreadable, machine)
    ]
    unavailable = unavailable or _ignored_reason(origin, root, home, vanished, machine)
    fresh = [path for lsid, path in present.items() if lsid not in places]
    with store.read() as txn:
        others = missing_elsewhere(txn, newest, origin, origins, machine) if fresh else []
    known = known_before or len(own_docs)
    why = hold_back_reason(unavailable, len(present), len(vanished), known)
    if why and vanished and not (unavailable and os.path.isdir(root)):
        why += f" If {_MOVED}" if why.endswith("?") else f"; if {_MOVED}"
    return FolderDiff(
        entries=entries,
        vanished=vanished,
        known_count=len(own_docs),
        fresh=fresh,
        missing_elsewhere=others,
        hold_back_reason=why,
    )


def _file(doc: Doc) -> Lsid:
    """The file of a doc: of a mail its mailbox."""
    return file_of(doc.place) or doc.place


def _is_ignoring(origin: Origin) -> bool:
    return origin.kind == "folder" and not origin.takes_ignored


def _ignored_reason(
    origin: Origin, root: Path, home: Path | None, vanished: list[Doc], machine: str
) -> str | None:
    """Why docs are held back whose files are there and would not be taken in any more."""
    if not vanished or not _is_ignoring(origin):
        return None
    # What a .kbignore names is left out in both ways: its owner has said so to kb.
    there = {
        file_lsid(entry.name, machine)
        for entry in walk(root, origin.extensions, home=home)
        if isinstance(entry, WalkedFile)
    }
    ignored = sum(_file(doc) in there for doc in vanished)
    if not ignored:
        return None
    name = display_name(root)
    docs_are = "1 doc is" if ignored == 1 else f"{ignored:,} docs are"
    return (
        f"{docs_are} in it that git ignores, or that no person wrote; "
        f"`kb add --no-ignore {name}` keeps such docs"
    )


def unavailable_reason(root: Path, *, has_docs: bool = True) -> str | None:
    """Why a folder, of which there are docs or not, cannot be read; None if it can."""
    try:
        os.stat(root)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        return f"it cannot be looked at ({error.strerror})"
    if not os.path.isdir(root):
        if has_docs:
            return "it does not exist; is it mounted?"
        forget = f"kb sources rm {shlex.quote(display_name(root))}"
        return f"it does not exist, and no doc of it is left; `{forget}` forgets it"
    if os.path.realpath(root) != os.fspath(root):
        return "it is behind a link now; add the folder that the link leads to"
    return None


def _own_entries(
    entries: Iterable[WalkedFile | SkippedFile], origin: Origin, inner: list[Origin]
) -> Iterable[WalkedFile | SkippedFile]:
    if not inner and origin.kind == "folder":
        return entries
    return (
        entry
        for entry in entries
        if (isinstance(entry, SkippedFile) or covers(origin, entry.path))
        and not any(covers(other, entry.path) for other in inner)
    )


def _is_own_doc(doc: Doc, origin: Origin, inner: list[Origin], machine: str) -> bool:
    path = path_of(doc.place, machine)
    kind = "file" if origin.kind == "folder" else origin.kind
    if doc.kind != kind or path is None or not covers(origin, path):
        return False
    return not any(covers(other, path) for other in inner)


def _is_under(doc: Doc, folders: list[Path], machine: str) -> bool:
    path = path_of(doc.place, machine)
    return path is not None and any(path.is_relative_to(folder) for folder in folders)


def hold_back_reason(
    problem: str | None, files: int, vanished: int, known_count: int
) -> str | None:
    """Why vanished docs are not removed without a confirmation; None if they may be.

    Of `known_count` docs, `vanished` have lost their files; the folder has `files` files now. What
    is returned does not name the folder: its place is told beside it.
    """
    if problem:
        return problem
    if not vanished:
        return None
    if not files:
        came = "1 doc" if known_count == 1 else f"{known_count:,} docs"
        return f"it is empty, but {came} came from it; is it mounted?"
    if vanished >= VANISHED_MIN and vanished > known_count * VANISHED_SHARE_MAX:
        return f"{vanished:,} of {known_count:,} docs have vanished"
    return None


def tombstone_vanished(store: Store, vanished: Iterable[Doc]) -> list[DocId]:
    """Tombstone docs whose files are gone; a file that comes back restores its doc."""
    failpoint("sync.before_remove")
    return tombstone_missing(store, [doc.doc_id for doc in vanished])
