"""A folder and its docs are brought level: added, updated, moved, and removed with care."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import SourceError
from kb.ingest.changes import move, tombstone
from kb.ingest.ingest import seen_record
from kb.model.doc import Doc
from kb.model.ids import DocId
from kb.model.source import display_name, file_lsid, path_of
from kb.store import docs
from kb.store.store import Store
from kb.sync.read import read_file
from kb.sync.walk import Found, Passed, walk

# The fuse: more vanished docs than both of these are taken for an accident.
VANISHED_SHARE_MAX: Final = 0.20
VANISHED_MIN: Final = 10


class Survey(Struct, frozen=True, kw_only=True):
    """A folder against its docs, before anything is changed."""

    files: int
    vanished: list[Doc]
    """Active docs of the folder whose file is not there any more, or is ignored now."""
    known: int
    """Active docs of the folder."""
    fresh: list[Path]
    """Files that no doc has."""
    held_back: str | None
    """Why no doc may be removed without a confirmation."""


def survey(store: Store, root: Path, extensions: tuple[str, ...], home: Path | None) -> Survey:
    """Look at both sides. Reads no file."""
    seen = list(walk(root, extensions, home=home)) if root.is_dir() else []
    present = {file_lsid(one.path): one.path for one in seen if isinstance(one, Found)}
    lost = [one.path for one in seen if isinstance(one, Passed) and one.failed]
    with store.read() as txn:
        under = [doc for doc in docs.all_latest(txn) if _is_under(doc, root)]
    known = [doc for doc in under if doc.status == "active"]
    vanished = [
        doc for doc in known if doc.place not in present and _has_left(doc, extensions, lost)
    ]
    places = {doc.place for doc in known}
    return Survey(
        files=len(present),
        vanished=vanished,
        known=len(known),
        fresh=[path for lsid, path in present.items() if lsid not in places],
        held_back=_held_back(root, len(present), len(vanished), len(known)),
    )


def _is_under(doc: Doc, root: Path) -> bool:
    path = path_of(doc.place)
    return doc.kind == "file" and path is not None and path.is_relative_to(root)


def _has_left(doc: Doc, extensions: tuple[str, ...], lost: Iterable[Path]) -> bool:
    path = path_of(doc.place)
    if path is None or any(path.is_relative_to(folder) for folder in lost):
        return False
    if not path.exists():
        return True
    # It is there, but the walk did not bring it: it is ignored now, or it was added by name.
    return path.suffix.lower().lstrip(".") in extensions


def _held_back(root: Path, files: int, vanished: int, known: int) -> str | None:
    if not known:
        return None
    if not root.is_dir():
        return f"{root} is not there; is it mounted?"
    if not files:
        return f"{root} is empty, but {known} docs came from it; is it mounted?"
    if vanished >= VANISHED_MIN and vanished > known * VANISHED_SHARE_MAX:
        return f"{vanished} of {known} docs have vanished from {root}"
    return None


def follow_moves(store: Store, found: Survey, bytes_max: int) -> list[DocId]:
    """Recognise vanished docs in new files with the same bytes; returns the docs that moved.

    Of several that could be meant, the one with the same file name, else the first.
    """
    waiting: dict[str, list[Doc]] = {}
    for doc in found.vanished:
        waiting.setdefault(doc.raw_sha256, []).append(doc)
    sizes = {doc.raw_bytes for doc in found.vanished}
    moved: list[DocId] = []
    for path in found.fresh:
        if not waiting or _size(path) not in sizes:
            continue
        try:
            data, stamp = read_file(path, bytes_max, store.clock.now_ms())
        except SourceError:
            continue
        digest = hashlib.sha256(data).hexdigest()
        same = waiting.get(digest)
        if not same:
            continue
        doc = next((d for d in same if Path(d.source).name == path.name), same[0])
        lsid = file_lsid(path)
        with store.write() as txn:
            newest = docs.latest(txn, doc.source_no)
            if newest is None or newest.doc_id != doc.doc_id or docs.latest_of(txn, lsid):
                continue
            seen = seen_record(lsid, doc.doc_id, digest, stamp)
            move(txn, newest, lsid, display_name(path), seen)
        same.remove(doc)
        moved.append(doc.doc_id)
    return moved


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def remove(store: Store, vanished: Iterable[Doc]) -> list[DocId]:
    """Tombstone the docs whose files are gone; a file that comes back brings its doc back."""
    return tombstone(store, [doc.doc_id for doc in vanished])
