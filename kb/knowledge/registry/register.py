"""The store's records of registries, by name, and of the entries that were pulled from them."""

import os
import re
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import NotFound, Refused, SourceError, UsageError
from kb.knowledge.packs.keys import key_bytes
from kb.knowledge.registry.index import INDEX, INDEX_BYTES_MAX, parse_index
from kb.model.ids import Lsid
from kb.model.registry import PulledEntry, RegistryRecord
from kb.model.source import display_name, path_of
from kb.store.content.inside import read_inside
from kb.store.keys import text_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import next_number
from kb.store.records import PULLED, REGISTRIES
from kb.store.store import Store

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_WEB: Final = ("http://", "https://")


class UnknownRegistry(NotFound):
    """No registry has this name."""

    template = "no registry is called {id}; `kb registry ls` lists them"


def is_web(location: str) -> bool:
    """Whether a registry is on a web server."""
    return location.startswith(_WEB)


def folder_at(location: str) -> Path:
    """The folder of a registry that is not on a web server."""
    return path_of(Lsid(location)) or Path(location)


def located(location: str) -> str:
    """The normal form of a registry's location as a person typed it.

    The index in a folder must be readable; a server is not asked. Raises UsageError.
    """
    if location.startswith(_WEB):
        return _web_location(location)
    if "://" in location[:12] and not location.startswith("file://"):
        raise UsageError(f"{location} is neither a folder nor an http address")
    path = path_of(Lsid(location)) or Path(os.path.expanduser(location))
    folder = Path(os.path.realpath(path))
    try:
        parse_index(read_inside(folder, INDEX, INDEX_BYTES_MAX), display_name(folder))
    except SourceError as error:
        raise UsageError(f"{display_name(folder)} is not a registry: {error.reason}") from error
    return display_name(folder)


def _web_location(location: str) -> str:
    from kb.intake.sync.weburl import parse_url

    try:
        url = parse_url(location)
    except Refused as error:
        raise UsageError(str(error)) from error
    if "?" in url.target:
        raise UsageError(f"{location}: the address of a registry has no query")
    return url.text.removesuffix(INDEX).rstrip("/")


def add(store: Store, name: str, location: str, trust: str | None) -> RegistryRecord:
    """Register a registry under a name.

    Adding it again from the same place changes its trusted key, if one is given. Raises UsageError
    if the name or the key is not valid, or another registry has the name.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a name (a to z, 0 to 9, '.', '_' and '-', at most 64 characters)"
        )
    if trust is not None:
        _check_key(trust)
    with store.write() as txn:
        registered = REGISTRIES.get(txn, text_key(name))
        if registered is not None and registered.location != location:
            raise UsageError(
                f"{name} is the registry at {registered.location}; "
                f"`kb registry rm {name}` makes room for another"
            )
        if registered is None:
            record = RegistryRecord(
                name=name,
                location=location,
                trust=trust or "",
                order=next_number(txn, "registry"),
                added_ms=store.clock.now_ms(),
            )
        else:
            # An index that was read under another key, or none, is read again.
            record = msgspec.structs.replace(
                registered, trust=trust or registered.trust, cursor="", index_sha256=""
            )
        REGISTRIES.put(txn, text_key(name), record)
        return record


def _check_key(trust: str) -> None:
    try:
        key_bytes(trust)
    except ValueError as error:
        raise UsageError(f"--trust is not a public key: {error}; see `kb pack keygen`") from error


def remove(store: Store, name: str) -> tuple[RegistryRecord, int]:
    """Unregister a registry; returns its record, and how many entries from it stay.

    Raises UnknownRegistry.
    """
    with store.write() as txn:
        record = resolve(txn, name)
        REGISTRIES.delete(txn, text_key(name))
        return record, sum(entry.registry == name for entry in pulled(txn).values())


def listed(txn: ReadTxn) -> list[RegistryRecord]:
    """Every registry, in the order in which they were added."""
    return sorted((record for _, record in REGISTRIES.scan(txn)), key=lambda record: record.order)


def resolve(txn: ReadTxn, name: str) -> RegistryRecord:
    """The registry of this name. Raises UnknownRegistry."""
    record = REGISTRIES.get(txn, text_key(name))
    if record is None:
        raise UnknownRegistry(id=name)
    return record


def note_read(store: Store, name: str, cursor: str, index_sha256: str) -> None:
    """Store the state of a registry's index, if the registry is still registered."""
    with store.write() as txn:
        registered = REGISTRIES.get(txn, text_key(name))
        if registered is not None:
            updated = msgspec.structs.replace(
                registered, cursor=cursor, index_sha256=index_sha256, read_ms=store.clock.now_ms()
            )
            REGISTRIES.put(txn, text_key(name), updated)


def pulled(txn: ReadTxn) -> dict[str, PulledEntry]:
    """The pulled entries by id, also those that are being installed."""
    return {record.zettel_id: record for _, record in PULLED.scan(txn)}


def put_pulled(txn: WriteTxn, record: PulledEntry) -> None:
    """Store the record of a pulled entry."""
    PULLED.put(txn, text_key(record.zettel_id), record)
