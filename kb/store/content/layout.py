"""The folders of a home, and the names of the files in them."""

import contextlib
import os
import re
import unicodedata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import ReadOnlyHome, StoreMissing, UsageError
from kb.model.config.places import user_folder
from kb.model.ids import sha256_hex

if TYPE_CHECKING:
    from kb.store.content.database import DatabaseAddress

_DATABASE_SCHEMES: Final = ("postgresql://", "postgres://")
CACHES_FOLDER: Final = "homes"
"""In the user's folder of caches: where the local folders of homes in databases are."""
ADDRESS_FILE: Final = "store.uri"
"""In such a folder: the address of the home."""
_HOME_ID_FILE: Final = "home-id"
_SLUG_BYTES_MAX: Final = 80
PACKS_FOLDER: Final = "packs"
PROJECT_FOLDER: Final = ".kb"
"""The name of a project's home."""
_FOLDERS: Final = ("store", "raw", "md", "index", "tmp")
_LOCAL_FOLDERS: Final = ("index", "tmp")
# Folders that are filled only once a home has a store, and remain when the store is lost.
_LEFT_BY_A_STORE: Final = ("raw", "md", "notebook", "backups")
_KB_FOLDERS: Final = (*_FOLDERS, "run", "backups", "notebook")
_IGNORED: Final = "".join(
    ["# What kb keeps here; the rest is for you to commit.\n"]
    + [f"/{name}\n" for name in (*_KB_FOLDERS, PACKS_FOLDER, "*.lock")]
)


def is_in_database(named: str) -> bool:
    """Whether the name of a home is the address of one in a database; otherwise it is a folder.

    Raises UsageError for any other address, without what it says: it may have a password.
    """
    if named.startswith(_DATABASE_SCHEMES):
        return True
    if "://" in named:
        raise UsageError(
            "a home is a folder, or an address as in postgresql://USER@HOST/DATABASE/NAME; this is "
            "an address of another kind"
        )
    return False


def is_project_home(home: Path) -> bool:
    """Whether a home is a project's, by its name or by the name of its link target."""
    return home.name == PROJECT_FOLDER or (
        os.path.basename(os.path.realpath(home)) == PROJECT_FOLDER
    )


def is_kept_by_kb(place: PurePath) -> bool:
    """Whether a place in a project holds data that kb wrote, not source text."""
    return place.parts == (PROJECT_FOLDER,) or (
        place.parts[:1] == (PROJECT_FOLDER,) and place.parts[1] in _KB_FOLDERS
    )


