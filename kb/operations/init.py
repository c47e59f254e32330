"""A home's own folders, and the entries about kb in it."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.errors import NotFound, ReadOnlyHome

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.guide.install import Installed

    InstallResult = Installed
    """The entries about kb that were written, and those that were left as they are."""

OUTCOMES: Final = ("written", "updated", "unchanged", "edited", "removed")
"""The fields of an InstallResult: what became of the entries."""


def project_home(folder: Path) -> Path:
    """Where the home of a project in a folder lies."""
    from kb.store.content.layout import PROJECT_FOLDER

    return folder / PROJECT_FOLDER


def is_made(home: Path) -> bool:
    """Whether a home was made there. Raises what opening one in a database raises."""
    from kb.store.content.layout import HomePaths

    paths = HomePaths(home)
    if paths.has_store or paths.database is None:
        return paths.has_store
    from kb.store.store import Store

    try:
        # Another machine may have made it.
        Store.open_database(paths.database, create=False).close()
    except NotFound:
        return False
    return True


def shown(home: Path) -> str:
    """A home as people name it."""
    from kb.store.content.layout import HomePaths

    return HomePaths(home).shown


def make_knowledge_folder(app: "App") -> None:
    """Make the folder for entries, for its owner only; a database has none. Raises ReadOnlyHome."""
    if app.paths.database is not None:
        return
    folder = app.paths.knowledge
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=folder) from error


def install_guide(app: "App") -> "InstallResult | None":
    """Bring kb's own entries into a home, and have them findable; None for one in a database.

    What was edited or removed there stays so. Beside a home without them `kb guide` has copies of
    its own. Raises ReadOnlyHome or StoreFull, and ItemsFailed where one could not be taken in.
    """
    from kb.home.core import put_core

    return put_core(app) if app.paths.database is None else None


def guide_folder(app: "App") -> Path:
    """Where kb's own entries lie in a home."""
    from kb.home.core import FOLDER

    return app.paths.knowledge / FOLDER
