"""The folders of a home, and the names of the files in them."""

import os
import re
import unicodedata
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from kb.errors import ReadOnlyHome, StoreMissing
from kb.model.ids import sha256_hex

_SLUG_BYTES_MAX: Final = 80
PACKS_FOLDER: Final = "packs"
PROJECT_FOLDER: Final = ".kb"
"""The name of a project's home."""
_FOLDERS: Final = ("store", "raw", "md", "index", "tmp")
# What is not there before a store is, and stays when it is lost.
_LEFT_BY_A_STORE: Final = ("raw", "md", "notebook", "backups")
_KB_FOLDERS: Final = (*_FOLDERS, "run", "backups", "notebook")


def is_project_home(home: Path) -> bool:
    """Whether a home is a project's, by its name or by that of the folder which a link leads to."""
    return home.name == PROJECT_FOLDER or (
        os.path.basename(os.path.realpath(home)) == PROJECT_FOLDER
    )


def is_kept_by_kb(place: PurePath) -> bool:
    """Whether a place in a project holds what kb itself has written there, and no source text."""
    return place.parts == (PROJECT_FOLDER,) or (
        place.parts[:1] == (PROJECT_FOLDER,) and place.parts[1] in _KB_FOLDERS
    )


class HomePaths(Struct, frozen=True):
    """Where a home's things lie. Paths kept in records are relative to `root`, with slashes."""

    root: Path

    @property
    def store(self) -> Path:
        """The LMDB environment's folder."""
        return self.root / "store"

    @property
    def data_file(self) -> Path:
        """The one file that a store is."""
        return self.store / "data.mdb"

    @property
    def has_store(self) -> bool:
        """Whether a store lies there, whatever its state. Raises OSError where none may look."""
        return is_store(self.data_file)

    def check_not_lost(self) -> None:
        """Raise StoreMissing where there is no store, and there was one: what it named is there.

        To be asked before a store is made, or its absence is taken for an empty home.
        """
        if self.has_store:
            return
        leftovers = self.leftover_folders()
        # Another process may have made the store, and all the rest, since it was looked for.
        if leftovers and not self.has_store:
            names = " and ".join(f"{name}/" for name in leftovers)
            verb = "lies" if len(leftovers) == 1 else "lie"
            raise StoreMissing(f"{names} {verb}", place=self.data_file)

    def leftover_folders(self) -> list[str]:
        """Names of the folders here that nothing but a home with a store fills."""
        if not self.root.is_dir():
            return []
        return [name for name in _LEFT_BY_A_STORE if _holds_any(self.root / name)]

    @property
    def index(self) -> Path:
        """The caches' folder: losing it costs a rebuild and changes no answer."""
        return self.root / "index"

    @property
    def tmp(self) -> Path:
        """Files not yet whole; on the same file system as the rest."""
        return self.root / "tmp"

    @property
    def backups(self) -> Path:
        """Backups that are kept in the home itself."""
        return self.root / "backups"

    @property
    def packs(self) -> Path:
        """Packs that were unpacked from archives; not made unless there is one."""
        return self.root / PACKS_FOLDER

    @property
    def knowledge(self) -> Path:
        """Entries, which people write, by its real path; not made unless there is one."""
        return Path(os.path.realpath(self.root)) / "knowledge"

    @property
    def notebook(self) -> Path:
        """The notebook, where the settings name no other folder; not made before the first note."""
        return self.root / "notebook"

    @property
    def socket(self) -> Path:
        """Where a server of the home is asked from this machine, while there is one."""
        return self.root / "run" / "kb.sock"

    @property
    def compact_lock(self) -> Path:
        """Held while content files may go, and by whoever needs them to stay."""
        return self.root / "compact.lock"

    @property
    def push_lock(self) -> Path:
        """Held while the notebook is pushed."""
        return self.root / "push.lock"

    @property
    def config(self) -> Path:
        """The home's own settings."""
        return self.root / "kb.toml"

    def make(self) -> None:
        """Make the folders, for their owner only. Raises ReadOnlyHome."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in _FOLDERS:
                (self.root / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ReadOnlyHome(error.strerror or "", place=self.root) from error


def is_store(data_file: Path) -> bool:
    """Whether a data file is there; an empty one is none, for a store would be made of it."""
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
    """md/<kind>/<slug>--<lsid8>--<md8>.md: same source and text, same path; new text, another."""
    return f"md/{kind}/{slug(title)}--{sha256_hex(lsid)[:8]}--{sha256_hex(markdown)[:8]}.md"


def raw_path(raw_sha256: str, extension: str) -> str:
    """raw/<aa>/<sha256>.<ext>."""
    safe = re.sub(r"[^a-z0-9]", "", extension.casefold())[:10] or "bin"
    return f"raw/{raw_sha256[:2]}/{raw_sha256}.{safe}"
