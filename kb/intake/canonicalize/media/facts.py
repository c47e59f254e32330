"""What is told of a sound, a film or another file, whatever its format is."""

import struct
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize.decode import clean_text, has_text

_LINE_CHARS_MAX: Final = 300
_TEXT_CHARS_MAX: Final = 16_384


class MediaFacts(Struct, frozen=True, kw_only=True):
    """What a file says of itself; empty where it says nothing."""

    title: str = ""
    people: str = ""
    album: str = ""
    date: str = ""
    """As it is written."""
    text: str = ""
    """What somebody wrote about it: a description, a comment, a lyric."""
    seconds: float = 0
    members: tuple[str, ...] = ()
    """Of an archive: the names in it, as far as they are seen."""
    members_count: int = 0


def line(text: str) -> str:
    """A text on one line, cut; empty for one that has no letters."""
    words = " ".join(clean_text(text[: 4 * _LINE_CHARS_MAX].replace("\0", " ")).split())
    return words[:_LINE_CHARS_MAX] if has_text(words) else ""


def prose(text: str) -> str:
    """A longer text, cut; empty for one that has no letters."""
    clean = clean_text(text[:_TEXT_CHARS_MAX].replace("\0", " ")).strip()
    return clean if has_text(clean) else ""


def first(fields: dict[str, str], *names: str) -> str:
    """The first of these fields that says something."""
    return next((fields[name] for name in names if fields.get(name)), "")


def joined(texts: Iterable[str]) -> str:
    """Texts one after another, each once."""
    return ", ".join(dict.fromkeys(filter(None, texts)))


def number(form: str, data: bytes, at: int) -> int:
    """A number at an offset; zero where the bytes end before."""
    if at < 0 or at + struct.calcsize(form) > len(data):
        return 0
    return int(struct.unpack_from(form, data, at)[0])
