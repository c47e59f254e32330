"""What is a book for Kindle called? Its full name and its authors."""

from typing import Final

from kb.intake.canonicalize.media.facts import MediaFacts, joined, line, number

_RECORDS_MAX: Final = 200
_AUTHOR, _TITLE, _DATE, _TEXT = 100, 503, 106, 103


def facts_of(data: bytes) -> MediaFacts:
    """From the first record of the file, and the list of facts behind its head."""
    start = number(">I", data, 78)
    if data[60:68] != b"BOOKMOBI" or data[start + 16 : start + 20] != b"MOBI":
        return MediaFacts()
    codec = "utf-8" if number(">I", data, start + 28) == 65_001 else "cp1252"
    at, size = number(">I", data, start + 84), number(">I", data, start + 88)
    title = data[start + at : start + at + min(size, 1_000)].decode(codec, "replace")
    said: dict[int, list[str]] = {}
    place = start + 16 + number(">I", data, start + 20)
    if data[place : place + 4] == b"EXTH":
        count, place = number(">I", data, place + 8), place + 12
        for _ in range(min(count, _RECORDS_MAX)):
            kind, length = number(">I", data, place), number(">I", data, place + 4)
            if length < 8:
                break
            value = data[place + 8 : place + length][:16_384].decode(codec, "replace")
            said.setdefault(kind, []).append(line(value))
            place += length
    return MediaFacts(
        title=joined(said.get(_TITLE, ())) or line(title),
        people=joined(said.get(_AUTHOR, ())),
        date=joined(said.get(_DATE, ())),
        text=joined(said.get(_TEXT, ())),
    )
