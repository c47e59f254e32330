"""What do Matroska and WebM say? The elements `Info` and `Tags`, found by their marks."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from kb.intake.canonicalize.media.facts import MediaFacts, first, line, number, prose

_INFO: Final = b"\x15\x49\xa9\x66"
_TAGS: Final = b"\x12\x54\xc3\x67"
_TITLE, _DURATION, _SCALE, _DATE = 0x7BA9, 0x4489, 0x2AD7B1, 0x4461
_TAG, _SIMPLE, _NAME, _STRING = 0x7373, 0x67C8, 0x45A3, 0x4487
_ELEMENTS_MAX: Final = 1_000
_VALUE_BYTES_MAX: Final = 65_536
_SCALE_NS: Final = 1_000_000
_EPOCH: Final = datetime(2001, 1, 1, tzinfo=UTC)
_LONG: Final = frozenset(("description", "comment", "synopsis", "summary"))


def facts_of(data: bytes) -> MediaFacts:
    """From the head of the segment, and from the tags wherever they lie in these bytes."""
    info = dict(_children(_body(data, _INFO)))
    scale = int.from_bytes(info.get(_SCALE, b"")[:8]) or _SCALE_NS
    fields = _tags(_body(data, _TAGS))
    title = line(info.get(_TITLE, b"").decode("utf-8", "replace"))
    texts = (fields.get(name) for name in ("description", "synopsis", "summary", "comment"))
    return MediaFacts(
        title=title or first(fields, "title"),
        people=first(fields, "artist", "performer", "director", "author"),
        album=first(fields, "album"),
        date=first(fields, "date_released", "date_recorded", "date") or _day(info.get(_DATE, b"")),
        text="\n\n".join(dict.fromkeys(filter(None, texts))),
        seconds=_float(info.get(_DURATION, b"")) * scale / 1e9,
    )


def _body(data: bytes, mark: bytes) -> bytes:
    at = data.find(mark)
    if at < 0:
        return b""
    size, start = _size(data, at + 4)
    return data[start : start + size]


def _children(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    for _ in range(_ELEMENTS_MAX):
        if at >= len(body):
            return
        width = 9 - body[at].bit_length()
        if width > 4:
            return
        ident = int.from_bytes(body[at : at + width])
        size, start = _size(body, at + width)
        yield ident, body[start : start + min(size, _VALUE_BYTES_MAX)]
        at = start + size


def _size(data: bytes, at: int) -> tuple[int, int]:
    """The length that is stored at an offset, and where what it measures begins."""
    if at >= len(data) or not data[at]:
        return 0, len(data)
    width = 9 - data[at].bit_length()
    stored = int.from_bytes(data[at : at + width])
    return stored & (1 << 7 * width) - 1, at + width


def _tags(body: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for ident, tag in _children(body):
        for inner, simple in _children(tag) if ident == _TAG else ():
            if inner != _SIMPLE:
                continue
            parts = dict(_children(simple))
            name = parts.get(_NAME, b"").decode("utf-8", "replace").lower()
            text = parts.get(_STRING, b"").decode("utf-8", "replace")
            if said := prose(text) if name in _LONG else line(text):
                fields.setdefault(name, said)
    return fields


def _float(stored: bytes) -> float:
    if len(stored) not in (4, 8):
        return 0
    value = float(struct.unpack(">f" if len(stored) == 4 else ">d", stored)[0])
    return value if 0 <= value < 1e12 else 0


def _day(stored: bytes) -> str:
    if len(stored) != 8:
        return ""
    try:
        moment = _EPOCH + timedelta(microseconds=number(">q", stored, 0) / 1000)
    except OverflowError:
        return ""
    return moment.strftime("%Y-%m-%d")
