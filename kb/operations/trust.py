"""Homes that count for this user: those that their kb made, and those that they have let count."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kb.errors import SourceError

if TYPE_CHECKING:
    from kb.store import trust as store_trust
    from kb.store.trust import TrustedHome
    from kb.upkeep.check.untrusted import StoreInventory

    TrustList = store_trust.TrustList
    """The list of homes that count, on disk."""
    StoreContents = StoreInventory
    """What somebody who lets a store count lets in with it."""

SettingsFiles = dict[Path, bytes]
"""Settings files of a project and their bytes."""


class TrustedHomes(Struct, frozen=True, kw_only=True):
    """The homes that count."""

    homes: "tuple[TrustedHome, ...]"


def list_trusted() -> TrustedHomes:
    """The homes that count for this user."""
    from kb.store.trust import trust_list

    return TrustedHomes(homes=trust_list().listed())


def trust(home: Path, settings: SettingsFiles) -> None:
    """Let a home count as it is now, with these settings files.

    Raises ReadOnlyHome where the list cannot be written.
    """
    from kb.store.content.layout import HomePaths
    from kb.store.trust import trust_list

    trusted = trust_list()
    trusted.put_folder(home, tuple(settings.values()))
    if HomePaths(home).has_store:
        trusted.put_store(home, "trusted")


def distrust(home: Path) -> bool:
    """Take a home off the list; False where it is not on it. Raises ReadOnlyHome."""
    from kb.store.trust import trust_list

    return trust_list().remove(home)


def home_in(folder: Path) -> Path:
    """The home that a folder is, or of which it is the project."""
    from kb.store.content.layout import PROJECT_FOLDER

    inner = folder / PROJECT_FOLDER
    return inner if folder.name != PROJECT_FOLDER and os.path.lexists(inner) else folder


def escaping_link(home: Path) -> str | None:
    """A link in a project's home that leads out of it, in words; None where there is none.

    A home with one cannot count, whoever lets it.
    """
    from kb.store import trust as store_trust

    return store_trust.escaping_link(home)


def settings_in(home: Path) -> SettingsFiles:
    """The settings files of a project, as they are now; those of another home count anyway."""
    from kb.model.config import HOME_CONFIGS, SETTINGS_BYTES_MAX
    from kb.store.content.inside import read_inside
    from kb.store.content.layout import is_project_home

    if not is_project_home(home):
        return {}
    named = (home / name for name in HOME_CONFIGS)
    settings: SettingsFiles = {}
    for file in (*named, *sorted((home / "config.d").rglob("*.toml"))):
        # What is no file, or leads out, is refused wherever it is read.
        with contextlib.suppress(SourceError):
            settings[file] = read_inside(home, str(file.relative_to(home)), SETTINGS_BYTES_MAX)
    return settings


def ownership_problem(home: Path) -> str | None:
    """Why a home is not this user's alone, in words; None where it is, or is not there."""
    from kb.store import trust as store_trust

    return store_trust.ownership_problem(home)


def settings_effects(home: Path, settings: SettingsFiles) -> Iterator[str]:
    """What settings files say that counts only once they do, as FILE: KEY = VALUE.

    Raises ConfigError for what is wrong in one.
    """
    from kb.model.config import restricted_settings

    for file, data in settings.items():
        for line in restricted_settings(file, data):
            yield f"{os.path.relpath(file, home)}: {line}"


def store_contents(home: Path) -> "StoreContents | None":
    """What a home's store holds, read by a process of its own; None without a store.

    Raises UnsafeStore for a store that nothing may open.
    """
    from kb.store.content.layout import HomePaths
    from kb.upkeep.check.untrusted import inspect_store

    paths = HomePaths(home)
    return inspect_store(paths.store) if paths.database is None and paths.has_store else None
