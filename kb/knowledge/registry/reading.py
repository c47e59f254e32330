"""Read the index of a registry; one request is enough where it has not changed."""

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
from kb.store.content.durable import write_temporary
from kb.store.store import Store

_SIGNATURE_BYTES_MAX: Final = 4_096


class RegistryReading(Struct, frozen=True, kw_only=True):
    """A registry and its index, as they were read."""

    record: RegistryRecord
    index: Index | None
    """As it is now; of one that cannot be read, as it was last; None where that is not known."""
    is_unchanged: bool = False
    error: SourceError | None = None
    """Why it cannot be read now."""


def read_index(
    store: Store, record: RegistryRecord, source: RegistrySource, folder: Path
) -> RegistryReading:
    """Read a registry's index, and cache it in `folder` for as long as it does not change.

    A cached index is used only while its hash is the one on record; otherwise it is read anew. An
    index without the signature of the trusted key is never cached.
    """
    cached_data = _kept(folder, record)
    try:
        file = source.index(
            record.cursor, sha256_hex(cached_data) if cached_data is not None else None
        )
        data = cached_data if file.data is None else file.data
        assert data is not None
        if file.data is not None and record.trust:
            _check_signature(record, source, data)
        index = parse_index(data, record.name)
    except SourceError as error:
        cached = None if cached_data is None else parse_index(cached_data, record.name)
        return RegistryReading(record=record, index=cached, error=error)
    if file.data is not None:
        _keep(folder, record, data)
    note_read(store, record.name, file.cursor, sha256_hex(data))
    return RegistryReading(record=record, index=index, is_unchanged=file.data is None)


def forget_index(folder: Path, name: str) -> None:
    """Remove the cached index of a registry."""
    _place(folder, name).unlink(missing_ok=True)


def _check_signature(record: RegistryRecord, source: RegistrySource, data: bytes) -> None:
    try:
        signature = source.file(SIGNATURE, _SIGNATURE_BYTES_MAX)
    except SourceError as error:
        detail = f"its index is not signed, or its signature cannot be read: {error}"
        raise Refused(detail, source=record.name) from error
    if not is_signed(record.trust, signature.decode("ascii", "replace").strip(), data):
        detail = "its index is not signed by the key that it is trusted by; nothing of it was taken"
        raise Refused(detail, source=record.name)


def _kept(folder: Path, record: RegistryRecord) -> bytes | None:
    if not record.index_sha256:
        return None
    try:
        data = _place(folder, record.name).read_bytes()
    except OSError:
        return None
    return data if sha256_hex(data) == record.index_sha256 else None


def _keep(folder: Path, record: RegistryRecord, data: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = _place(folder, record.name)
    os.replace(write_temporary(place, data), place)


def _place(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"
