"""The catalog of a home's backups: find, list, verify and restore them.

Nothing here opens the home's own store, so a backup can be restored when the home is lost.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import AmbiguousId, BackupDamaged, NoBackup, Unreadable, UsageError
from kb.store import embedders
from kb.store.content.files import ContentFiles
from kb.store.content.layout import HomePaths
from kb.store.store import Store
from kb.store.survey import survey_store
from kb.upkeep.backup import copying, manifest
from kb.upkeep.backup.manifest import HOME, STORE_FILE, Backup, Flaw, Manifest, StoredFile
from kb.upkeep.check import CheckCounts, CheckReport, check_without_caches
from kb.upkeep.transfer import Target, holdings_of, transfer
from kb.upkeep.transfer.staging import staged_folder

_FLAWS_MAX: Final = 1_000
_CANDIDATES_SHOWN: Final = 4


class BackupList(Struct, frozen=True, kw_only=True):
    """The contents of a home's backups folder."""

    backups: tuple[Backup, ...]
    """Complete backups, newest first."""
    damaged: tuple[Flaw, ...]


class VerifyReport(Struct, frozen=True, kw_only=True):
    """The result of reading every byte and record of a backup."""

    backup: Backup
    sound: bool
    checked: CheckCounts
    flaws: tuple[Flaw, ...]
    """The first thousand."""


class RestoreReport(Struct, frozen=True, kw_only=True):
    """A home that was restored from a backup."""

    backup: Backup
    home: str
    flaws: tuple[Flaw, ...]
    """The findings of `kb check` in the restored home: problems that the original had, too."""


