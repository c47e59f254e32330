"""What did people and cameras write into it? Exif, XMP and the format's own notes as one record."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import Unparsable
from kb.intake.canonicalize.archive import attribute, local, parse_xml
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text, has_text
from kb.intake.canonicalize.pictures.containers import PictureParts
from kb.intake.canonicalize.pictures.tiff import Tag, TiffTags

if TYPE_CHECKING:
    from lxml.etree import _Element

_TEXT_CHARS_MAX: Final = 8_192
_KEYWORDS_MAX: Final = 100
_KEYWORD_CHARS_MAX: Final = 100
_WIDTH, _HEIGHT, _DESCRIPTION, _MAKE, _MODEL, _ARTIST = 0x100, 0x101, 0x10E, 0x10F, 0x110, 0x13B
_XMP, _CHANGED, _EXIF, _GPS = 0x2BC, 0x132, 0x8769, 0x8825
_TAKEN, _ZONE, _NOTE = 0x9003, 0x9011, 0x9286
_PIXELS: Final = (0xA002, 0xA003)
_XP_TITLE, _XP_NOTE, _XP_KEYWORDS = 0x9C9B, 0x9C9C, 0x9C9E
_MOMENT: Final = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d:\d\d:\d\d)", re.ASCII)
_ZONED: Final = re.compile(r"[+-]\d\d:\d\d", re.ASCII)
# What cameras and programs write where a person would.
_BY_PROGRAMS: Final = re.compile(
    r"(?:.*\bDIGITAL CAMERA|SAMSUNG|(?:SONY )?DSC|Untitled|Screenshot|Created (?:with|by) .{1,40})"
)
_NOTE_CODES: Final = {b"ASCII\0\0\0": "latin-1", b"UNICODE\0": "utf-16"}


class PictureFacts(Struct, frozen=True, kw_only=True):
    """What a picture says of itself; empty where it says nothing."""

    width: int = 0
    height: int = 0
    title: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    author: str = ""
    date: str | None = None
    """When it was taken or made, ISO 8601."""
    camera: str = ""
    place: str = ""
    """Latitude and longitude in degrees, as `48.20817, 16.37382`."""


def facts_of(parts: PictureParts) -> PictureFacts:
    """The facts of a picture: what XMP says first, then Exif, then the format's own notes."""
    tags, own = _Exif(parts.exif), dict(parts.texts)
    xmp = _xmp(parts.xmp or tags.bytes_of(_XMP))
    notes = (tags.text(_DESCRIPTION), tags.wide(_XP_NOTE), tags.note(), own.get("comment", ""))
    width, height = tags.size()
    return PictureFacts(
        width=parts.width or width,
        height=parts.height or height,
        title=_first(xmp.title, tags.wide(_XP_TITLE), own.get("title", "")),
        description=_first(xmp.description, own.get("description", ""), *notes),
        keywords=_keywords((*xmp.keywords, *re.split("[;,]", tags.wide(_XP_KEYWORDS)))),
        author=_first(xmp.author, tags.text(_ARTIST), own.get("author", "")),
        date=tags.date() or xmp.date or iso_date(own.get("creation time", "")),
        camera=_camera(tags.text(_MAKE), tags.text(_MODEL)),
        place=tags.place(),
    )


def _first(*texts: str) -> str:
    clean = (clean_text(text[:_TEXT_CHARS_MAX]).strip(" \n\t\0") for text in texts)
    return next((text for text in clean if has_text(text) and not _BY_PROGRAMS.fullmatch(text)), "")


def _keywords(words: tuple[str, ...]) -> tuple[str, ...]:
    each = (" ".join(clean_text(word).split())[:_KEYWORD_CHARS_MAX] for word in words)
    return tuple(dict.fromkeys(filter(None, each)))[:_KEYWORDS_MAX]


def _camera(make: str, model: str) -> str:
    """Make and model, without repeating what the model begins with."""
    make, model = (" ".join(clean_text(text).split())[:100] for text in (make, model))
    return model if make and model.lower().startswith(make.lower()) else f"{make} {model}".strip()


