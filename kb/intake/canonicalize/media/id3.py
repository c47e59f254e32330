"""What do the tags of MP3 say? ID3v2 before the sound, ID3v1 behind it, and a length."""

import re
from collections.abc import Iterator
from typing import Final

from kb.intake.canonicalize.media.facts import MediaFacts, first, line, number, prose

_FRAMES_MAX: Final = 500
_CODECS: Final = ("cp1252", "utf-16", "utf-16-be", "utf-8")
# The names of ID3v2.2 and of those after it.
_NAMES: Final = {
    "TT2": "title",
    "TIT2": "title",
    "TP1": "artist",
    "TPE1": "artist",
    "TP2": "band",
    "TPE2": "band",
    "TAL": "album",
    "TALB": "album",
    "TYE": "year",
    "TYER": "year",
    "TDRC": "date",
    "TDRL": "release",
    "TLE": "length",
    "TLEN": "length",
    "COM": "comment",
    "COMM": "comment",
    "ULT": "lyric",
    "USLT": "lyric",
}
_LONG: Final = frozenset(("COM", "COMM", "ULT", "USLT"))
_V1_BYTES: Final = 128
# What programs write into comments for themselves.
_BY_PROGRAMS: Final = re.compile(r"iTun|[0-9A-F ]{16,}|engiTun", re.ASCII)
_RATES: Final = {
    0: (11_025, 12_000, 8_000),
    2: (22_050, 24_000, 16_000),
    3: (44_100, 48_000, 32_000),
}
_SYNC_BYTES_MAX: Final = 8_192


def facts_of(data: bytes) -> MediaFacts:
    """What the tags of an MP3 say, and how long it is where its first frame counts all frames."""
    fields, end = id3v2(data, 0)
    old = _id3v1(data)
    fields = {**old, **fields}
    milliseconds = first(fields, "length")
    seconds = int(milliseconds) / 1000 if milliseconds.isascii() and milliseconds.isdigit() else 0
    return facts_from(fields, seconds or _counted_seconds(data, end))


def facts_from(fields: dict[str, str], seconds: float) -> MediaFacts:
    """The facts of a sound with these tags."""
    return MediaFacts(
        title=first(fields, "title"),
        people=first(fields, "artist", "band"),
        album=first(fields, "album"),
        date=first(fields, "date", "release", "year"),
        text="\n\n".join(
            dict.fromkeys(filter(None, (fields.get(n) for n in ("comment", "lyric"))))
        ),
        seconds=seconds,
    )


def id3v2(data: bytes, at: int) -> tuple[dict[str, str], int]:
    """The tags of an ID3v2 header at an offset by what they mean, and where it ends."""
    if data[at : at + 3] != b"ID3" or len(data) < at + 10:
        return {}, at
    version, flags = data[at + 3], data[at + 5]
    end = at + 10 + _synchsafe(data[at + 6 : at + 10])
    body = data[at + 10 : end]
    if flags & 0x80 and version < 4:
        body = body.replace(b"\xff\0", b"\xff")
    fields: dict[str, str] = {}
    for name, value in _frames(body, version, has_more=bool(flags & 0x40)):
        meaning = _NAMES.get(name)
        if meaning is None or not value:
            continue
        text = _long(value) if name in _LONG else line(_decoded(value[0], value[1:]))
        if text and not (meaning == "comment" and _BY_PROGRAMS.match(text)):
            fields.setdefault(meaning, text)
    return fields, end


def _frames(body: bytes, version: int, *, has_more: bool) -> Iterator[tuple[str, bytes]]:
    head, width = (6, 3) if version < 3 else (10, 4)
    at = 0
    if has_more and version >= 3:
        stated = _synchsafe(body[:4]) if version > 3 else number(">I", body, 0) + 4
        at = min(stated, len(body))
    for _ in range(_FRAMES_MAX):
        name = body[at : at + width]
        if len(name) < width or not name.isalnum():
            return
        if version < 3:
            size = int.from_bytes(body[at + 3 : at + 6])
        else:
            size = _synchsafe(body[at + 4 : at + 8]) if version > 3 else number(">I", body, at + 4)
        value = body[at + head : at + head + size]
        if version > 3 and number(">H", body, at + 8) & 1:
            value = value[4:]
        yield name.decode("ascii"), value
        at += head + size


def _decoded(codec: int, value: bytes) -> str:
    return value.decode(_CODECS[codec] if codec < len(_CODECS) else "cp1252", "replace")


def _long(value: bytes) -> str:
    """A comment or a lyric, behind its language and its name."""
    text = _decoded(value[0], value[4:])
    _, mark, said = text.partition("\0")
    return prose((said if mark else text).lstrip("\ufeff\ufffe"))


def _id3v1(data: bytes) -> dict[str, str]:
    tag = data[-_V1_BYTES:]
    if len(tag) < _V1_BYTES or tag[:3] != b"TAG":
        return {}
    cuts = {"title": (3, 33), "artist": (33, 63), "album": (63, 93), "year": (93, 97)}
    said = {
        name: line(tag[low:high].partition(b"\0")[0].decode("cp1252", "replace"))
        for name, (low, high) in cuts.items()
    }
    return {name: text for name, text in said.items() if text}


def _synchsafe(stored: bytes) -> int:
    value = 0
    for byte in stored:
        value = value << 7 | byte & 0x7F
    return value


def _counted_seconds(data: bytes, start: int) -> float:
    """The length of a sound whose first frame says how many there are."""
    at = data.find(b"\xff", start, start + _SYNC_BYTES_MAX)
    if at < 0 or number(">H", data, at) & 0xFFE0 != 0xFFE0:
        return 0
    version, rate = data[at + 1] >> 3 & 3, data[at + 2] >> 2 & 3 if len(data) > at + 2 else 3
    window = data[at : at + 200]
    mark = max(window.find(b"Xing"), window.find(b"Info"))
    if mark < 0 or version not in _RATES or rate > 2 or not number(">I", window, mark + 4) & 1:
        return 0
    samples = 1152 if version == 3 else 576
    return number(">I", window, mark + 8) * samples / _RATES[version][rate]
