"""What do the boxes of MP4 and QuickTime say? Found by their marks: a film may lie between them."""

import struct
from datetime import UTC, datetime, timedelta
from typing import Final

from kb.intake.canonicalize.media.facts import MediaFacts, first, line, number, prose

_EPOCH: Final = datetime(1904, 1, 1, tzinfo=UTC)
_YEARS: Final = range(1990, 2100)
_HEADS: Final = (108, 120)
_VALUE_BYTES_MAX: Final = 65_536
_TRIES_MAX: Final = 64
_NAMES: Final = {
    b"\xa9nam": "title",
    b"\xa9ART": "artist",
    b"aART": "band",
    b"\xa9aut": "author",
    b"\xa9alb": "album",
    b"\xa9day": "date",
    b"tvsh": "show",
    b"desc": "description",
    b"ldes": "long",
    b"\xa9des": "description",
    b"\xa9cmt": "comment",
    b"\xa9inf": "comment",
    b"\xa9lyr": "lyric",
}
_LONG: Final = frozenset(("description", "long", "comment", "lyric"))


def facts_of(data: bytes) -> MediaFacts:
    """What the movie's head and its user data say."""
    seconds, made = _head(data)
    fields = _user_data(data)
    said = ("description" if not fields.get("long") else "long", "comment", "lyric")
    return MediaFacts(
        title=first(fields, "title"),
        people=first(fields, "artist", "band", "author"),
        album=first(fields, "album", "show"),
        date=first(fields, "date") or made,
        text="\n\n".join(dict.fromkeys(filter(None, (fields.get(name) for name in said)))),
        seconds=seconds,
    )


def _head(data: bytes) -> tuple[float, str]:
    """Length in seconds and the day it was made, from the head of the movie."""
    at = data.find(b"mvhd")
    for _ in range(_TRIES_MAX):
        if at < 0:
            break
        if number(">I", data, at - 4) in _HEADS and at + 32 <= len(data) and data[at + 4] < 2:
            form = ">QQIQ" if data[at + 4] else ">IIII"
            made, _changed, scale, length = struct.unpack_from(form, data, at + 8)
            return (length / scale if scale else 0), _day(made)
        at = data.find(b"mvhd", at + 4)
    return 0, ""


def _day(seconds: int) -> str:
    """The moment; empty for the zeros and the nonsense of clocks that were never set."""
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return ""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment.year in _YEARS else ""


def _user_data(data: bytes) -> dict[str, str]:
    start = max(data.find(b"udta"), 0)
    fields: dict[str, str] = {}
    for name, meaning in _NAMES.items():
        at = data.find(name, start)
        for _ in range(_TRIES_MAX):
            if at < 0:
                break
            if value := _value(data, at):
                text = value.decode("utf-8", "replace")
                fields.setdefault(meaning, prose(text) if meaning in _LONG else line(text))
                break
            at = data.find(name, at + 4)
    return fields


def _value(data: bytes, at: int) -> bytes:
    """The text of an item: in a box `data` as iTunes writes it, or as QuickTime does."""
    size = number(">I", data, at - 4)
    if not 8 < size <= _VALUE_BYTES_MAX:
        return b""
    if data[at + 8 : at + 12] == b"data":
        inner = number(">I", data, at + 4)
        # Type 1 is UTF-8.
        is_text = 16 < inner <= size - 8 and number(">I", data, at + 12) == 1
        return data[at + 20 : at + 4 + inner] if is_text else b""
    length = number(">H", data, at + 4)
    return data[at + 8 : at + 8 + length] if 0 < length <= size - 12 else b""
