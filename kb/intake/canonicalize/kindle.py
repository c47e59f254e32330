"""What does a book for Kindle say? Its text, which is a page of HTML in packed records."""

import re
from typing import Final

import msgspec

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.html import whole_text
from kb.intake.canonicalize.media import mobipocket, named_file
from kb.intake.canonicalize.media.facts import number
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.model.text import Canonical

MIME: Final = "application/x-mobipocket-ebook"
_HEAD_BYTES: Final = 78
_PLAIN, _PALMDOC = 1, 2
_LOCKED: Final = "its text is locked, or packed in a way that kb does not read; its name was kept"
_NO_BOOK: Final = "it is damaged, or cut off; get the book again"
_UTF8: Final = 65_001
_NEWER_FORM: Final = 8
# Where a part of a book in the newer form begins: its pages follow each other.
_PAGE_ENDS: Final = re.compile(
    r"</?(?:html|body|mbp:pagebreak)\b[^<>]{0,2000}/?>|<\?xml[^<>]{0,200}\?>"
)
_HEADS: Final = re.compile(r"<head\b.{0,20000}?</head>", re.DOTALL | re.IGNORECASE)


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The chapters in order, with the title, the authors and the date that the book states.

    A book that is locked, or packed by Huffman's codes, is known by its name and what it states.

    Raises:
        Unparsable: it is no such book, or is cut off.
    """
    count = number(">H", data, 76)
    starts = [number(">I", data, _HEAD_BYTES + 8 * at) for at in range(count)]
    if not starts or data[60:68] != b"BOOKMOBI" or starts != sorted(starts):
        raise Unparsable(_NO_BOOK, source=name)
    if starts[-1] >= len(data):
        raise Unparsable(_NO_BOOK, source=name)
    head = data[starts[0] : starts[1] if count > 1 else len(data)]
    packing, lock = number(">H", head, 0), number(">H", head, 12)
    facts = mobipocket.facts_of(data)
    if lock or packing not in (_PLAIN, _PALMDOC):
        named = named_file.read(data, name, charset)
        return msgspec.structs.replace(named, mime=MIME, warnings=(_LOCKED,))
    text = _text(data, starts, head, is_packed=packing == _PALMDOC)
    text = text[: _pages_end(data, starts, head) or len(text)]
    codec = "utf-8" if number(">I", head, 28) == _UTF8 else "cp1252"
    page = _PAGE_ENDS.sub("<hr>", _HEADS.sub("", text.decode(codec, "replace")))
    body = whole_text(f"<html><body>{page}</body></html>")
    return finish(
        (f"By {facts.people}" if facts.people and body else "", body),
        name,
        MIME,
        title=facts.title,
        date=iso_date(facts.date) if facts.date else None,
        is_titled=False,
        wordless="Book without text",
    )


def _pages_end(data: bytes, starts: list[int], head: bytes) -> int:
    """Where the pages of a book in the newer form end, and its styles begin; 0 if it says not."""
    at = number(">I", head, 192) if number(">I", head, 36) >= _NEWER_FORM else len(starts)
    record = data[starts[at] :] if at < len(starts) else b""
    return number(">I", record, 16) if record.startswith(b"FDST") else 0


def _text(data: bytes, starts: list[int], head: bytes, *, is_packed: bool) -> bytes:
    """The records of text, one after another, without what trails each of them."""
    records = number(">H", head, 8)
    # Older heads have no flags.
    flags = number(">H", head, 242) if number(">I", head, 20) >= 228 else 0
    whole = bytearray()
    for at in range(1, min(records + 1, len(starts))):
        record = data[starts[at] : starts[at + 1] if at + 1 < len(starts) else len(data)]
        record = record[: len(record) - _trailing(record, flags)]
        whole += unpacked(record) if is_packed else record
        if len(whole) > TEXT_CHARS_MAX:
            raise TextTooLong
    return bytes(whole)


def _trailing(record: bytes, flags: int) -> int:
    """How many bytes behind the text of a record are none of it."""
    size = 0
    for _ in range((flags >> 1).bit_count()):
        left = len(record) - size
        stored = shift = 0
        for at in range(left - 1, max(left - 5, -1), -1):
            stored |= (record[at] & 0x7F) << shift
            shift += 7
            if record[at] & 0x80:
                break
        size += stored
    if flags & 1 and size < len(record):
        size += (record[len(record) - size - 1] & 3) + 1
    return min(size, len(record))


def unpacked(packed: bytes) -> bytes:
    """What a record of PalmDOC holds: at most five times its bytes."""
    out = bytearray()
    at = 0
    while at < len(packed):
        byte = packed[at]
        at += 1
        if 1 <= byte <= 8:
            out += packed[at : at + byte]
            at += byte
        elif byte < 0x80:
            out.append(byte)
        elif byte >= 0xC0:
            out += bytes((0x20, byte ^ 0x80))
        elif at < len(packed):
            pair = byte << 8 | packed[at]
            at += 1
            back, length = pair >> 3 & 0x7FF, (pair & 7) + 3
            for _ in range(length if 0 < back <= len(out) else 0):
                out.append(out[-back])
    return bytes(out)
