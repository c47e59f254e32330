"""The user's list of trusted homes: one small file for each, so that processes do not collide."""

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from kb.errors import ReadOnlyHome
from kb.model.config.places import user_folder
from kb.model.decoding import decode_json
from kb.store.content.layout import HomePaths
from kb.store.trust.identity import identity_of, mark

TrustOrigin = Literal["made", "trusted"]
_T = TypeVar("_T")
_FOLDER: Final = "kb-trust"
_NAME_HEX: Final = 40


class TrustedHome(Struct, frozen=True, kw_only=True):
    """A home on the list. The field names are the file format."""

    home: str
    """Its path when it was listed."""
    how: TrustOrigin
    """Made by this user's kb, or accepted by `kb trust`."""


class _AcceptedFolder(Struct, frozen=True, kw_only=True):
    """A folder that the user accepted, with its settings files."""

    home: str
    owner: int
    inode: int
    settings: tuple[str, ...]
    """SHA-256 of each accepted settings file."""


class TrustList:
    """The trust list of one user. Reading never fails: an unreadable entry counts as absent.

    A store is listed by the identity of its data file. So a home that is moved stays on the list,
    and another home at its old path is not on it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def has_store(self, home: Path) -> bool:
        """Whether the store of a home is on the list."""
        place = self._store_entry(home)
        return place is not None and place.exists()

    def has_folder(self, home: Path) -> bool:
        """Whether the user accepted this folder, with the owner and inode that it has now."""
        accepted = self._accepted_folder(home)
        if accepted is None:
            return False
        status = os.stat(home)
        return (accepted.owner, accepted.inode) == (status.st_uid, status.st_ino)

    def has_settings(self, home: Path, data: bytes) -> bool:
        """Whether the user accepted a settings file of a home with these bytes."""
        accepted = self._accepted_folder(home)
        return accepted is not None and _digest(data) in accepted.settings

    def put_store(self, home: Path, how: TrustOrigin) -> None:
        """Put a home's store on the list. Raises ReadOnlyHome if the list cannot be written."""
        mark(HomePaths(home).data_file)
        place = self._store_entry(home)
        if place is not None:
            self._write(place, msgspec.json.encode(TrustedHome(home=_real_path(home), how=how)))

    def put_folder(self, home: Path, settings: Collection[bytes]) -> None:
        """Accept a folder with exactly these settings files. Raises ReadOnlyHome."""
        status = os.stat(home)
        accepted = _AcceptedFolder(
            home=_real_path(home),
            owner=status.st_uid,
            inode=status.st_ino,
            settings=tuple(sorted(map(_digest, settings))),
        )
        self._write(self._entry("folders", home), msgspec.json.encode(accepted))

    def put_backup(self, home: Path) -> None:
        """Record that this user's kb made the backup that contains this copy of a home.

        Also removes the entries of backups that no longer exist. Raises ReadOnlyHome.
        """
        for place in _files(self.root / "backups"):
            backup = _read_json(place, TrustedHome)
            if backup is None or self._store_entry(Path(backup.home), "backups") != place:
                place.unlink(missing_ok=True)
        mark(HomePaths(home).data_file)
        entry = self._store_entry(home, "backups")
        if entry is not None:
            self._write(entry, msgspec.json.encode(TrustedHome(home=_real_path(home), how="made")))

    def has_backup(self, home: Path) -> bool:
        """Whether this user's kb made the backup that contains this copy of a home."""
        place = self._store_entry(home, "backups")
        return place is not None and place.exists()

    def decline(self, home: Path, settings: Collection[bytes]) -> None:
        """Record that the user declined to trust a home in its present state."""
        with contextlib.suppress(ReadOnlyHome):
            self._write(self._entry("declined", home), self._state_digest(home, settings))

    def is_declined(self, home: Path, settings: Collection[bytes]) -> bool:
        """Whether the user declined to trust a home in its present state."""
        try:
            return self._entry("declined", home).read_bytes() == self._state_digest(home, settings)
        except OSError:
            return False

    def remove(self, home: Path) -> bool:
        """Remove a home from the list, by its store and by its path; False if it was not on it."""
        places = {self._entry("folders", home), self._store_entry(home)}
        places |= {
            place for place, trusted in self._store_entries() if trusted.home == _real_path(home)
        }
        existing = [place for place in places if place is not None and place.exists()]
        for place in existing:
            place.unlink(missing_ok=True)
        return bool(existing)

    def listed(self) -> tuple[TrustedHome, ...]:
        """Every home on the list, sorted by path."""
        homes = {trusted.home: trusted for _, trusted in self._store_entries()}
        for place in _files(self.root / "folders"):
            accepted = _read_json(place, _AcceptedFolder)
            if accepted is not None:
                homes[accepted.home] = TrustedHome(home=accepted.home, how="trusted")
        return tuple(homes[home] for home in sorted(homes))

    def begin(self, home: Path) -> None:
        """Make a home's folder, and record that a store is about to be created in it.

        Raises ReadOnlyHome.
        """
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ReadOnlyHome(error.strerror or "", place=home) from error
        mark(home)
        self._write(self._entry("making", home), (identity_of(home) or "").encode())

    def is_begun(self, home: Path) -> bool:
        """Whether `begin` was recorded for a home, by a process that may be dead."""
        try:
            identity = self._entry("making", home).read_bytes()
        except OSError:
            return False
        return identity == (identity_of(home) or "").encode()

    def end(self, home: Path) -> None:
        """Remove the record of `begin`."""
        self._entry("making", home).unlink(missing_ok=True)

    def _store_entry(self, home: Path, kind: str = "stores") -> Path | None:
        identity = identity_of(HomePaths(home).data_file)
        return self.root / kind / identity if identity else None

    def _state_digest(self, home: Path, settings: Collection[bytes]) -> bytes:
        identity = identity_of(HomePaths(home).data_file) or ""
        return " ".join((identity, *sorted(map(_digest, settings)))).encode()

    def _store_entries(self) -> Iterator[tuple[Path, TrustedHome]]:
        for place in _files(self.root / "stores"):
            trusted = _read_json(place, TrustedHome)
            if trusted is not None:
                yield place, trusted

    def _accepted_folder(self, home: Path) -> _AcceptedFolder | None:
        return _read_json(self._entry("folders", home), _AcceptedFolder)

    def _entry(self, kind: str, home: Path) -> Path:
        return self.root / kind / _digest(os.fsencode(_real_path(home)))[:_NAME_HEX]

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
            detail = f"{error.strerror}; kb lists your homes there (see XDG_DATA_HOME)"
            raise ReadOnlyHome(detail, place=self.root) from error


def trust_list() -> TrustList:
    """This user's trust list; always empty for a user without a data folder."""
    data = user_folder("data")
    # A relative path would be in the working directory, which may belong to somebody else.
    return TrustList(data.with_name(_FOLDER) if data.is_absolute() else Path(os.devnull))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(place for place in folder.iterdir() if not place.name.startswith("."))
    except OSError:
        return []


def _read_json(place: Path, kind: type[_T]) -> _T | None:
    try:
        return decode_json(place.read_bytes(), kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _real_path(home: Path) -> str:
    return os.path.realpath(home)
