"""A folder and its docs are brought level: added, updated, moved, and removed with care."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import SourceError
from kb.failpoints import failpoint
from kb.ingest.changes import move, vanish
from kb.ingest.ingest import seen_record
from kb.model.doc import Doc, Seen
from kb.model.ids import DocId
from kb.model.origin import Origin
from kb.model.source import display_name, file_lsid, path_of
from kb.store import docs
from kb.store.store import Store
from kb.sync.origins import covers, folder_of, inner_folders
from kb.sync.read import read_file
from kb.sync.walk import Found, Passed, walk

# The fuse: more vanished docs than both of these are taken for an accident.
VANISHED_SHARE_MAX: Final = 0.20
VANISHED_MIN: Final = 10


class Survey(Struct, frozen=True, kw_only=True):
    """A folder against its docs, before anything is changed."""

    seen: Sequence[Found | Passed]
    """What a walk brought."""
    vanished: list[Doc]
    """Active docs of the folder whose file is not there any more, or is ignored now."""
    known: int
    """Active docs of the folder."""
    fresh: list[Path]
    """Files that no doc has."""
    held_back: str | None
    """Why no doc may be removed without a confirmation."""


class Move(Struct, frozen=True, kw_only=True):
    """A vanished doc, and the file that has its bytes now."""

    doc: Doc
    path: Path
    seen: Seen


def survey(
    store: Store, origin: Origin, home: Path | None, known_before: int | None = None
) -> Survey:
    """Look at both sides. Reads no file.

    At a second look `known_before` is the first one's count: what has come in between does not
    make a loss look smaller.

    A doc is the folder's own where its name is one that the folder asks for. What was added by
    name besides, and what a registered folder further in asks for, is left alone.
    """
    root = folder_of(origin)
    amiss = not_there(root)
    with store.read() as txn:
        inner = inner_folders(txn, root)
        active = [doc for doc in docs.all_latest(txn) if doc.status == "active"]
    seen = [] if amiss else list(_own(walk(root, origin.extensions, home=home), origin, inner))
    present = {file_lsid(one.path): one.path for one in seen if isinstance(one, Found)}
    lost = [one.path for one in seen if isinstance(one, Passed) and one.failed]
    places = {doc.place for doc in active}
    start = file_lsid(root).rstrip("/") + "/"
    known = [doc for doc in active if doc.place.startswith(start) and _is_own(doc, origin, inner)]
    vanished = [doc for doc in known if doc.place not in present and not _is_under(doc, lost)]
    return Survey(
        seen=seen,
        vanished=vanished,
        known=len(known),
        fresh=[path for lsid, path in present.items() if lsid not in places],
        held_back=held_back(
            display_name(root), amiss, len(present), len(vanished), known_before or len(known)
        ),
    )


def not_there(root: Path) -> str | None:
    """Why a folder cannot be looked at; None where it can."""
    if not os.path.isdir(root):
        return f"{display_name(root)} is not there; is it mounted?"
    if os.path.realpath(root) != os.fspath(root):
        return f"{display_name(root)} is reached by a link now; add the folder it leads to"
    return None


def _own(
    seen: Iterable[Found | Passed], origin: Origin, inner: list[Origin]
) -> Iterable[Found | Passed]:
    if not inner and origin.kind == "folder":
        return seen
    return (
        one
        for one in seen
        if (isinstance(one, Passed) or covers(origin, one.path))
        and not any(covers(other, one.path) for other in inner)
    )


def _is_own(doc: Doc, origin: Origin, inner: list[Origin]) -> bool:
    path = path_of(doc.place)
    kind = "file" if origin.kind == "folder" else origin.kind
    if doc.kind != kind or path is None or not covers(origin, path):
        return False
    return not any(covers(other, path) for other in inner)


def _is_under(doc: Doc, folders: list[Path]) -> bool:
    path = path_of(doc.place)
    return path is not None and any(path.is_relative_to(folder) for folder in folders)


def held_back(name: str, amiss: str | None, files: int, vanished: int, known: int) -> str | None:
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


def moves(store: Store, found: Survey, bytes_max: int) -> list[Move]:
    """Recognise vanished docs in new files with the same bytes.

    Of several that could be meant, the one with the same file name, else the first.
    """
    waiting: dict[str, list[Doc]] = {}
    for doc in found.vanished:
        waiting.setdefault(doc.raw_sha256, []).append(doc)
    sizes = {doc.raw_bytes for doc in found.vanished}
    recognised: list[Move] = []
    for path in found.fresh:
        if not waiting:
            break
        if _size(path) not in sizes:
            continue
        try:
            data, stamp = read_file(path, bytes_max, store.clock.now_ms(), listed=True)
        except SourceError:
            continue
        digest = hashlib.sha256(data).hexdigest()
        same = waiting.get(digest)
        if not same:
            continue
        doc = next((d for d in same if Path(d.source).name == path.name), same[0])
        same.remove(doc)
        if not same:
            del waiting[digest]
        seen = seen_record(file_lsid(path), doc.doc_id, digest, stamp)
        recognised.append(Move(doc=doc, path=path, seen=seen))
    return recognised


def follow(store: Store, recognised: list[Move]) -> list[DocId]:
    """Say where docs are now, in one transaction; returns those that nobody overtook."""
    followed: list[DocId] = []
    if not recognised:
        return followed
    with store.write() as txn:
        for one in recognised:
            lsid = file_lsid(one.path)
            newest = docs.latest(txn, one.doc.source_no)
            # A place that has a history of its own keeps it.
            if newest is None or newest != one.doc or docs.latest_of(txn, lsid):
                continue
            move(txn, newest, lsid, display_name(one.path), one.seen)
            followed.append(newest.doc_id)
    failpoint("sync.after_move")
    return followed


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def remove(store: Store, vanished: Iterable[Doc]) -> list[DocId]:
    """Tombstone the docs whose files are gone; a file that comes back brings its doc back."""
    failpoint("sync.before_remove")
    return vanish(store, [doc.doc_id for doc in vanished])
