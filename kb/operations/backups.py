"""Backups of a whole home: made, listed, verified, and brought back in another place."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kb.errors import ReadOnlyHome

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.upkeep.backup import (
        Backup,
        BackupCatalog,
        BackupList,
        CreateReport,
        Flaw,
        RestoreReport,
        VerifyReport,
    )

    BackupFlaw = Flaw
    """What is amiss in a backup, and where."""
    CreateBackupResult = CreateReport
    """The backup that was made, and those that were removed after it."""
    ListBackupsResult = BackupList
    """The backups of a home, the newest first, and those that are damaged."""
    ListedBackup = Backup
    """A backup as it is listed."""


class CreateBackupRequest(Struct, frozen=True, kw_only=True):
    """The backup that is wanted."""

    reason: str = ""
    """Why, for the list."""
    keep: int | None = None
    """Then remove all but the newest so many; None removes none."""
    to: Path | None = None
    """A new folder for it, as on another disk; None means among the home's own."""


class VerifyBackupsResult(Struct, frozen=True, kw_only=True):
    """What a look into backups found."""

    sound: bool
    backups: "list[VerifyReport]"
    damaged: "list[Flaw]"
    """Those that have no whole manifest, so that nothing in them could be looked at."""


class RestoreBackupResult(Struct, frozen=True, kw_only=True):
    """What was restored, and whether this user's kb made the backup."""

    restored: "RestoreReport"
    is_own: bool
    """Otherwise the home counts only once a person has let it."""


def create_backup(app: "App", request: CreateBackupRequest) -> "CreateBackupResult":
    """Copy the home as it is now, while others go on using it; whole or not at all.

    The result says which files of the home are amiss; then no older backup is removed. Raises
    UsageError, StoreBusy, StoreDamaged, StoreFull, ReadOnlyHome.
    """
    from kb.store.trust import trust_list
    from kb.upkeep.backup import HOME

    made = app.backups.create(request.reason, keep=request.keep, to=request.to)
    with contextlib.suppress(ReadOnlyHome):
        # Without it a home that is restored from this one counts after `kb trust`.
        trust_list().put_backup(Path(made.backup.path) / HOME)
    return made


def list_backups(home: Path) -> "ListBackupsResult":
    """The backups that lie in a home, which itself may be damaged or gone."""
    return _catalog(home).list_backups()


def verify_backups(home: Path, ident: str | None = None) -> VerifyBackupsResult:
    """Read one backup whole, or every one in a home; the result says what is amiss.

    `ident` is a name, a unique start of one, or a folder. Raises NoBackup, AmbiguousId and
    BackupDamaged for it.
    """
    catalog = _catalog(home)
    listed = catalog.list_backups()
    names = [backup.name for backup in listed.backups] if ident is None else [ident]
    verified = [catalog.verify(name) for name in names]
    damaged = list(listed.damaged) if ident is None else []
    sound = not damaged and all(backup.sound for backup in verified)
    return VerifyBackupsResult(sound=sound, backups=verified, damaged=damaged)


def restore_backup(home: Path, ident: str, to: str) -> RestoreBackupResult:
    """Make a home of a backup, in a new or empty folder or at the address of a database.

    It counts as a home only when all of it is there. Raises NoBackup, AmbiguousId, BackupDamaged,
    UsageError, StoreFull, ReadOnlyHome; for a database also StoreBusy and StoreDenied.
    """
    from kb.store.content.layout import is_in_database
    from kb.store.trust import trust_list
    from kb.upkeep.backup import HOME

    catalog, trusted = _catalog(home), trust_list()
    is_own = trusted.has_backup(catalog.find(ident) / HOME)
    if is_in_database(to):
        # The database decides who may come in.
        return RestoreBackupResult(
            restored=_restored_into_database(catalog, ident, to), is_own=True
        )
    restored = catalog.restore(ident, Path(to))
    if is_own:
        trusted.put_store(Path(restored.home), "made")
    return RestoreBackupResult(restored=restored, is_own=is_own)


def _restored_into_database(catalog: "BackupCatalog", ident: str, to: str) -> "RestoreReport":
    from kb.store.content.database import database_address
    from kb.store.store import Store
    from kb.upkeep.transfer import TransferDatabase

    address = database_address(to)
    with Store.open_database(address, fills=True) as store:
        return catalog.restore_into(ident, TransferDatabase(store, address.shown), address.shown)


def _catalog(home: Path) -> "BackupCatalog":
    from kb.store.content.layout import HomePaths
    from kb.upkeep.backup import BackupCatalog

    return BackupCatalog(HomePaths(home))
