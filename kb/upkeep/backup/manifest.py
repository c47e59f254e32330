"""The manifest of a backup: it lists every file, carries its own hash, and is written last."""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import BackupDamaged, NoBackup
from kb.store.content.durable import write_temporary
from kb.store.content.sealed_json import read_sealed_json, sealed_json
from kb.upkeep.transfer.reading import is_inside

HOME: Final = "home"
"""The folder in a backup that becomes the home."""
STORE_FILE: Final = "store/data.mdb"
_MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1


class StoredFile(Struct, frozen=True, kw_only=True):
    """One file or symbolic link, by its path in the home, with slashes."""

    path: str
    size_bytes: int = 0
    sha256: str = ""
    link: str | None = None
    """The target of a symbolic link as written; None for a file."""


class Manifest(Struct, frozen=True, kw_only=True):
    """Everything that a backup holds. The field names are the file format."""

    format: int = _FORMAT
    created_ms: int
    reason: str
    kb_version: str
    docs: int
    """How many docs are active."""
    passages: int
    problems: tuple[str, ...]
    """What the home lacked when it was copied."""
    files: tuple[StoredFile, ...]

    @property
    def size_bytes(self) -> int:
        """Size of a restored home without its caches."""
        return sum(file.size_bytes for file in self.files)


class Backup(Struct, frozen=True, kw_only=True):
    """A complete backup as it is listed."""

    name: str
    path: str
    created_ms: int
    reason: str
    kb_version: str
    docs: int
    passages: int
    files: int
    size_bytes: int
    problems: tuple[str, ...]


class Flaw(Struct, frozen=True, kw_only=True):
    """A damaged file or record, and what is wrong with it."""

    place: str
    problem: str


def summarize(folder: Path, manifest: Manifest) -> Backup:
    """The list entry of a backup."""
    return Backup(
        name=folder.name,
        path=str(folder),
        created_ms=manifest.created_ms,
        reason=manifest.reason,
        kb_version=manifest.kb_version,
        docs=manifest.docs,
        passages=manifest.passages,
        files=len(manifest.files),
        size_bytes=manifest.size_bytes,
        problems=manifest.problems,
    )


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, which completes the backup in `folder`."""
    path = folder / _MANIFEST
    os.replace(write_temporary(path, sealed_json(manifest)), path)


def read(folder: Path) -> Manifest:
    """The manifest of a backup.

    Raises NoBackup if there is no such folder, and BackupDamaged if it holds no complete backup or
    names a path outside of itself.
    """
    if not folder.is_dir():
        raise NoBackup(id=str(folder))
    if not (folder / _MANIFEST).exists():
        raise BackupDamaged(
            "it has no manifest: it was cut short, or is not a backup", place=folder
        )
    sealed = read_sealed_json(folder / _MANIFEST, Manifest)
    if sealed is None:
        raise BackupDamaged("its manifest is not what was written", place=folder)
    manifest = sealed[1]
    if manifest.format != _FORMAT:
        detail = f"format {manifest.format}, but this program reads format {_FORMAT}"
        raise BackupDamaged(detail, place=folder)
    paths = {file.path for file in manifest.files}
    if STORE_FILE not in paths or len(paths) < len(manifest.files):
        raise BackupDamaged("its manifest does not describe a home", place=folder)
    for path in paths:
        if not is_inside(path):
            raise BackupDamaged(
                f"its manifest names a path outside the backup: {path!r}", place=folder
            )
    return manifest
