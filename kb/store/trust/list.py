"""The user's list of homes that count: a small file for each, so that no two processes collide."""

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from kb.errors import ReadOnlyHome
from kb.store.content.layout import HomePaths
from kb.store.trust.identity import identity_of, mark

How = Literal["made", "trusted"]
_T = TypeVar("_T")
_FOLDER: Final = "kb-trust"
_NAME_HEX: Final = 40


class TrustedHome(Struct, frozen=True, kw_only=True):
    """A home on the list."""

    home: str
    """Where it was then."""
    how: How
    """Made by this user's kb, or accepted by `kb trust`."""


class _Folder(Struct, frozen=True, kw_only=True):
    """What was accepted of a folder beside its store."""

    home: str
    owner: int
    inode: int
    settings: tuple[str, ...]
    """SHA-256 of the settings files that count in full."""


class TrustList:
    """The list of one user. Reading it never fails: what cannot be read is not on it.

    A store is named by its data file, so that a home which is moved stays on the list and one
    that takes its place is not.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def has_store(self, home: Path) -> bool:
        """Whether the store of a home is on the list."""
        place = self._store(home)
        return place is not None and place.exists()

    def has_folder(self, home: Path) -> bool:
        """Whether the user accepted this very folder, whoever owns it or may write to it."""
        known = self._folder_of(home)
        if known is None:
            return False
        found = os.stat(home)
        return (known.owner, known.inode) == (found.st_uid, found.st_ino)

    def has_settings(self, home: Path, data: bytes) -> bool:
        """Whether the user accepted a settings file of a home that holds these bytes."""
        known = self._folder_of(home)
        return known is not None and _digest(data) in known.settings

    def put_store(self, home: Path, how: How) -> None:
        """Put a home's store on the list. Raises ReadOnlyHome where that cannot be written."""
        mark(HomePaths(home).data_file)
        place = self._store(home)
        if place is not None:
            self._write(place, msgspec.json.encode(TrustedHome(home=_real(home), how=how)))

    def put_folder(self, home: Path, settings: Collection[bytes]) -> None:
        """Accept a folder with these settings files and no others. Raises ReadOnlyHome."""
        found = os.stat(home)
        said = _Folder(
            home=_real(home),
            owner=found.st_uid,
            inode=found.st_ino,
            settings=tuple(sorted(map(_digest, settings))),
        )
        self._write(self._named("folders", home), msgspec.json.encode(said))

    def put_backup(self, home: Path) -> None:
        """Note that this user's kb made the backup whose copy of a home lies here.

        Those that are gone are forgotten. Raises ReadOnlyHome.
        """
        for place in _files(self.root / "backups"):
            known = _decoded(place, TrustedHome)
            if known is None or self._store(Path(known.home), "backups") != place:
                place.unlink(missing_ok=True)
        mark(HomePaths(home).data_file)
        here = self._store(home, "backups")
        if here is not None:
            self._write(here, msgspec.json.encode(TrustedHome(home=_real(home), how="made")))

    def has_backup(self, home: Path) -> bool:
        """Whether this user's kb made the backup whose copy of a home lies here."""
        place = self._store(home, "backups")
        return place is not None and place.exists()

    def decline(self, home: Path, settings: Collection[bytes]) -> None:
        """Note that the user was asked about a home as it is now, and said no."""
        with contextlib.suppress(ReadOnlyHome):
            self._write(self._named("declined", home), self._state(home, settings))

    def is_declined(self, home: Path, settings: Collection[bytes]) -> bool:
        """Whether the user was asked about a home that was as it is now, and said no."""
        try:
            return self._named("declined", home).read_bytes() == self._state(home, settings)
        except OSError:
            return False

    def remove(self, home: Path) -> bool:
        """Take a home off the list, by its store and by its place; whether it was on it."""
        places = {self._named("folders", home), self._store(home)}
        places |= {place for place, one in self._stores() if one.home == _real(home)}
        known = [place for place in places if place is not None and place.exists()]
        for place in known:
            place.unlink(missing_ok=True)
        return bool(known)

    def listed(self) -> tuple[TrustedHome, ...]:
        """Every home on the list, by its place."""
        found = {one.home: one for _, one in self._stores()}
        for place in _files(self.root / "folders"):
            known = _decoded(place, _Folder)
            if known is not None:
                found[known.home] = TrustedHome(home=known.home, how="trusted")
        return tuple(found[home] for home in sorted(found))

    def begin(self, home: Path) -> None:
        """Note that a store is about to be made in a home, whose folder is made here.

        Raises ReadOnlyHome.
        """
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ReadOnlyHome(error.strerror or "", place=home) from error
        mark(home)
        self._write(self._named("making", home), (identity_of(home) or "").encode())

    def is_begun(self, home: Path) -> bool:
        """Whether a store was about to be made in a home, by a process that may be dead."""
        try:
            said = self._named("making", home).read_bytes()
        except OSError:
            return False
        return said == (identity_of(home) or "").encode()

    def end(self, home: Path) -> None:
        """Forget what `begin` noted."""
        self._named("making", home).unlink(missing_ok=True)

    def _store(self, home: Path, kind: str = "stores") -> Path | None:
        identity = identity_of(HomePaths(home).data_file)
        return self.root / kind / identity if identity else None

    def _state(self, home: Path, settings: Collection[bytes]) -> bytes:
        identity = identity_of(HomePaths(home).data_file) or ""
        return " ".join((identity, *sorted(map(_digest, settings)))).encode()

    def _stores(self) -> Iterator[tuple[Path, TrustedHome]]:
        for place in _files(self.root / "stores"):
            known = _decoded(place, TrustedHome)
            if known is not None:
                yield place, known

    def _folder_of(self, home: Path) -> _Folder | None:
        return _decoded(self._named("folders", home), _Folder)

    def _named(self, kind: str, home: Path) -> Path:
        return self.root / kind / _digest(os.fsencode(_real(home)))[:_NAME_HEX]

    def _write(self, place: Path, data: bytes) -> None:
        part = place.with_name(f".{os.urandom(8).hex()}")
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, place)
        except OSError as error:
            detail = f"{error.strerror}; kb notes there which homes are yours (see XDG_DATA_HOME)"
            raise ReadOnlyHome(detail, place=self.root) from error


def trust_list() -> TrustList:
    """This user's own; for a user without a data folder one that is empty and stays so."""
    import platformdirs

    data = Path(platformdirs.user_data_dir("kb", appauthor=False))
    # A place that starts nowhere would lie in the working directory, which may be a stranger's.
    return TrustList(data.with_name(_FOLDER) if data.is_absolute() else Path(os.devnull))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(place for place in folder.iterdir() if not place.name.startswith("."))
    except OSError:
        return []


def _decoded(place: Path, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(place.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _real(home: Path) -> str:
    return os.path.realpath(home)