class HomePaths(Struct, frozen=True):
    """The paths in a home. Paths in records are relative to `root`, with slashes."""

    root: Path

    @property
    def store(self) -> Path:
        """The LMDB environment's folder."""
        return self.root / "store"

    @property
    def data_file(self) -> Path:
        """The LMDB data file, which is the whole store."""
        return self.store / "data.mdb"

    @property
    def has_store(self) -> bool:
        """Whether there is a store, in whatever state. Raises OSError without permission.

        One in a database is there once it was opened from this folder.
        """
        return is_store(self.data_file if self.database is None else self.home_id)

    @property
    def may_have_store(self) -> bool:
        """Whether there may be a store: of a home in a database its server alone can tell."""
        return self.database is not None or self.has_store

    @property
    def database(self) -> "DatabaseAddress | None":
        """The database that has the store; None for a home that lies in its folder."""
        if self.root.parent.name != CACHES_FOLDER:
            return None
        from kb.store.content.database import address_in

        return address_in(self.root)

    @property
    def shown(self) -> str:
        """The home as people name it: its address, or its folder."""
        return str(self.root) if self.database is None else self.database.shown

    def check_keeps_files(self, what: str) -> None:
        """Raise UsageError for a home in a database: its local folder keeps only caches."""
        if self.database is not None:
            raise UsageError(f"{what} cannot be kept in a database yet; use a home in a folder")

    @property
    def home_id(self) -> Path:
        """The id of the home in the database, whose caches these are."""
        return self.root / _HOME_ID_FILE

    def check_not_lost(self) -> None:
        """Raise StoreMissing if the store is missing but folders that it filled still exist.

        Call it before making a store, or taking a missing store for an empty home.
        """
        if self.has_store:
            return
        leftovers = self.leftover_folders()
        # Check again: another process may have made the store meanwhile.
        if leftovers and not self.has_store:
            names = " and ".join(f"{name}/" for name in leftovers)
            verb = "lies" if len(leftovers) == 1 else "lie"
            raise StoreMissing(f"{names} {verb}", place=self.data_file)

    def leftover_folders(self) -> list[str]:
        """Names of the non-empty folders that only a home with a store fills."""
        if not self.root.is_dir():
            return []
        return [name for name in _LEFT_BY_A_STORE if _holds_any(self.root / name)]

    @property
    def index(self) -> Path:
        """The folder of the caches, which can be rebuilt from the store."""
        return self.root / "index"

    @property
    def tmp(self) -> Path:
        """Unfinished files; on the same file system as the other folders."""
        return self.root / "tmp"

    @property
    def kept(self) -> Path:
        """Where files lie that are no cache; of a home in a database, in the user's data.

        That is beside the user's home in a folder: what is in it is taken for a part of that.
        """
        if self.database is None:
            return self.root
        data = user_folder("data")
        return data.with_name(f"{data.name}-homes") / self.root.name

    @property
    def backups(self) -> Path:
        """Backups that are kept with the home itself."""
        return self.kept / "backups"

    @property
    def packs(self) -> Path:
        """Packs that were unpacked from archives; made with the first one."""
        return self.kept / PACKS_FOLDER

    @property
    def knowledge(self) -> Path:
        """The real path of the folder of entries; made with the first one."""
        return Path(os.path.realpath(self.root)) / "knowledge"

    @property
    def notebook(self) -> Path:
        """The default folder of the notebook; made with the first note."""
        return self.root / "notebook"

    @property
    def socket(self) -> Path:
        """The socket of a running server of this home, for clients on this machine."""
        return self.root / "run" / "kb.sock"

    @property
    def compact_lock(self) -> Path:
        """Lock held to remove content files, or to keep them from being removed."""
        return self.root / "compact.lock"

    @property
    def push_lock(self) -> Path:
        """Lock held while the notebook is pushed."""
        return self.root / "push.lock"

    @property
    def config(self) -> Path:
        """The home's settings file."""
        return self.root / "kb.toml"

    def make(self) -> None:
        """Make the folders, accessible only to their owner. Raises ReadOnlyHome.

        A new home of a project gets a .gitignore, unless it has one, that leaves out these folders.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_project_home(self.root) and not self.store.is_dir():
                self._ignore_in_git()
            for name in _FOLDERS if self.database is None else _LOCAL_FOLDERS:
                (self.root / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ReadOnlyHome(error.strerror or "", place=self.root) from error

    def _ignore_in_git(self) -> None:
        # Exclusive: not over a file that is there, and through no link.
        with contextlib.suppress(FileExistsError), open(self.root / ".gitignore", "x") as file:
            file.write(_IGNORED)


def is_store(data_file: Path) -> bool:
    """Whether a data file exists and is not empty: LMDB makes a new store of an empty one."""
    try:
        return data_file.stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def _holds_any(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(True for _ in entries)
    except OSError:
        return False


def slug(title: str) -> str:
    """Letters, digits and hyphens of a title, lower-case, at most 80 bytes; never empty."""
    folded = unicodedata.normalize("NFKC", title).casefold()
    words = re.sub(r"[\W_]+", "-", folded).strip("-")
    cut = words.encode("utf-8", "ignore")[:_SLUG_BYTES_MAX].decode("utf-8", "ignore").strip("-")
    return cut or "untitled"


def markdown_path(kind: str, title: str, lsid: str, markdown: str) -> str:
    """md/<kind>/<slug>--<lsid8>--<md8>.md: equal source and text give an equal path."""
    return f"md/{kind}/{slug(title)}--{sha256_hex(lsid)[:8]}--{sha256_hex(markdown)[:8]}.md"


def raw_path(raw_sha256: str, extension: str) -> str:
    """raw/<aa>/<sha256>.<ext>."""
    safe = re.sub(r"[^a-z0-9]", "", extension.casefold())[:10] or "bin"
    return f"raw/{raw_sha256[:2]}/{raw_sha256}.{safe}"
