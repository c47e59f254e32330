"""What does a registry say now? Its index, by one request where it is as it was."""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import Refused, SourceError
from kb.knowledge.packs.keys import is_signed
from kb.knowledge.registry.index import SIGNATURE, Index, parse_index
from kb.knowledge.registry.register import note_read
from kb.knowledge.registry.source import RegistrySource
from kb.model.ids import sha256_hex
from kb.model.registry import RegistryRecord
from kb.search.index.files import write_beside
from kb.store.store import Store

_SIGNATURE_BYTES_MAX: Final = 4_096


class Reading(Struct, frozen=True, kw_only=True):
    """A registry as it was found."""

    record: RegistryRecord
    index: Index | None
    """As it is now; of one that cannot be read, as it was last; None where that is not known."""
    is_unchanged: bool = False
    error: SourceError | None = None
    """Why it cannot be read now."""


def read_index(
    store: Store, record: RegistryRecord, source: RegistrySource, shelf: Path
) -> Reading:
    """Read a registry's index, and keep it in the folder `shelf` for when it has not changed.

    What is kept there is a cache: it is used only while its hash is the one on record, and else
    the index is read anew. An index that a trusted key has not signed is kept nowhere.
    """
    kept = _kept(shelf, record)
    try:
        found = source.index(record.cursor, sha256_hex(kept) if kept is not None else None)
        data = kept if found.data is None else found.data
        assert data is not None
        if found.data is not None and record.trust:
            _check_signature(record, source, data)
        index = parse_index(data, record.name)
    except SourceError as error:
        last = None if kept is None else parse_index(kept, record.name)
        return Reading(record=record, index=last, error=error)
    if found.data is not None:
        _keep(shelf, record, data)
    note_read(store, record.name, found.cursor, sha256_hex(data))
    return Reading(record=record, index=index, is_unchanged=found.data is None)


def forget_index(shelf: Path, name: str) -> None:
    """Drop what is kept of a registry's index."""
    _place(shelf, name).unlink(missing_ok=True)


def _check_signature(record: RegistryRecord, source: RegistrySource, data: bytes) -> None:
    try:
        said = source.file(SIGNATURE, _SIGNATURE_BYTES_MAX)
    except SourceError as error:
        detail = f"its index is not signed, or its signature cannot be read: {error}"
        raise Refused(detail, source=record.name) from error
    if not is_signed(record.trust, said.decode("ascii", "replace").strip(), data):
        detail = "its index is not signed by the key that it is trusted by; nothing of it was taken"
        raise Refused(detail, source=record.name)


def _kept(shelf: Path, record: RegistryRecord) -> bytes | None:
    if not record.index_sha256:
        return None
    try:
        data = _place(shelf, record.name).read_bytes()
    except OSError:
        return None
    return data if sha256_hex(data) == record.index_sha256 else None


def _keep(shelf: Path, record: RegistryRecord, data: bytes) -> None:
    shelf.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = _place(shelf, record.name)
    os.replace(write_beside(place, data), place)


def _place(shelf: Path, name: str) -> Path:
    return shelf / f"{name}.json"
