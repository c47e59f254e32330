"""What do the tags of a TIFF or of Exif say? Pure, and bounded in tags and bytes."""

import struct
from typing import Final

_TAGS_MAX: Final = 512
_VALUE_BYTES_MAX: Final = 65_536
_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 9: 4, 10: 8, 13: 4}
_RATIONALS: Final = (5, 10)
_NUMBERS: Final = {3: "H", 4: "I", 9: "i", 13: "I"}
_INLINE_BYTES: Final = 4

Tag = bytes | tuple[float, ...]
"""The bytes of a text or of something unnamed, or numbers."""


class TiffTags:
    """The tags of one directory after another; damaged ones are left out."""

    def __init__(self, data: bytes) -> None:
        """Take the bytes from `II*` or `MM*` on; raises ValueError for others."""
        mark = data[:4]
        if mark not in (b"II*\0", b"MM\0*") or len(data) < 8:
            raise ValueError("no TIFF")
        self._data = data
        self._order = "<" if mark[:1] == b"I" else ">"
        self.first = self._number("I", 4)

    def directory(self, at: int) -> dict[int, Tag]:
        """The tags of the directory that begins at an offset, by their numbers."""
        tags: dict[int, Tag] = {}
        if not 8 <= at <= len(self._data) - 2:
            return tags
        count = min(self._number("H", at), _TAGS_MAX)
        for place in range(at + 2, at + 2 + 12 * count, 12):
            if place + 12 > len(self._data):
                break
            value = self._value(place)
            if value is not None:
                tags.setdefault(self._number("H", place), value)
        return tags

    def linked(self, tags: dict[int, Tag], number: int) -> dict[int, Tag]:
        """The directory that a tag of another one leads to; empty where none does."""
        value = tags.get(number)
        return self.directory(int(value[0])) if isinstance(value, tuple) and value else {}

    def _number(self, kind: str, at: int) -> int:
        return int(struct.unpack_from(self._order + kind, self._data, at)[0])

    def _value(self, place: int) -> Tag | None:
        kind, count = self._number("H", place + 2), self._number("I", place + 4)
        size = _SIZES.get(kind, 0) * count
        if not 0 < size <= _VALUE_BYTES_MAX:
            return None
        at = place + 8 if size <= _INLINE_BYTES else self._number("I", place + 8)
        stored = self._data[at : at + size]
        if len(stored) < size:
            return None
        if kind in _RATIONALS:
            sign = "i" if kind == _RATIONALS[1] else "I"
            pairs = struct.unpack(f"{self._order}{2 * count}{sign}", stored)
            return tuple(
                top / low if low else 0.0 for top, low in zip(pairs[::2], pairs[1::2], strict=True)
            )
        if kind in _NUMBERS:
            return struct.unpack(f"{self._order}{count}{_NUMBERS[kind]}", stored)
        return stored
