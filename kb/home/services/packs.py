"""How do packs come into a home? A folder's by its place; an archive's files are unpacked first."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import Refused, SourceError, TooLarge, Unreadable, UsageError
from kb.intake.chunks import PrecomputedChunks
from kb.intake.sync import origins
from kb.knowledge.packs import register
from kb.knowledge.packs.keys import key_bytes
from kb.knowledge.packs.load import MANIFEST_JSON, Pack
from kb.knowledge.packs.portable import ARCHIVE_BYTES_MAX, SEAL, Archive, read_archive
from kb.knowledge.packs.succession import check_succession
from kb.model.config import PackSettings
from kb.model.doc import Visibility
from kb.model.failpoints import failpoint
from kb.model.ids import Lsid
from kb.model.origin import Origin, origin_id
from kb.model.pack import PackRecord
from kb.model.source import member_lsid
from kb.store.content.durable import fsync_folder
from kb.store.content.inside import read_inside
from kb.store.content.layout import HomePaths
from kb.store.content.lock import file_lock
from kb.store.store import Store
from kb.upkeep.transfer.staging import staged_folder

if TYPE_CHECKING:
    from kb.intake.sync.fetch import Fetcher

ARCHIVE_SUFFIX: Final = ".tar"
_WAIT_S: Final = 30.0
_HASH_SHOWN: Final = 16


class Signed(Struct, frozen=True, kw_only=True):
    """An archive that was found whole, and whether a trusted key has signed it."""

    archive: Archive
    is_trusted: bool


class PlacedPack(Struct, frozen=True, kw_only=True):
    """A pack that is on the register, its docs still to be taken in."""

    record: PackRecord
    pack: Pack
    origin_id: str
    """The source as which its docs are kept current."""
    ready: Mapping[Lsid, PrecomputedChunks]
    """Chunks that came with it."""
    signed: Signed | None
    """The archive that it came as; None where it is a folder."""


class HomePacks:
    """Puts packs on the register of one home."""

    def __init__(
        self,
        store: Store,
        paths: HomePaths,
        settings: PackSettings,
        fetcher: "Callable[[], Fetcher]",
    ) -> None:
        self._store = store
        self._paths = paths
        self._trusted = settings.trusted_keys
        self._fetcher = fetcher

    def read(self, location: str, *, trust: str | None = None) -> Pack | Signed:
        """The pack at a place: a folder, a manifest's file, an archive (.tar), or an archive's URL.

        An archive is verified as a whole; nothing is written. `trust` is a public key, by which and
        no other it must be signed. Raises UsageError, UnknownPack, and SourceError's children.
        """
        is_url = location.startswith(("https://", "http://"))
        if not is_url and not location.endswith(ARCHIVE_SUFFIX):
            if trust is not None:
                raise UsageError("--trust works only with an archive: a folder has no signature")
            return register.pack_at(location)
        if trust is not None:
            _require_key(trust)
        archive = read_archive(self._bytes(location, is_url=is_url), location)
        if trust is not None and archive.key != trust:
            whose = f"signed by {archive.key}" if archive.key else "not signed"
            raise Refused(f"it is {whose}, but --trust asks for {trust}", source=location)
        is_trusted = bool(archive.key) and archive.key in (*self._trusted, trust)
        return Signed(archive=archive, is_trusted=is_trusted)

    def place(
        self,
        pack: Pack | Signed,
        *,
        visibility: Visibility | None = None,
        downgrade: bool = False,
    ) -> PlacedPack:
        """Register a pack that was read.

        The files of an archive come to lie in the home, whole, and only then does the register
        name them. Raises UsageError where another pack has its id, Refused where its signer is not
        the one that the id is known by, HeldBack where its version is lower than the registered
        one and `downgrade` does not allow that; StoreBusy, StoreFull.
        """
        if isinstance(pack, Signed):
            return self._archive(pack, visibility, downgrade=downgrade)
        self._check(pack, pack.location, "", downgrade=downgrade)
        ident = self._follow(pack.manifest.pack_id)
        record = register.register(self._store, pack, visibility=visibility, downgrade=downgrade)
        return PlacedPack(record=record, pack=pack, origin_id=ident, ready={}, signed=None)

    def _bytes(self, location: str, *, is_url: bool) -> bytes:
        if is_url:
            return self._fetcher().get(location).data
        path = Path(os.path.realpath(os.path.expanduser(location)))
        try:
            return read_inside(path.parent, path.name, ARCHIVE_BYTES_MAX)
        except SourceError as error:
            raise type(error)(error.reason, source=location) from error

    def _archive(
        self, signed: Signed, visibility: Visibility | None, *, downgrade: bool
    ) -> PlacedPack:
        archive = signed.archive
        pack_id = archive.pack.manifest.pack_id
        location = self._location(pack_id)
        # Compaction would take a folder that no record names yet for one that none names any more,
        # and of two at once the second is held against what the first has registered.
        with file_lock(self._paths.compact_lock, _WAIT_S):
            self._check(archive.pack, location, archive.key, downgrade=downgrade)
            ident = self._follow(pack_id)
            folder = self._unpack(archive)
            failpoint("packs.after_unpack")
            self._link(pack_id, folder)
            failpoint("packs.after_link")
            record = register.register(
                self._store,
                archive.pack,
                location=location,
                visibility=visibility,
                signed_by=archive.key,
                downgrade=downgrade,
            )
        failpoint("packs.after_register")
        ready = {member_lsid("pack", pack_id, path): file for path, file in archive.ready.items()}
        return PlacedPack(
            record=record,
            pack=register.open_registered(record, self._paths.root),
            origin_id=ident,
            ready=ready,
            signed=signed,
        )

    def _location(self, pack_id: str) -> str:
        """The location of an unpacked pack; one of a home in a database is of this machine."""
        inner = register.inner_location(pack_id)
        return inner if self._paths.database is None else os.fspath(self._paths.kept / inner)

    def _check(self, pack: Pack, location: str, signed_by: str, *, downgrade: bool) -> None:
        """Raise, before anything is written, what registering it will raise."""
        manifest = pack.manifest
        with self._store.read() as txn:
            registered = register.known_at(txn, manifest.pack_id, location)
        check_succession(registered, manifest.version, signed_by, downgrade=downgrade)

    def _follow(self, pack_id: str) -> str:
        """Have the pack's docs kept current; the next sync forgets it where no record follows."""
        ident = origin_id("pack", pack_id)
        now_ms = self._store.clock.now_ms()
        origin = Origin(
            origin_id=ident,
            kind="pack",
            location=pack_id,
            machine=self._store.machine,
            added_ms=now_ms,
        )
        origins.register(self._store, origin)
        return ident

    def _unpack(self, archive: Archive) -> str:
        """Have the archive's files in a folder of their own; the name of that."""
        pack_id = archive.pack.manifest.pack_id
        name = f"{pack_id}@{archive.content_hash[:_HASH_SHOWN]}"
        files = {MANIFEST_JSON: archive.manifest, SEAL: archive.seal, **archive.docs}
        if (self._paths.packs / name).exists():
            if _is_whole(self._paths.packs / name, files):
                return name
            name = f"{name}.{secrets.token_hex(4)}"
        with staged_folder(self._paths.packs / name) as part:
            for path, data in files.items():
                _write(part / path, data)
        return name

    def _link(self, pack_id: str, folder: str) -> None:
        """Let the pack's own name lead to this folder, from one moment to the next."""
        packs = self._paths.packs
        beside = packs / f".{pack_id}.{secrets.token_hex(4)}.link"
        os.symlink(folder, beside)
        try:
            os.replace(beside, packs / pack_id)
        except OSError as error:
            beside.unlink()
            raise UsageError(
                f"{packs / pack_id} is in the way ({error.strerror}); move it away"
            ) from error
        fsync_folder(packs)


def _require_key(trust: str) -> None:
    try:
        key_bytes(trust)
    except ValueError as error:
        raise UsageError(f"--trust is not a public key: {error}; see `kb pack keygen`") from error


def _is_whole(folder: Path, files: Mapping[str, bytes]) -> bool:
    try:
        return all(read_inside(folder, path, len(data)) == data for path, data in files.items())
    except (TooLarge, Unreadable, Refused):
        return False


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