class BackupCatalog:
    """The backups of one home. Nothing here opens its store."""

    def __init__(self, paths: HomePaths) -> None:
        self.paths = paths

    def list_backups(self) -> BackupList:
        """Every backup in the home, without those that are unfinished."""
        whole: list[Backup] = []
        damaged: list[Flaw] = []
        for name in self._names():
            try:
                folder = self.paths.backups / name
                whole.append(manifest.summarize(folder, manifest.read(folder)))
            except NoBackup:
                continue
            except BackupDamaged as error:
                damaged.append(Flaw(place=name, problem=str(error.fields["detail"])))
        whole.sort(key=lambda backup: (backup.created_ms, backup.name), reverse=True)
        return BackupList(backups=tuple(whole), damaged=tuple(damaged))

    def verify(self, ident: str) -> VerifyReport:
        """Read all of a backup, and compare its records and files as `kb check` does.

        `ident` is a name from the list, a unique start of one, or a path. Nothing is written.
        Raises NoBackup, AmbiguousId, and BackupDamaged if the manifest is missing or damaged.
        """
        folder = self.find(ident)
        contents = manifest.read(folder)
        flaws = list(_file_flaws(folder, contents))
        places = {flaw.place for flaw in flaws}
        checked = CheckCounts()
        # A damaged data file must not be mapped: a bad page can kill the process.
        if STORE_FILE not in places:
            try:
                report = _check_home(folder / HOME)
            except BackupDamaged as error:
                flaws.append(Flaw(place=STORE_FILE, problem=str(error.fields["detail"])))
            else:
                checked = report.checked
                flaws += [flaw for flaw in _flaws(report) if flaw.place not in places]
        return VerifyReport(
            backup=manifest.summarize(folder, contents),
            sound=not flaws,
            checked=checked,
            flaws=tuple(flaws[:_FLAWS_MAX]),
        )

    def restore(self, ident: str, to: Path) -> RestoreReport:
        """Restore a backup into the new or empty folder `to`; no file is shared with the backup.

        The home gets its name only after every byte has passed its checksum. Raises UsageError if
        `to` is not empty or lies in this home, BackupDamaged, which names the file, NoBackup,
        AmbiguousId, StoreFull, ReadOnlyHome.
        """
        folder = self.find(ident)
        contents = manifest.read(folder)
        target = self.resolve_outside(to)
        with staged_folder(target) as part:
            HomePaths(part).make()
            # Links come last, so that no file is ever written through one.
            for file in sorted(contents.files, key=lambda file: file.link is not None):
                _copy_verified(folder, file, part)
            report = _check_home(part)
        backup = manifest.summarize(folder, contents)
        return RestoreReport(backup=backup, home=str(target), flaws=tuple(_flaws(report)))

    def restore_into(self, ident: str, target: Target, place: str) -> RestoreReport:
        """Restore a backup into a home of another kind that is being filled, at `place`.

        Every byte is compared with its checksum before the home counts. Raises as `restore`.
        """
        folder = self.find(ident)
        contents = manifest.read(folder)
        for flaw in _file_flaws(folder, contents):
            raise BackupDamaged(flaw.problem, place=f"{folder.name}: {flaw.place}")
        report = _check_home(folder / HOME)
        paths = HomePaths(folder / HOME)
        with (
            Store.open(paths.store, create=False, read_only=True, locked=False) as store,
            store.read() as txn,
        ):
            transfer(holdings_of(store, txn, paths), target)
        backup = manifest.summarize(folder, contents)
        return RestoreReport(backup=backup, home=place, flaws=tuple(_flaws(report)))

    def find(self, ident: str) -> Path:
        """The folder of a backup. Raises NoBackup, or AmbiguousId if several names match."""
        names = [name for name in self._names() if ident and name.startswith(ident)]
        if len(names) > 1 and ident not in names:
            raise AmbiguousId(id=ident, candidates=", ".join(names[:_CANDIDATES_SHOWN]))
        if names:
            return self.paths.backups / (ident if ident in names else names[0])
        path = Path(ident).expanduser()
        if not ident or not path.is_dir():
            raise NoBackup(id=ident)
        return Path(os.path.realpath(path))

    def resolve_outside(self, to: Path) -> Path:
        """The real path of a folder to be made. Raises UsageError if it lies in the home."""
        real = Path(os.path.realpath(to.expanduser()))
        if real.is_relative_to(os.path.realpath(self.paths.root)):
            raise UsageError(f"{to} is inside the home {self.paths.root}; name a folder outside")
        return real

    def _names(self) -> list[str]:
        try:
            entries = list(self.paths.backups.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(e.name for e in entries if not e.name.startswith(".") and e.is_dir())


def _file_flaws(folder: Path, contents: Manifest) -> Iterator[Flaw]:
    for expected in contents.files:
        try:
            if expected.link is None:
                actual = copying.hash_file(folder / HOME, expected.path)
            else:
                actual = copying.read_link(folder / HOME, expected.path)
        except Unreadable as error:
            yield Flaw(place=expected.path, problem=error.reason)
            continue
        if actual != expected:
            yield Flaw(place=expected.path, problem=_difference(actual, expected))


def _difference(actual: StoredFile, expected: StoredFile) -> str:
    if actual.size_bytes < expected.size_bytes:
        return f"the file is cut short: {actual.size_bytes:,} of {expected.size_bytes:,} bytes"
    return "the file is not what was written"


def _copy_verified(folder: Path, expected: StoredFile, to: Path) -> None:
    if expected.link is not None:
        copying.make_link(expected, to)
        return
    try:
        actual = copying.copy_file(folder / HOME, expected.path, to)
    except Unreadable as error:
        raise BackupDamaged(error.reason, place=f"{folder.name}: {expected.path}") from error
    if actual != expected:
        raise BackupDamaged(_difference(actual, expected), place=f"{folder.name}: {expected.path}")


def _check_home(home: Path) -> CheckReport:
    """Check a home that nobody writes to. Raises BackupDamaged if its store is unsafe to map.

    A matching checksum is no proof of safety: whoever wrote the manifest may have wanted those
    bytes.
    """
    paths = HomePaths(home)
    survey = survey_store(paths.store)
    if not survey.is_safe:
        raise BackupDamaged(f"the store is not sound ({survey.summary})", place=STORE_FILE)
    with Store.open(paths.store, create=False, read_only=True, locked=False) as store:
        with store.read() as txn:
            models = embedders.in_use(txn)
        fingerprint, dim = (models.active.fingerprint, models.active.dim) if models else ("", 0)
        return check_without_caches(store, ContentFiles(paths), fingerprint, dim)


def _flaws(report: CheckReport) -> Iterator[Flaw]:
    for finding in report.findings:
        yield Flaw(place=finding.place, problem=finding.problem)
