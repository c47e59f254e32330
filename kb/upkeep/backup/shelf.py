"""The backups of a home: found, listed, verified, restored. The home itself may be lost."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import AmbiguousId, BackupDamaged, NoBackup, Unreadable, UsageError
from kb.store import embedders
from kb.store.content.files import ContentStore
from kb.store.content.layout import HomePaths
from kb.store.store import Store
from kb.store.survey import survey_store
from kb.upkeep.backup import copying, manifest
from kb.upkeep.backup.manifest import HOME, STORE_FILE, Backup, Flaw, Manifest, StoredFile
from kb.upkeep.backup.staging import staged
from kb.upkeep.check import Checked, CheckReport, check_truth

_FLAWS_MAX: Final = 1_000
_CANDIDATES_SHOWN: Final = 4


class Listed(Struct, frozen=True, kw_only=True):
    """What lies in a home's backups folder."""

    backups: tuple[Backup, ...]
    """Whole ones, the newest first."""
    damaged: tuple[Flaw, ...]


class Verified(Struct, frozen=True, kw_only=True):
    """What a look at every byte and record of a backup found."""

    backup: Backup
    sound: bool
    checked: Checked
    flaws: tuple[Flaw, ...]
    """The first thousand."""


class Restored(Struct, frozen=True, kw_only=True):
    """A home that was made from a backup."""

    backup: Backup
    home: str
    flaws: tuple[Flaw, ...]
    """What was amiss in the home when it was backed up, as `kb check` would say it."""


class Shelf:
    """The backups of one home. Nothing here opens its store."""

    def __init__(self, paths: HomePaths) -> None:
        self.paths = paths

    def listed(self) -> Listed:
        """Every backup in the home; one that is being made, or was left half, is not there."""
        whole: list[Backup] = []
        damaged: list[Flaw] = []
        for name in self._names():
            try:
                folder = self.paths.backups / name
                whole.append(manifest.described(folder, manifest.read(folder)))
            except NoBackup:
                continue
            except BackupDamaged as error:
                damaged.append(Flaw(place=name, problem=str(error.fields["detail"])))
        whole.sort(key=lambda backup: (backup.created_ms, backup.name), reverse=True)
        return Listed(backups=tuple(whole), damaged=tuple(damaged))

    def verify(self, ident: str) -> Verified:
        """Read all of a backup, and compare its records and files as `kb check` does.

        `ident` is a name from the list, a unique start of one, or a path. Nothing is written.
        Raises NoBackup, AmbiguousId, and BackupDamaged where there is no whole manifest.
        """
        folder = self.find(ident)
        held = manifest.read(folder)
        flaws = list(_unlike(folder, held))
        places = {flaw.place for flaw in flaws}
        checked = Checked()
        # Pages that are not what was written are not to be mapped.
        if STORE_FILE not in places:
            try:
                report = _checked(folder / HOME)
            except BackupDamaged as error:
                flaws.append(Flaw(place=STORE_FILE, problem=str(error.fields["detail"])))
            else:
                checked = report.checked
                flaws += [flaw for flaw in _flaws(report) if flaw.place not in places]
        return Verified(
            backup=manifest.described(folder, held),
            sound=not flaws,
            checked=checked,
            flaws=tuple(flaws[:_FLAWS_MAX]),
        )

    def restore(self, ident: str, to: Path) -> Restored:
        """Make a home of a backup in the new or empty folder `to`, sharing no file with it.

        The home appears under its name once every byte was found to be what was written. Raises
        UsageError where `to` is not empty or lies in this home, BackupDamaged, naming the file,
        NoBackup, AmbiguousId, StoreFull, ReadOnlyHome.
        """
        folder = self.find(ident)
        held = manifest.read(folder)
        target = self.outside(to)
        with staged(target) as part:
            HomePaths(part).make()
            # Links come last: no file is ever written through one.
            for file in sorted(held.files, key=lambda file: file.link is not None):
                _bring(folder, file, part)
            report = _checked(part)
        backup = manifest.described(folder, held)
        return Restored(backup=backup, home=str(target), flaws=tuple(_flaws(report)))

    def find(self, ident: str) -> Path:
        """The folder of a backup. Raises NoBackup, or AmbiguousId where several start so."""
        names = [name for name in self._names() if ident and name.startswith(ident)]
        if len(names) > 1 and ident not in names:
            raise AmbiguousId(id=ident, candidates=", ".join(names[:_CANDIDATES_SHOWN]))
        if names:
            return self.paths.backups / (ident if ident in names else names[0])
        path = Path(ident).expanduser()
        if not ident or not path.is_dir():
            raise NoBackup(id=ident)
        return Path(os.path.realpath(path))

    def outside(self, to: Path) -> Path:
        """The real path of a folder that is to be made. Raises UsageError inside the home."""
        real = Path(os.path.realpath(to.expanduser()))
        if real.is_relative_to(os.path.realpath(self.paths.root)):
            raise UsageError(f"{to} lies in the home {self.paths.root}; name a folder outside")
        return real

    def _names(self) -> list[str]:
        try:
            entries = list(self.paths.backups.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(e.name for e in entries if not e.name.startswith(".") and e.is_dir())


def _unlike(folder: Path, held: Manifest) -> Iterator[Flaw]:
    for file in held.files:
        try:
            if file.link is None:
                found = copying.hashed(folder / HOME, file.path)
            else:
                found = copying.link_at(folder / HOME, file.path)
        except Unreadable as error:
            yield Flaw(place=file.path, problem=error.reason)
            continue
        if found != file:
            yield Flaw(place=file.path, problem=_difference(found, file))


def _difference(found: StoredFile, file: StoredFile) -> str:
    if found.size_bytes < file.size_bytes:
        return f"the file is cut short: {found.size_bytes:,} of {file.size_bytes:,} bytes"
    return "the file is not what was written"


def _bring(folder: Path, file: StoredFile, to: Path) -> None:
    if file.link is not None:
        copying.put_link(file, to)
        return
    try:
        found = copying.copied(folder / HOME, file.path, to)
    except Unreadable as error:
        raise BackupDamaged(error.reason, place=f"{folder.name}: {file.path}") from error
    if found != file:
        raise BackupDamaged(_difference(found, file), place=f"{folder.name}: {file.path}")


def _checked(home: Path) -> CheckReport:
    """Raises BackupDamaged for a store that could end the process which opens it.

    That the manifest names its bytes says only that whoever wrote both wanted them so.
    """
    paths = HomePaths(home)
    survey = survey_store(paths.store)
    if not survey.is_safe:
        raise BackupDamaged(f"the store is not sound ({survey.in_words})", place=STORE_FILE)
    with Store.open(paths.store, create=False, read_only=True, locked=False) as store:
        with store.read() as txn:
            known = embedders.in_use(txn)
        fingerprint, dim = (known.active.fingerprint, known.active.dim) if known else ("", 0)
        return check_truth(store, ContentStore(paths), fingerprint, dim)


def _flaws(report: CheckReport) -> Iterator[Flaw]:
    for found in report.findings:
        yield Flaw(place=found.place, problem=found.problem)
