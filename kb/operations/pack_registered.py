"""Packs on the register of an open home: listed, opened, described, taken off."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.model.pack import PackForm, PackRecord
from kb.operations.scopes import require_owner

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.spaces.spaces import Spaces
    from kb.knowledge.packs.load import Pack

    OpenPack = Pack


REGISTER: Final = "the register of packs, which has one of each name,"


class PackList(Struct, frozen=True, kw_only=True):
    """The packs that are registered, by id."""

    packs: list[PackRecord]


class PackDescription(Struct, frozen=True, kw_only=True):
    """A pack as it is now."""

    pack_id: str
    title: str
    selector: str | None
    version: str
    schema_version: int
    root_uri: str
    content_hash: str
    location: str
    form: PackForm
    docs: int
    kinds: dict[str, int]
    warnings: tuple[str, ...]


class RemovePackResult(Struct, frozen=True, kw_only=True):
    """A pack that is not registered any more."""

    removed: str
    docs: int
    """Those that went with it."""


def list_packs(app: "App") -> PackList:
    """The packs that are registered, as far as the caller sees them."""
    from kb.knowledge.packs import register

    with app.store.read() as txn:
        return PackList(packs=register.listed(txn, app.caller))


def open_pack(spaces: "Spaces", name: str) -> "tuple[OpenPack, tuple[str, ...]]":
    """The pack that a name means, and warnings of spaces that could not be asked.

    A name is a pack's id or selector, in the first space that has it, or the place of a pack that
    is not registered. Raises UnknownPack, SharedSelector, UsageError and SourceError's children.
    """
    from kb.knowledge.packs.load import UnknownPack
    from kb.knowledge.packs.register import is_place, pack_at
    from kb.operations.pack import registered_pack

    try:
        return registered_pack(spaces, name, spaces.caller)
    except UnknownPack:
        if not is_place(name):
            raise
        return pack_at(name), ()


def describe(pack: "OpenPack") -> PackDescription:
    """What a pack says of itself as a whole."""
    from kb.knowledge.packs.brief import warnings_of

    manifest = pack.manifest
    return PackDescription(
        pack_id=manifest.pack_id,
        title=manifest.title,
        selector=pack.selector,
        version=manifest.version,
        schema_version=manifest.schema_version,
        root_uri=manifest.root_uri,
        content_hash=manifest.content_hash,
        location=pack.location,
        form=pack.form,
        docs=len(manifest.docs),
        kinds=dict(sorted(Counter(doc.kind for doc in manifest.docs).items())),
        warnings=warnings_of(pack.findings),
    )


def remove_pack(app: "App", name: str) -> RemovePackResult:
    """Take a pack off the register, and its docs out; the files of a folder stay.

    Those that were unpacked from an archive go with a later compaction. Raises UnknownPack,
    SharedSelector, ReadOnlyHome, OwnerOnly.
    """
    from kb.intake.sync.origins import UnknownSource
    from kb.intake.sync.sync_all import SyncOptions
    from kb.knowledge.packs import register
    from kb.model.origin import origin_id

    require_owner(app, REGISTER)
    record = register.unregister(app.store, name)
    options = SyncOptions(only=origin_id("pack", record.pack_id))
    with app.parser() as parser:
        try:
            docs = app.syncer(parser, options).run().removed
        except UnknownSource:
            # One that was registered before packs had docs is no source.
            docs = 0
    return RemovePackResult(removed=record.pack_id, docs=docs)
