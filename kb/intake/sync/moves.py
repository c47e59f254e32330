"""Detects moved files: a new file with the bytes of a missing one keeps the doc of that one."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, structs

from kb.errors import SourceError
from kb.intake.ingest.changes import move_doc, was_removed
from kb.intake.ingest.ingest import seen_record
from kb.intake.ingest.own_dates import date_in_name
from kb.intake.sync.origins import covers, origin_folder, origins_here
from kb.intake.sync.parts import may_hold_parts
from kb.intake.sync.read import read_source
from kb.model.doc import LOCAL_USER, Doc, SourceStamp, Visibility
from kb.model.failpoints import failpoint
from kb.model.ids import DocId, Lsid
from kb.model.origin import Origin
from kb.model.source import display_name, file_lsid, file_of, path_of
from kb.store import docs
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import SEEN, SOURCES
from kb.store.store import Store

TitleOf: TypeAlias = Callable[[Path, bytes], str | None]
"""Returns the title of a file with these bytes at its new place; None if it cannot be read."""


class MissingDoc(Struct, frozen=True, kw_only=True):
    """A doc whose file is missing, or may be missing in another folder."""

    doc: Doc
    elsewhere: Origin | None = None
    """The registered folder that it belongs to; None for the folder that is being compared."""


class DetectedMove(Struct, frozen=True, kw_only=True):
    """A doc whose file is missing, and the new file with its bytes."""

    doc: Doc
    path: Path
    seen: SourceStamp
    title: str | None = None
    """Its new title; None if its title stays."""
    visibility: Visibility | None = None
    """Its new visibility; None if that stays."""


def missing_elsewhere(
    txn: ReadTxn, newest: Iterable[Doc], origin: Origin, origins: list[Origin], machine: str = ""
) -> list[MissingDoc]:
    """Docs whose file may have moved into this folder: docs of other folders, and tombstoned ones.

    `origins` are those of this machine.

    It does not check yet whether their files are gone.
    """
    folders = [registered for registered in origins if registered.kind == "folder"]
    owner = origin.owner or LOCAL_USER
    lost: list[MissingDoc] = []
    for doc in newest:
        path = path_of(doc.place, machine)
        if path is None or doc.kind != "file" or doc.owner != owner or file_of(doc.place):
            continue
        of = _innermost(folders, path)
        if of is None or (doc.status == "active" and of.origin_id == origin.origin_id):
            continue
        if doc.status == "tombstoned" and was_removed(txn, doc.place):
            continue
        lost.append(MissingDoc(doc=doc, elsewhere=of))
    return lost


def _innermost(folders: list[Origin], path: Path) -> Origin | None:
    covering = [folder for folder in folders if covers(folder, path)]
    return max(covering, key=lambda folder: len(origin_folder(folder).parts), default=None)


def detect_moves(
    store: Store,
    fresh: Iterable[Path],
    lost: Sequence[MissingDoc],
    bytes_max: int,
    *,
    to: Origin | None = None,
    title_of: TitleOf | None = None,
) -> list[DetectedMove]:
    """Match missing docs with new files that have the same bytes.

    If several docs match, the one with the same file name wins, otherwise the first.
    """
    waiting: dict[str, list[MissingDoc]] = {}
    for missing in lost:
        waiting.setdefault(missing.doc.raw_sha256, []).append(missing)
    sizes = {missing.doc.raw_bytes for missing in lost}
    recognised: list[DetectedMove] = []
    for path in fresh:
        if not waiting:
            break
        if _size(path) not in sizes:
            continue
        try:
            read = read_source(path, bytes_max, store.clock.file_ms(), listed=True)
        except SourceError:
            continue
        digest = read.digest
        same = [
            missing
            for missing in waiting.get(digest, ())
            if missing.elsewhere is None or _is_file_gone(missing.doc, store.machine)
        ]
        if not same:
            continue
        chosen = next(
            (missing for missing in same if Path(missing.doc.source).name == path.name), same[0]
        )
        waiting[digest].remove(chosen)
        if not waiting[digest]:
            del waiting[digest]
        doc = chosen.doc
        recognised.append(
            DetectedMove(
                doc=doc,
                path=path,
                seen=seen_record(file_lsid(path, store.machine), doc.doc_id, digest, read.stamp),
                title=new_title(doc, path, read.data, title_of),
                visibility=_visibility(chosen, to),
            )
        )
    return recognised


def detect_moves_into(
    store: Store,
    origin: Origin,
    files: Iterable[Path],
    bytes_max: int,
    *,
    title_of: TitleOf | None = None,
) -> list[DetectedMove]:
    """Match new files of a folder that is about to be registered with docs of other folders.

    Of a folder that is registered already syncs follow the moves: there an add looks at no doc but
    those of its files.
    """
    machine = store.machine
    with store.read() as txn:
        origins = origins_here(txn, machine)
        if not origins or SOURCES.get(txn, origin.origin_id.encode()):
            return []
        fresh = [path for path in files if docs.latest_of(txn, file_lsid(path, machine)) is None]
        newest = docs.all_latest(txn) if fresh else ()
        missing = missing_elsewhere(txn, newest, origin, origins, machine)
    return detect_moves(store, fresh, missing, bytes_max, to=origin, title_of=title_of)


def new_title(doc: Doc, path: Path, data: bytes, title_of: TitleOf | None) -> str | None:
    """The title of a doc after a move, if its old title may come from its file's name."""
    if title_of is None or doc.title_given is not None:
        return None
    # Imported late: few files move.
    from kb.intake.canonicalize.title import fallback_title

    if doc.title != fallback_title(Path(doc.source).name, ""):
        return None
    return title_of(path, data)


