"""The store's records of packs: their ids and selectors, their locations, who may see them."""

import os
from pathlib import Path
from typing import Final

from msgspec import structs

from kb.errors import AmbiguousId, Refused, SourceError, Unreadable, UsageError
from kb.knowledge.packs.load import MANIFEST_BYTES_MAX, MANIFEST_JSON, Pack, UnknownPack, load_pack
from kb.knowledge.packs.succession import check_succession
from kb.model.doc import LOCAL_USER, OPERATOR, Scope, Visibility
from kb.model.ids import Lsid
from kb.model.pack import PackRecord
from kb.model.source import path_of
from kb.store.content.inside import read_inside
from kb.store.content.layout import PACKS_FOLDER
from kb.store.keys import text_key
from kb.store.kv import ReadTxn
from kb.store.records import PACKS
from kb.store.store import Store

_ELSEWHERE: Final = ("://", "git@")


class SharedSelector(AmbiguousId):
    """Several packs have the same selector."""

    template = "several packs have the selector {id} ({candidates}); give the id of one"


def pack_at(location: str) -> Pack:
    """The pack at a place as a person types it: a folder, or a manifest's file.

    Raises what `load_pack` raises, and UsageError if it is not on a disk of this machine.
    """
    if any(mark in location[:12] for mark in _ELSEWHERE) and not location.startswith("file://"):
        raise UsageError(f"{location} is neither a folder nor a manifest on this machine")
    return load_pack(_path(location))


def is_place(location: str) -> bool:
    """Whether something exists at a place as a person types it."""
    return os.path.exists(_path(location))


def _path(location: str) -> Path:
    return path_of(Lsid(location)) or Path(os.path.expanduser(location))


def place_of(record: PackRecord, home: Path) -> Path:
    """The path of a pack's manifest; that of an unpacked pack is in the home."""
    return home / _path(record.location)


def inner_location(pack_id: str) -> str:
    """The location of an unpacked pack, relative to its home."""
    return f"{PACKS_FOLDER}/{pack_id}/{MANIFEST_JSON}"


def known_at(txn: ReadTxn, pack_id: str, location: str) -> PackRecord | None:
    """The record of this pack, None if there is none yet.

    Raises UsageError if another pack of that id is registered.
    """
    registered = PACKS.get(txn, text_key(pack_id))
    if registered is not None and registered.location != location:
        raise UsageError(
            f"{pack_id} is registered from {registered.location}; "
            f"kb pack rm {pack_id} makes room for another"
        )
    return registered


def register(
    store: Store,
    pack: Pack,
    *,
    location: str | None = None,
    visibility: Visibility | None = None,
    owner: str = LOCAL_USER,
    signed_by: str = "",
    downgrade: bool = False,
) -> PackRecord:
    """Register a pack under its id, with the present state of its manifest.

    Registering it again keeps its time and, if none is given, its visibility. Raises UsageError if
    another pack of that id is registered, and what `check_succession` raises.
    """
    manifest, location = pack.manifest, location or pack.location
    key = text_key(manifest.pack_id)
    with store.write() as txn:
        registered = known_at(txn, manifest.pack_id, location)
        check_succession(registered, manifest.version, signed_by, downgrade=downgrade)
        record = PackRecord(
            pack_id=manifest.pack_id,
            location=location,
            form=pack.form,
            selector=pack.selector,
            version=manifest.version,
            content_hash=manifest.content_hash,
            signed_by=signed_by,
            visibility=visibility or (registered.visibility if registered else "public"),
            owner=registered.owner if registered else owner,
            added_ms=registered.added_ms if registered else store.clock.now_ms(),
        )
        PACKS.put(txn, key, record)
        return record


def unregister(store: Store, name: str) -> PackRecord:
    """Unregister a pack; its files stay. Raises UnknownPack or SharedSelector."""
    with store.write() as txn:
        record = resolve(txn, name, OPERATOR)
        PACKS.delete(txn, text_key(record.pack_id))
        return record


def listed(txn: ReadTxn, scope: Scope) -> list[PackRecord]:
    """The packs that a scope sees, by id."""
    visible = (record for _, record in PACKS.scan(txn) if scope.reads(record.audience))
    return sorted(visible, key=lambda record: record.pack_id)


def resolve(txn: ReadTxn, name: str, scope: Scope) -> PackRecord:
    """The pack with this id or selector, among those that a scope sees.

    Raises UnknownPack, equally for hidden and missing packs, and SharedSelector if several packs
    have this selector.
    """
    records = listed(txn, scope)
    matches = [record for record in records if record.pack_id == name]
    matches = matches or [record for record in records if record.selector == name]
    if not matches:
        raise UnknownPack(id=name)
    if len(matches) > 1:
        raise SharedSelector(id=name, candidates=", ".join(record.pack_id for record in matches))
    return matches[0]


def open_registered(record: PackRecord, home: Path) -> Pack:
    """A registered pack as it is now.

    Raises what `load_pack` raises, but Unreadable if nothing or another pack is in its place, and
    Refused if its manifest is not signed by the recorded signer.
    """
    mend = f"kb pack rm {record.pack_id}, or put it back"
    place = place_of(record, home)
    try:
        pack = load_pack(place)
    except UnknownPack as error:
        detail = f"{record.location} does not exist any more; {mend}"
        raise Unreadable(detail, source=record.pack_id) from error
    if pack.manifest.pack_id != record.pack_id:
        detail = f"{record.location} is now the manifest of {pack.manifest.pack_id}; {mend}"
        raise Unreadable(detail, source=record.pack_id)
    if record.signed_by and _signer(place.parent, record.pack_id) != record.signed_by:
        detail = f"{record.location} is not signed by {record.signed_by} any more; {mend}"
        raise Refused(detail, source=record.pack_id)
    return pack


def _signer(folder: Path, pack_id: str) -> str:
    """The key that signed the manifest of an unpacked archive; empty if unsigned."""
    from kb.knowledge.packs.portable import SEAL, SEAL_BYTES_MAX, signer_of

    try:
        seal = read_inside(folder, SEAL, SEAL_BYTES_MAX)
        manifest = read_inside(folder, MANIFEST_JSON, MANIFEST_BYTES_MAX)
        return signer_of(seal, manifest, pack_id)
    except SourceError:
        return ""


def follow_version(store: Store, record: PackRecord, pack: Pack, *, dry_run: bool) -> None:
    """Update the record of a pack from its manifest, as a sync has read it.

    A dry run writes nothing. Raises HeldBack if its version is lower than the registered one.
    """
    manifest = pack.manifest
    check_succession(record, manifest.version, record.signed_by)
    if dry_run or (record.version, record.content_hash) == (
        manifest.version,
        manifest.content_hash,
    ):
        return
    key = text_key(record.pack_id)
    with store.write() as txn:
        # Somebody may have added another version or unregistered the pack meanwhile.
        if PACKS.get(txn, key) == record:
            changes = {"version": manifest.version, "content_hash": manifest.content_hash}
            PACKS.put(txn, key, structs.replace(record, **changes))
