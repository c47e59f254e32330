"""Pictures of a few bytes, with what cameras and people write into them."""

import struct
import zlib

Value = str | bytes | int | tuple[tuple[int, int], ...]


def exif(*directories: dict[int, Value]) -> bytes:
    """A TIFF of directories: the first one, those of Exif (0x8769) and of GPS (0x8825)."""
    out = bytearray(b"II*\0" + struct.pack("<I", 8))
    links = dict(zip((0x8769, 0x8825), directories[1:], strict=False))
    return bytes(_directory(out, directories[0], links))


def _directory(
    out: bytearray, tags: dict[int, Value], links: dict[int, dict[int, Value]]
) -> bytearray:
    fields = dict(tags) | dict.fromkeys(links, 0)
    start = len(out)
    out += struct.pack("<H", len(fields)) + bytes(12 * len(fields) + 4)
    for place, (number, value) in enumerate(sorted(fields.items())):
        if number in links:
            kind, stored, count = 4, struct.pack("<I", len(out)), 1
            _directory(out, links[number], {})
        else:
            kind, stored, count = _stored(value)
        if len(stored) > 4:
            at = len(out)
            out += stored
            stored = struct.pack("<I", at)
        struct.pack_into("<HHI4s", out, start + 2 + 12 * place, number, kind, count, stored)
    return out


def _stored(value: Value) -> tuple[int, bytes, int]:
    if isinstance(value, str):
        stored = value.encode() + b"\0"
        return 2, stored, len(stored)
    if isinstance(value, bytes):
        return 7, value, len(value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value), 1
    return 5, b"".join(struct.pack("<II", *pair) for pair in value), len(value)


CAMERA = exif(
    {0x10F: "Kodama", 0x110: "Kodama K-2", 0x10E: "SAMSUNG"},
    {0x9003: "2019:05:03 12:30:00", 0x9011: "+02:00"},
    {
        1: "N",
        2: ((48, 1), (12, 1), (2942, 100)),
        3: "E",
        4: ((16, 1), (22, 1), (2575, 100)),
    },
)


def xmp(title: str = "", description: str = "", keywords: tuple[str, ...] = ()) -> bytes:
    """An XMP packet as photo programs write it."""
    items = "".join(f"<rdf:li>{word}</rdf:li>" for word in keywords)
    return (
        '<?xpacket begin="\ufeff" id="x"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title><rdf:Alt><rdf:li>{title}</rdf:li></rdf:Alt></dc:title>"
        f"<dc:description><rdf:Alt><rdf:li>{description}</rdf:li></rdf:Alt></dc:description>"
        f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>"
        '</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def jpeg(*, exif: bytes = b"", xmp: bytes = b"", size: tuple[int, int] = (640, 480)) -> bytes:
    """A JPEG up to where the picture itself would begin."""
    out = b"\xff\xd8" + _segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    if exif:
        out += _segment(0xE1, b"Exif\0\0" + exif)
    if xmp:
        out += _segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)
    head = struct.pack(">BHHB", 8, size[1], size[0], 1) + b"\1\x11\0"
    return out + _segment(0xC0, head) + b"\xff\xda\0\x08" + bytes(40) + b"\xff\xd9"


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def png(*chunks: tuple[bytes, bytes], size: tuple[int, int] = (640, 480)) -> bytes:
    """A whole PNG, all white, with chunks before the picture."""
    rows = zlib.compress((b"\0" + b"\xff" * ((size[0] + 7) // 8)) * size[1])
    head = struct.pack(">IIBBBBB", *size, 1, 0, 0, 0, 0)
    whole = ((b"IHDR", head), *chunks, (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in whole)


def png_of(pgm: bytes) -> bytes:
    """A PNG of the grey picture that a page was drawn as."""
    width, height = map(int, pgm.split(b" ", 3)[1:3])
    grey = pgm[-width * height :]
    rows = b"".join(b"\0" + grey[at : at + width] for at in range(0, len(grey), width))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    whole = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in whole)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def webp(size: tuple[int, int], exif: bytes) -> bytes:
    """The head of an extended WebP, and its Exif."""
    sides = b"".join((side - 1).to_bytes(3, "little") for side in size)
    body = b"WEBP" + _riff(b"VP8X", bytes(4) + sides) + _riff(b"EXIF", exif)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _riff(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def heic(size: tuple[int, int], exif: bytes) -> bytes:
    """A head as phones write it: its type, a size, and Exif further on."""
    ftyp = struct.pack(">I", 16) + b"ftypheic" + bytes(4)
    ispe = struct.pack(">I4sIII", 20, b"ispe", 0, *size)
    return ftyp + bytes(40) + ispe + bytes(30) + b"\0\0\0\6Exif\0\0" + exif


def bmp(size: tuple[int, int]) -> bytes:
    """The head of a BMP."""
    return b"BM" + bytes(12) + struct.pack("<Iii", 40, *size) + bytes(28)


def gif(size: tuple[int, int], note: bytes) -> bytes:
    """A GIF with a note before its picture."""
    head = b"GIF89a" + struct.pack("<HH", *size) + b"\x80\0\0" + bytes(6)
    return head + b"!\xfe" + bytes([len(note)]) + note + b"\0,"
