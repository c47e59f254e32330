"""A pack, put on the register of an open home, and its docs taken in."""

from typing import TYPE_CHECKING, Final

import msgspec

from kb.intake.sync.report import SourceLine, SyncReport
from kb.model import doc
from kb.operations.pack_registered import REGISTER, PackDescription, describe
from kb.operations.scopes import require_owner

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.services.packs import PlacedPack, Signed
    from kb.knowledge.packs.load import Pack

    ReadPack = Pack | Signed
    """A pack as it was read, before anything is written: a folder's, or an archive's."""
    RegisteredPack = PlacedPack
    """A pack on the register, its docs still to be taken in."""

Visibility = doc.Visibility
VISIBILITIES: Final = doc.VISIBILITIES


class AddPackResult(PackDescription, frozen=True, kw_only=True):
    """A pack that was added, and what became of its docs."""

    signed_by: str | None
    """The public key of an archive's signature."""
    sync: SourceLine


def read_pack(app: "App", place: str, *, trust: str | None = None) -> "ReadPack":
    """The pack at a place: a folder, a manifest's file, an archive (.tar), or an archive's URL.

    An archive is verified as a whole; nothing is written. `trust` is a public key, by which and no
    other it must be signed. Raises UsageError, UnknownPack, and SourceError's children.
    """
    return app.packs.read(place, trust=trust)


def register(
    app: "App",
    pack: "ReadPack",
    *,
    visibility: Visibility | None = None,
    downgrade: bool = False,
) -> "RegisteredPack":
    """Put a pack on the register; the files of an archive come to lie in the home, whole.

    Raises UsageError where another pack has its id, Refused where its signer is not the one that
    the id is known by, HeldBack where its version is lower than the registered one and `downgrade`
    does not allow that; StoreBusy, StoreFull, OwnerOnly.
    """
    require_owner(app, REGISTER)
    return app.packs.place(pack, visibility=visibility, downgrade=downgrade)


def take_in(
    app: "App", registered: "RegisteredPack", visibility: Visibility | None = None
) -> SyncReport:
    """Take a registered pack's docs in; the report has one source. Workers have to do the rest."""
    from kb.intake.sync.sync_all import SyncOptions

    # What an archive leaves out is gone from it for good: a manifest that is whole says so.
    options = SyncOptions(
        only=registered.origin_id,
        accept_deletions=registered.signed is not None,
        file_bytes_max=app.settings.ingest.file_bytes_max,
    )
    with app.parser() as parser:
        syncer = app.syncer(
            parser, options, ready=registered.ready, revive=True, visibility=visibility
        )
        return syncer.run()


def result_of(registered: "RegisteredPack", report: SyncReport) -> AddPackResult:
    """What a pack is, and what became of its docs."""
    described = describe(registered.pack)
    signed, warnings = registered.signed, described.warnings
    key = signed.archive.key if signed else ""
    if signed and not signed.is_trusted:
        whose = f"signed by {key}, which is no trusted key" if key else "not signed"
        warnings = (f"the archive is {whose}", *warnings)
    fields = {**msgspec.structs.asdict(described), "warnings": warnings}
    return AddPackResult(**fields, signed_by=key or None, sync=report.sources[0])
