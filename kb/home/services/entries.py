"""What is in a home's knowledge folder? Its markdown files, as entries where they are ones."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.errors import ReadOnlyHome, SourceError, StoreFull, UsageError
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.collection import Collection
from kb.intake.sync.items import CollectionMember
from kb.intake.sync.origins import origin_folder
from kb.intake.sync.read import read_file
from kb.intake.sync.walk import SkippedFile, WalkedFile, walk
from kb.knowledge.entries import Entry, id_line, parse, text_of
from kb.model.ids import Lsid
from kb.model.origin import Origin, origin_id
from kb.model.source import display_name, ending_of, entry_lsid, file_lsid, path_of
from kb.store import docs
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.chunks import PrecomputedChunks


_EXTENSIONS: Final = ("md", "markdown")
_FILES_MAX: Final = 20_000


def declared(folder: Path, now_ms: int) -> list[Origin]:
    """The source that a knowledge folder is, once it is there."""
    if not folder.is_dir():
        return []
    place = display_name(folder)
    ident = origin_id("entries", place)
    return [Origin(origin_id=ident, kind="entries", location=place, added_ms=now_ms)]


def collect(store: Store, origin: Origin, folder: Path, file_bytes_max: int) -> Collection:
    """What lies in the knowledge folder of a home now.

    A file that is no entry, or has the id of one before it, is text, with a remark. Where the home
    was moved, the source at its old place is gone; its entries are those of the new one.
    """
    place = origin_folder(origin)
    if place != folder:
        return Collection(
            name=display_name(place), kind="file", lsid_prefix=_below(place), is_removed=True
        )
    root = Path(os.path.realpath(folder))
    seen = list(walk(root, _EXTENSIONS)) if root.is_dir() else []
    paths = [walked.path for walked in seen if isinstance(walked, WalkedFile)]
    passed = tuple(walked for walked in seen if isinstance(walked, SkippedFile))
    lost = [walked.path for walked in passed if walked.failed]
    members: dict[Lsid, CollectionMember] = {}
    for path in paths[:_FILES_MAX]:
        try:
            data, _ = read_file(path, file_bytes_max, store.clock.now_ms(), listed=True)
        except SourceError:
            # It is named as a failure when it is to be taken in.
            lost.append(path)
            member = _text(path)
        else:
            member = _member(path, clean_text(decode_text(data)[0]), members)
        members[member.lsid] = member
    return Collection(
        name=display_name(folder),
        kind="entry",
        lsid_prefix=entry_lsid(""),
        text_prefix=_below(root),
        members=tuple(members.values()),
        skipped=passed,
        unreadable=_docs_at(store, lost) | {file_lsid(walked.path) for walked in passed},
        problem=f"over {_FILES_MAX:,} files in {root}" if len(paths) > _FILES_MAX else None,
    )


def member_at(store: Store, file: str, file_bytes_max: int) -> CollectionMember | None:
    """What a file in the knowledge folder is, by whatever way it is taken in.

    None where it is no entry or cannot be read, and where another file that is there has its id.
    """
    if ending_of(file) not in _EXTENSIONS:
        return None
    path = Path(file)
    try:
        data, _ = read_file(path, file_bytes_max, store.clock.now_ms())
    except SourceError:
        return None
    entry = parse(clean_text(decode_text(data)[0]))
    if not isinstance(entry, Entry):
        return None
    holder = holder_of(store, entry.meta.zettel_id)
    return of_entry(path, entry) if holder in (None, path) else None


def write_new(store: Store, folder: Path, entry: Entry) -> Path:
    """Write a new entry's file into a knowledge folder, which is made for its owner only.

    Raises UsageError, which says the path, where the id is taken; ReadOnlyHome or StoreFull.
    """
    zettel_id = entry.meta.zettel_id
    path = Path(os.path.realpath(folder)) / f"{zettel_id}.md"
    holder = holder_of(store, zettel_id)
    if holder is not None:
        raise UsageError(f"{holder} already has the id {zettel_id}; choose another --id")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise UsageError(f"{path} already exists; choose another --id") from error
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=path) from error
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(text_of(entry).encode())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StoreFull(error.strerror or "", place=path) from error
    return path


def holder_of(store: Store, zettel_id: str) -> Path | None:
    """The file of the entry that has an id; None where nothing has it, or the file is gone."""
    with store.read() as txn:
        doc = docs.latest_of(txn, entry_lsid(zettel_id))
    if doc is None or doc.status != "active":
        return None
    path = _file_of(doc.source)
    return path if path.exists() else None


def _member(path: Path, text: str, members: dict[Lsid, CollectionMember]) -> CollectionMember:
    entry = parse(text)
    if not isinstance(entry, Entry):
        wrong = "; ".join(f"line {fault.line}: {fault.detail}" for fault in entry)
        return _text(path, wrong)
    member = of_entry(path, entry)
    first = members.get(member.lsid)
    if first is None:
        return member
    owner = display_name(first.path)
    return _text(path, f"line {id_line(text)}: {owner} already has the id {entry.meta.zettel_id}")


def of_entry(
    path: Path, entry: Entry, ready: "PrecomputedChunks | None" = None
) -> CollectionMember:
    """The file of an entry, as its folder names it; `ready` where its chunks came with it."""
    ingest_options = IngestOptions(title=entry.title, tags=entry.tags, entry=entry.meta)
    lsid = entry_lsid(entry.meta.zettel_id)
    return CollectionMember(
        lsid=lsid, kind="entry", path=path, ingest_options=ingest_options, ready=ready
    )


def _text(path: Path, wrong: str | None = None) -> CollectionMember:
    remark = f"{wrong}; kb reads it as plain text until that is fixed" if wrong else None
    return CollectionMember(
        lsid=file_lsid(path), kind="file", path=path, ingest_options=IngestOptions(), remark=remark
    )


def _docs_at(store: Store, lost: list[Path]) -> frozenset[Lsid]:
    """Docs of files that cannot be looked at now, or lie in a folder that cannot."""
    if not lost:
        return frozenset()
    with store.read() as txn:
        numbers = [no for kind in ("entry", "file") for no in docs.with_facet(txn, "kind", kind)]
        latest_docs = [doc for no in numbers if (doc := docs.latest(txn, no))]
    return frozenset(
        doc.place
        for doc in latest_docs
        if any(_file_of(doc.source).is_relative_to(path) for path in lost)
    )


def _file_of(source: str) -> Path:
    return path_of(Lsid(source)) or Path(source)


def _below(folder: Path) -> str:
    return file_lsid(folder) + "/"
