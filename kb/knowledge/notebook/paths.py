"""Paths of notes: at most three levels of kebab-case, ending in `.md`."""

import re
import unicodedata
from collections.abc import Container
from typing import Final

from kb.model.origin import NOTEBOOK_INDEX
from kb.store.content.layout import slug

LEVELS_MAX: Final = 3
_SUFFIX: Final = ".md"
_PART_BYTES_MAX: Final = 84
# Letters and digits of any script, one hyphen between words; what has an upper case has none here.
_PART: Final = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


def problem_of(path: str) -> str | None:
    """Why a note cannot have this path; None if it can. Knows no repository."""
    parts = path.split("/")
    if len(parts) > LEVELS_MAX:
        return f"it has more than {LEVELS_MAX} levels"
    if not path.endswith(_SUFFIX):
        return f"it does not end in {_SUFFIX}"
    stems = (*parts[:-1], parts[-1].removesuffix(_SUFFIX))
    wrong = next((stem for stem in stems if not _is_kebab(stem)), None)
    if wrong is not None:
        return f"{_shown(wrong)} is not kebab-case, or is too long"
    return f"{NOTEBOOK_INDEX} is the list of notes itself" if is_index(path) else None


def is_folder(path: str) -> bool:
    """Whether notes can be put into a folder of this path."""
    return problem_of(f"{path}/note{_SUFFIX}") is None


def is_index(path: str) -> bool:
    """Whether a path is the list of notes, even on a case-insensitive file system."""
    return path.casefold() == NOTEBOOK_INDEX.casefold()


def kebab(text: str) -> str:
    """The words of a text joined by hyphens: lower-case, without accents; other scripts stay.

    Never empty; without a letter or digit it is `untitled`.
    """
    bare = "".join(_bare(sign) for sign in unicodedata.normalize("NFC", text))
    return unicodedata.normalize("NFC", slug(bare))


def note_path(folder: str, title: str, taken: Container[str], key: str) -> str | None:
    """A free path in `folder` (empty for the top) for a title; None if there is none.

    `taken` says whether something has a path, or is in its way. If the name is taken a number
    follows, and if all numbers are taken, `key`, which no other note has.
    """
    start = f"{folder}/{kebab(title)}" if folder else kebab(title)
    names = (start, *(f"{start}-{number}" for number in range(2, 100)), f"{start}-{key}")
    paths = (f"{name}{_SUFFIX}" for name in names)
    return next((path for path in paths if path not in taken and not is_index(path)), None)


def folded(path: str) -> str:
    """A path as a case-insensitive, composing file system sees it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _is_kebab(part: str) -> bool:
    return (
        _PART.fullmatch(part) is not None
        and part == unicodedata.normalize("NFC", part)
        and part == part.casefold()
        and len(part.encode("utf-8", "surrogatepass")) <= _PART_BYTES_MAX
    )


def _bare(sign: str) -> str:
    """A Latin letter without its marks; any other sign unchanged."""
    parts = unicodedata.normalize("NFKD", sign)
    bare = "".join(part for part in parts if not unicodedata.combining(part))
    return bare if bare.isascii() else sign


def _shown(part: str) -> str:
    printable = "".join(sign if sign.isprintable() else "?" for sign in part[:40])
    return f"`{printable}`"