class _Exif:
    """The tags of the first directory, and of those that it leads to; none if there is no Exif."""

    def __init__(self, data: bytes) -> None:
        self._first: dict[int, Tag] = {}
        self._more: dict[int, Tag] = {}
        self._gps: dict[int, Tag] = {}
        try:
            tiff = TiffTags(data)
        except ValueError:
            return
        self._first = tiff.directory(tiff.first)
        self._more = tiff.linked(self._first, _EXIF)
        self._gps = tiff.linked(self._first, _GPS)

    def bytes_of(self, number: int) -> bytes:
        value = self._first.get(number, self._more.get(number))
        return value if isinstance(value, bytes) else b""

    def text(self, number: int) -> str:
        return self.bytes_of(number).partition(b"\0")[0].decode("utf-8", "replace")

    def wide(self, number: int) -> str:
        return self.bytes_of(number).decode("utf-16-le", "replace").partition("\0")[0]

    def note(self) -> str:
        """The user's comment, whose first eight bytes name its encoding."""
        stored = self.bytes_of(_NOTE)
        codec = _NOTE_CODES.get(stored[:8])
        return stored[8:].decode(codec, "replace").strip("\0 ") if codec else ""

    def size(self) -> tuple[int, int]:
        sides = [self._first.get(number) for number in (_WIDTH, _HEIGHT)]
        if not all(sides):
            sides = [self._more.get(number) for number in _PIXELS]
        width, height = (int(s[0]) if isinstance(s, tuple) and s else 0 for s in sides)
        return width, height

    def date(self) -> str | None:
        """When it was taken; else when the file was made. None for zeros and what is no date."""
        for number in (_TAKEN, _CHANGED):
            if match := _MOMENT.match(self.text(number)):
                zone = self.text(_ZONE) if number == _TAKEN else ""
                known = zone if _ZONED.fullmatch(zone) else ""
                moment = f"{match[1]}-{match[2]}-{match[3]}T{match[4]}{known}"
                try:
                    datetime.fromisoformat(moment)
                except ValueError:
                    continue
                return moment
        return None

    def place(self) -> str:
        sides = [self._degrees(1, b"S", 90), self._degrees(3, b"W", 180)]
        known = [side for side in sides if side is not None]
        # Zero and zero is what a receiver without a fix writes.
        return ", ".join(f"{side:.5f}" for side in known) if len(known) == 2 and any(known) else ""

    def _degrees(self, number: int, negative: bytes, most: int) -> float | None:
        sign, value = self._gps.get(number), self._gps.get(number + 1)
        if not isinstance(sign, bytes) or not isinstance(value, tuple) or len(value) < 3:
            return None
        degrees = value[0] + value[1] / 60 + value[2] / 3600
        return (-degrees if sign[:1] == negative else degrees) if 0 <= degrees <= most else None


def _xmp(data: bytes) -> PictureFacts:
    """What an XMP packet says; nothing if it is damaged."""
    packet = data.strip(b"\0 \r\n")
    if not packet:
        return PictureFacts()
    try:
        root = parse_xml(packet, "")
    except Unparsable:
        return PictureFacts()
    texts: dict[str, list[str]] = {}
    for element in root.iter("{*}title", "{*}description", "{*}subject", "{*}creator"):
        items = [item.text or "" for item in element.iter("{*}li")] or [element.text or ""]
        texts.setdefault(local(element), items[: _KEYWORDS_MAX + 1])
    return PictureFacts(
        title=_first(*texts.get("title", ())),
        description=_first(*texts.get("description", ())),
        keywords=tuple(texts.get("subject", ())),
        author=_first(*texts.get("creator", ())),
        date=_xmp_date(root),
    )


def _xmp_date(root: "_Element") -> str | None:
    for name in ("DateTimeOriginal", "DateCreated", "CreateDate"):
        elements = root.iter(f"{{*}}{name}")
        written = [element.text or "" for element in elements]
        written += [attribute(element, name) for element in root.iter("{*}Description")]
        if date := next((date for text in written if (date := iso_date(text))), None):
            return date
    return None
