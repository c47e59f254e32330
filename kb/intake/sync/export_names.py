"""Who is meant by a code in an export of a chat? A file in the folder above the channels says."""

from collections.abc import Callable
from typing import Final

from kb.errors import SourceError
from kb.intake.canonicalize.codes import NAMING_FILES, has_codes, names_in, with_names
from kb.model.text import Canonical

NAMING_BYTES_MAX: Final = 16 << 20
_JSON: Final = "application/json"
_FOLDERS_MAX: Final = 256


class ExportNames:
    """Gives people and channels of exports their names, for one call.

    `read` has the bytes of a file by its path or its place; it raises SourceError where there is
    none.
    """

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._known: dict[str, dict[str, str]] = {}

    def named(self, canonical: Canonical, file: str) -> Canonical:
        """The text of a file of a channel with names; any other text as it is."""
        if canonical.mime != _JSON or not has_codes(canonical):
            return canonical
        folder, _, channel = file.rpartition("/")[0].rpartition("/")
        names = self._names(folder) if folder and channel else {}
        return with_names(canonical, names) if names else canonical

    def _names(self, folder: str) -> dict[str, str]:
        if folder not in self._known:
            if len(self._known) >= _FOLDERS_MAX:
                self._known.clear()
            self._known[folder] = self._read_names(folder)
        return self._known[folder]

    def _read_names(self, folder: str) -> dict[str, str]:
        files: list[bytes] = []
        for name in NAMING_FILES:
            try:
                files.append(self._read(f"{folder}/{name}"))
            except SourceError:
                if not files:
                    return {}
        return names_in(files)
