"""Install the shipped entries: those that are new or newer, never over an edited one."""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import ReadOnlyHome, StoreFull
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.knowledge.entries import Entry, compare, parse
from kb.knowledge.guide.core import CoreEntry, core_entries
from kb.model.ids import Lsid, sha256_hex
from kb.model.source import entry_lsid, path_of
from kb.store import docs, meta
from kb.store.content.durable import write_temporary
from kb.store.store import Store

_BYTES_MAX: Final = 1 << 20


class Installed(Struct, frozen=True, kw_only=True):
    """What became of kb's own entries, by their ids."""

    written: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    edited: tuple[str, ...]
    """Left as they are, because somebody has changed or moved them."""
    removed: tuple[str, ...]
    """Not written, because somebody has removed them."""
    to_take_in: tuple[Path, ...]
    """Files that the store does not have as they are now."""


def install(store: Store, folder: Path) -> Installed:
    """Write kb's own entries into a folder, each whole.

    One that is there goes only where nobody has touched it and the shipped version is later. One
    that was removed does not come back unless the folder itself is gone. Raises ReadOnlyHome or
    StoreFull.
    """
    is_new = not folder.is_dir()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=folder) from error
    outcomes: dict[str, list[str]] = {}
    to_take_in: list[Path] = []
    for entry in core_entries():
        outcome = _put(store, folder, entry, is_new=is_new)
        outcomes.setdefault(outcome, []).append(entry.zettel_id)
        path = folder / entry.file_name
        if outcome in ("written", "updated") or (
            outcome == "unchanged" and not _is_level(store, entry, path)
        ):
            to_take_in.append(path)
    return Installed(
        **{name: tuple(outcomes.get(name, ())) for name in _OUTCOMES},
        to_take_in=tuple(to_take_in),
    )


_OUTCOMES: Final = ("written", "updated", "unchanged", "edited", "removed")


def _put(store: Store, folder: Path, entry: CoreEntry, *, is_new: bool) -> str:
    path = folder / entry.file_name
    word = f"core:{entry.zettel_id}"
    with store.read() as txn:
        written_hashes = meta.get_word(txn, word).split()
    if not path.exists():
        elsewhere = _doc_file(store, entry)
        if elsewhere is not None and elsewhere != path and elsewhere.exists():
            return "edited"
        if written_hashes and not is_new:
            return "removed"
        _write(store, path, entry, word, written_hashes)
        return "written"
    current = _read(path)
    if current == entry.data:
        return "unchanged"
    if current is None or sha256_hex(current) not in written_hashes:
        return "edited"
    if not _is_later(entry, current):
        return "unchanged"
    _write(store, path, entry, word, written_hashes)
    return "updated"


def _is_later(entry: CoreEntry, here: bytes) -> bool:
    installed = parse(clean_text(decode_text(here)[0]))
    return not isinstance(installed, Entry) or compare(entry.version, installed.meta.version) > 0


def _read(path: Path) -> bytes | None:
    """What a file holds; None of one that kb cannot have written."""
    try:
        with open(path, "rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError:
        return None
    return data if len(data) <= _BYTES_MAX else None


def _write(
    store: Store, path: Path, entry: CoreEntry, word: str, written_hashes: list[str]
) -> None:
    # The hashes come first: a crash before the file leaves one that is still known as untouched.
    with store.write() as txn:
        meta.set_word(txn, word, " ".join((sha256_hex(entry.data), *written_hashes[:1])))
    try:
        os.replace(write_temporary(path, entry.data), path)
    except OSError as error:
        raise StoreFull(error.strerror or "", place=path) from error


def _is_level(store: Store, entry: CoreEntry, path: Path) -> bool:
    """Whether the store has the entry as its file is, or a person removed it there."""
    with store.read() as txn:
        doc = docs.latest_of(txn, entry_lsid(entry.zettel_id))
    if doc is None:
        return False
    return doc.status != "active" or doc.raw_sha256 == sha256_hex(_read(path) or b"")


def _doc_file(store: Store, entry: CoreEntry) -> Path | None:
    """The file of the entry as the store knows it, removed by a person or not."""
    with store.read() as txn:
        doc = docs.latest_of(txn, entry_lsid(entry.zettel_id))
    return None if doc is None else path_of(Lsid(doc.source)) or Path(doc.source)
