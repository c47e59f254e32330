"""What do WAV, AVI, AIFF and the formats of Windows Media say?"""

from collections.abc import Iterator
from typing import Final

from kb.intake.canonicalize.media import id3
from kb.intake.canonicalize.media.facts import MediaFacts, first, line, number

_CHUNKS_MAX: Final = 500
_VALUE_BYTES_MAX: Final = 65_536
_INFO: Final = {
    b"INAM": "title",
    b"IART": "artist",
    b"IPRD": "album",
    b"ICRD": "date",
    b"ICMT": "comment",
    b"NAME": "title",
    b"AUTH": "artist",
    b"ANNO": "comment",
}
_ASF_TEXTS: Final = bytes.fromhex("3326b2758e66cf11a6d900aa0062ce6c")
_ASF_FILE: Final = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_TICKS_PER_S: Final = 10_000_000


def riff_facts(data: bytes) -> MediaFacts:
    """Of WAV and AVI, from the list `INFO` and the heads."""
    seconds = 0.0
    rate = 0
    fields: dict[str, str] = {}
    for name, start, size in _chunks(data, "<I"):
        if name == b"fmt ":
            rate = number("<I", data, start + 8)
        elif name == b"data" and rate:
            seconds = size / rate
        elif name in (b"id3 ", b"ID3 "):
            fields.update(id3.id3v2(data, start)[0])
    if (avi := data.find(b"avih")) >= 0:
        seconds = number("<I", data, avi + 8) * number("<I", data, avi + 24) / 1e6
    if (at := data.rfind(b"INFO")) >= 12 and data[at - 8 : at - 4] == b"LIST":
        body = data[at - 8 : at + number("<I", data, at - 4)]
        fields = {**_texts(body, "<I"), **fields}
    return id3.facts_from(fields, seconds)


def aiff_facts(data: bytes) -> MediaFacts:
    """From the chunks of an AIFF."""
    fields = _texts(data, ">I")
    seconds = 0.0
    for name, start, _ in _chunks(data, ">I"):
        if name == b"COMM":
            rate = _extended(data[start + 8 : start + 18])
            seconds = number(">I", data, start + 2) / rate if rate else 0
        elif name == b"ID3 ":
            fields.update(id3.id3v2(data, start)[0])
    return id3.facts_from(fields, seconds)


def asf_facts(data: bytes) -> MediaFacts:
    """Of WMA and WMV: title, author and description of the object that has them."""
    at = data.find(_ASF_TEXTS)
    said: list[str] = []
    if at >= 0:
        start = at + 34
        for place in range(at + 24, at + 34, 2):
            size = number("<H", data, place)
            said.append(line(data[start : start + size].decode("utf-16-le", "replace")))
            start += size
    title, author, _, text, _ = said or [""] * 5
    length = number("<Q", data, data.find(_ASF_FILE) + 64) if _ASF_FILE in data else 0
    return MediaFacts(title=title, people=author, text=text, seconds=length / _TICKS_PER_S)


def _texts(body: bytes, form: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, start, size in _chunks(body, form):
        if (meaning := _INFO.get(name)) and 0 < size <= _VALUE_BYTES_MAX:
            stored = body[start : start + size].partition(b"\0")[0]
            try:
                text = stored.decode("utf-8")
            except UnicodeDecodeError:
                text = stored.decode("cp1252", "replace")
            fields.setdefault(meaning, line(text))
    return {name: first(fields, name) for name in fields}


def _chunks(data: bytes, form: str) -> Iterator[tuple[bytes, int, int]]:
    at = 12
    for _ in range(_CHUNKS_MAX):
        if at + 8 > len(data):
            return
        size = number(form, data, at + 4)
        yield data[at : at + 4], at + 8, size
        at += 8 + size + size % 2


def _extended(stored: bytes) -> float:
    """A number of eighty bits, as AIFF has its rate."""
    exponent = number(">H", stored, 0) & 0x7FFF
    shift = exponent - 16_383 - 63
    return number(">Q", stored, 2) * 2.0**shift if -80 < shift < 64 else 0
