"""Writes the containers of old offices: a workbook of Excel 97, and a mail of Outlook."""

import struct
from typing import Final

_SECTOR: Final = 512
_MINI: Final = 64
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_EPOCH_S: Final = 11_644_473_600


def container(streams: dict[str, bytes]) -> bytes:
    """A compound file of streams of less than 4 KiB each; a slash parts a storage from its own."""
    names = _ordered(streams)
    mini = bytearray()
    mini_fat: list[int] = []
    starts: dict[str, int] = {}
    for name, data in streams.items():
        first, count = len(mini_fat), -(-len(data) // _MINI)
        starts[name] = first if count else _END
        mini_fat += [*range(first + 1, first + count), _END][:count] if count else []
        mini += data.ljust(count * _MINI, b"\0")
    parts = [
        _directory(names, streams, starts, len(mini)),
        struct.pack(f"<{len(mini_fat)}I", *mini_fat),
        bytes(mini),
    ]
    fill = (b"\0", b"\xff", b"\0")
    fat, sectors, firsts = [_FAT], b"", []
    for part, byte in zip(parts, fill, strict=True):
        count = max(1, -(-len(part) // _SECTOR))
        firsts.append(len(fat))
        fat += [*range(len(fat) + 1, len(fat) + count), _END]
        sectors += part.ljust(count * _SECTOR, byte)
    # The start of the small streams stands in the root's entry.
    place = firsts[0] * _SECTOR - _SECTOR + 116
    sectors = sectors[:place] + struct.pack("<I", firsts[2]) + sectors[place + 4 :]
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(_SECTOR, b"\xff")
    head = struct.pack(
        "<8s16sHHHHH6sIIIIIIIII",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6, bytes(6)),
        *(0, 1, firsts[0], 0, 4096, firsts[1], (len(mini_fat) * 4 + 511) // 512, _END, 0),
    )
    return head + struct.pack("<I", 0) + b"\xff" * 432 + table + sectors


def _ordered(streams: dict[str, bytes]) -> list[str]:
    """The root, then every storage and stream."""
    storages = dict.fromkeys(name.partition("/")[0] for name in streams if "/" in name)
    return ["", *storages, *streams]


def _directory(
    names: list[str], streams: dict[str, bytes], starts: dict[str, int], mini_bytes: int
) -> bytes:
    entries = bytearray()
    for name in names:
        siblings = _children(names, name.rpartition("/")[0]) if name else []
        later = siblings[siblings.index(name) + 1 :] if name else []
        below = _children(names, name) if name not in streams else []
        kind = 2 if name in streams else 1 if name else 5
        label = (name.rpartition("/")[2] or "Root Entry").encode("utf-16-le") + b"\0\0"
        size = len(streams[name]) if name in streams else 0 if name else mini_bytes
        entries += struct.pack(
            "<64sHBBIII16sIQQIQ",
            *(label, len(label), kind, 1, _FREE),
            names.index(later[0]) if later else _FREE,
            names.index(below[0]) if below else _FREE,
            *(bytes(16), 0, 0, 0, starts.get(name, 0), size),
        )
    spare = -len(entries) // 128 % 4
    return bytes(entries + struct.pack("<64sHBBIII48x", b"", 0, 0, 0, *[_FREE] * 3) * spare)


def _children(names: list[str], folder: str) -> list[str]:
    """In the order of a compound file: by length, then by letters."""
    below = [n for n in names if n and n.rpartition("/")[0] == folder]
    return sorted(below, key=lambda n: (len(n), n.upper()))


def workbook(title: str, rows: list[list[str | float]]) -> bytes:
    """An xls of one sheet."""
    cells = b"".join(
        _cell(at, column, value) for at, row in enumerate(rows) for column, value in enumerate(row)
    )
    size = struct.pack("<IIHHH", 0, len(rows), 0, max(map(len, rows)), 0)
    sheet = _begin(0x10) + _record(0x200, size) + cells + _record(0x0A, b"")
    bound = struct.pack("<BBBB", 0, 0, len(title), 0) + title.encode("latin-1")
    before = len(_begin(5)) + 4 + 4 + len(bound) + 4
    at = struct.pack("<I", before)
    whole = _begin(5) + _record(0x85, at + bound) + _record(0x0A, b"") + sheet
    return container({"Workbook": whole})


def _begin(kind: int) -> bytes:
    return _record(0x809, struct.pack("<HHHHII", 0x600, kind, 0x1FAA, 1997, 0, 6))


def _record(number: int, body: bytes) -> bytes:
    return struct.pack("<HH", number, len(body)) + body


def _cell(row: int, column: int, value: str | float) -> bytes:
    head = struct.pack("<HHH", row, column, 0)
    if isinstance(value, str):
        text = value.encode("utf-16-le")
        return _record(0x204, head + struct.pack("<HB", len(value), 1) + text)
    return _record(0x203, head + struct.pack("<d", value))


def mail(texts: dict[str, str], sent_s: int, files: list[str]) -> bytes:
    """A msg with these texts, by the four digits of their properties; when it was sent."""
    streams = {
        f"__substg1.0_{number}001F": text.encode("utf-16-le") for number, text in texts.items()
    }
    ticks = (sent_s + _EPOCH_S) * 10_000_000
    streams["__properties_version1.0"] = bytes(32) + struct.pack("<HHIQ", 0x40, 0x39, 6, ticks)
    for number, file in enumerate(files):
        folder = f"__attach_version1.0_#{number:08X}"
        streams[f"{folder}/__substg1.0_3707001F"] = file.encode("utf-16-le")
    return container(streams)
