"""Removes unpacked packs that no record names, and what dead writers left of others."""

import os
import re
import shutil
from pathlib import Path
from typing import Final

from kb.store.content.layout import PACKS_FOLDER, HomePaths
from kb.store.records import PACKS
from kb.store.store import Store
from kb.upkeep.compactor.report import SweepReport

# Packs are unpacked into hidden folders, then named by their id and hash. Any other name was
# chosen by a person and is left alone.
_FOLDER: Final = re.compile(r"[^.@][^@]*@[0-9a-f]{16}(?:\.[0-9a-f]{8})?")
_UNFINISHED: Final = re.compile(r"\.[^@]+(?:@[0-9a-f.]+\.unfinished|\.[0-9a-f]{8}\.link)")


def remove_unreferenced(store: Store, paths: HomePaths, *, dry_run: bool) -> SweepReport:
    """Remove unreferenced packs. The caller holds the compaction lock, as unpacking does."""
    referenced = _referenced(store, paths)
    removed = freed = 0
    problems: list[str] = []
    for path in _entries(paths.packs):
        if path.name in referenced or not _is_ours(path):
            continue
        removed += 1
        freed += _size(path)
        try:
            if not dry_run:
                _remove(path)
        except OSError as error:
            problems.append(f"{PACKS_FOLDER}/{path.name}: cannot be removed ({error.strerror})")
    return SweepReport(removed=removed, bytes_freed=freed, problems=tuple(problems))


def _referenced(store: Store, paths: HomePaths) -> set[str]:
    """Names of the links that records name, and of the folders they lead to."""
    with store.read() as txn:
        places = [paths.kept / record.location for _, record in PACKS.scan(txn)]
    links = {place.parts[-2] for place in places if place.is_relative_to(paths.packs)}
    link_paths = (paths.packs / name for name in links)
    return links | {os.readlink(link) for link in link_paths if link.is_symlink()}


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _is_ours(path: Path) -> bool:
    if _UNFINISHED.fullmatch(path.name):
        return True
    return bool(_FOLDER.fullmatch(os.readlink(path) if path.is_symlink() else path.name))


def _size(path: Path) -> int:
    if path.is_symlink():
        return 0
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _remove(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)