def _visibility(lost: MissingDoc, to: Origin | None) -> Visibility | None:
    """The new visibility, if the old one came from the folder; a person's choice stays."""
    if to is None or lost.elsewhere is None or lost.elsewhere.origin_id == to.origin_id:
        return None
    if lost.doc.visibility != (lost.elsewhere.visibility or "private"):
        return None
    return to.visibility or "private"


def _is_file_gone(doc: Doc, machine: str) -> bool:
    path = path_of(doc.place, machine)
    try:
        if path is not None:
            path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        # It cannot be checked, so it may still be there.
        return False
    return False


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def apply_moves(store: Store, recognised: list[DetectedMove]) -> list[DocId]:
    """Move docs to their new places in one transaction.

    Returns the ids of those that nobody changed meanwhile.
    """
    followed: list[DocId] = []
    if not recognised:
        return followed
    with store.write() as txn:
        attachments = _attachments(txn, recognised)
        for move in recognised:
            lsid = file_lsid(move.path, store.machine)
            newest = docs.latest(txn, move.doc.source_no)
            # A place with a history of its own keeps it.
            if newest is None or newest != move.doc or docs.latest_of(txn, lsid):
                continue
            if was_removed(txn, lsid):
                continue
            source = display_name(move.path, store.machine)
            named = date_in_name(newest.source, newest.kind)
            changed = structs.replace(
                newest,
                source=source,
                date=date_in_name(source, newest.kind) if newest.date == named else newest.date,
                title=move.title or newest.title,
                visibility=move.visibility or newest.visibility,
            )
            move_doc(txn, store, changed, lsid, move.seen)
            for part in attachments.get(newest.place, ()):
                # What the file no longer had before it moved does not come back.
                if part.status == "active" or newest.status != "active":
                    _move_attachment(txn, store, part, newest, changed, lsid)
            followed.append(newest.doc_id)
    failpoint("sync.after_move")
    return followed


def _attachments(txn: ReadTxn, recognised: list[DetectedMove]) -> dict[Lsid, list[Doc]]:
    """What is in moved mails and exports, by their old places; not what a person removed."""
    places = {move.doc.place for move in recognised if may_hold_parts(move.doc)}
    parts: dict[Lsid, list[Doc]] = {}
    if not places:
        return parts
    for doc in docs.all_latest(txn):
        file = file_of(doc.place)
        if file in places and not was_removed(txn, doc.place):
            parts.setdefault(file, []).append(doc)
    return parts


def _move_attachment(
    txn: WriteTxn, store: Store, part: Doc, before: Doc, after: Doc, place: Lsid
) -> None:
    """Move an attachment with its mail, which was `before` and is `after` at `place` now."""
    to = Lsid(place + part.place.removeprefix(before.place))
    if docs.latest_of(txn, to):
        return
    seen = SEEN.get(txn, lsid_key(place))
    if seen is None:
        return
    moved = structs.replace(
        part,
        source=after.source + part.source.removeprefix(before.source),
        visibility=after.visibility if part.visibility == before.visibility else part.visibility,
    )
    stamp = structs.replace(seen, lsid=to, doc_id=part.doc_id, raw_sha256=part.raw_sha256)
    move_doc(txn, store, moved, to, stamp)
