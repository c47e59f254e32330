"""The files that a history is about, in a folder and as a dictionary."""

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from histories import (
    FOLDERS,
    PACK,
    PACK_TITLE,
    PACKED,
    BringBack,
    Copy,
    Delete,
    OnFiles,
    Rename,
    RenameFolder,
    Swap,
    Write,
)
from msgspec import Struct
from packs_folder import doc, pack_of

FILLER: Final = "These words stand in every note and so they tell no note from another. " * 2


class Text(Struct, frozen=True, kw_only=True):
    """What a file says; its words are in no other text."""

    heading: str
    words: tuple[str, ...]

    @property
    def body(self) -> str:
        parts = [f"# {self.heading}"] if self.heading else []
        for word in self.words:
            parts += [f"Here stands {word} alone.", FILLER.strip()]
        return "\n\n".join(parts) + "\n"


class Disk:
    """The files, in a folder and as a dictionary."""

    def __init__(self, root: Path) -> None:
        # As kb names it.
        self.root = Path(os.path.realpath(root))
        self.files: dict[str, Text] = {}
        self._before: dict[str, Text] = {}
        self._numbers = itertools.count(1)
        for folder in (*FOLDERS, PACK):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        rows = [doc(Path(p).stem, source_path=Path(p).name, title=PACK_TITLE) for p in PACKED]
        pack_of(self.root / PACK, *rows, bodies=False)

    def place_of(self, source: str) -> str:
        """The place of a doc's source."""
        return Path(source).relative_to(self.root).as_posix()

    def do(self, op: OnFiles) -> None:
        """Do it; without the files that it is about, nothing."""
        match op:
            case Write(place, heading):
                number = next(self._numbers)
                self._put(place, Text(heading=heading, words=(f"w{number}x", f"w{number}y")))
            case Copy(place, to):
                self._copy(place, to)
            case Rename(place, to):
                self._rename({place: to})
            case Swap(place, to):
                self._swap(place, to)
            case RenameFolder(folder, to):
                here = [place for place in self.files if Path(place).parent == Path(folder)]
                self._rename({place: f"{to}/{Path(place).name}" for place in here})
            case Delete(place):
                self._delete(place)
            case BringBack(place):
                if place in self._before:
                    self._put(place, self._before[place])

    def _copy(self, place: str, to: str) -> None:
        if place in self.files and place != to:
            self._put(to, self.files[place])

    def _swap(self, place: str, to: str) -> None:
        if place in self.files and to in self.files and place != to:
            self._rename({place: to, to: place})

    def _delete(self, place: str) -> None:
        if place in self.files:
            self._before[place] = self.files.pop(place)
            (self.root / place).unlink()

    def _put(self, place: str, text: Text) -> None:
        if place in self.files:
            self._before[place] = self.files[place]
        self.files[place] = text
        path = self.root / place
        before = _stamp(path)
        # A real edit is never within the grain of the file system's clock and of equal size,
        # a moment after a look that is an hour old.
        while True:
            path.write_text(text.body, "utf-8")
            if _stamp(path) != before:
                return

    def _rename(self, names: Mapping[str, str]) -> None:
        moved = {place: to for place, to in names.items() if place in self.files and place != to}
        for place in moved:
            os.rename(self.root / place, self.root / f"{place}.moving")
        texts = {to: self.files.pop(place) for place, to in moved.items()}
        for place, to in moved.items():
            if to in self.files:
                self._before[to] = self.files[to]
            os.rename(self.root / f"{place}.moving", self.root / to)
        self.files |= texts


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
