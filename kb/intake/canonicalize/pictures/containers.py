"""Where in a picture's file do its size and its notes stand? One walk for each format. Pure."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_BLOCKS_MAX: Final = 100_000
_TEXTS_MAX: Final = 64
_TEXT_BYTES_MAX: Final = 65_536
_XMP_BYTES_MAX: Final = 1 << 20
_EXIF: Final = b"Exif\0\0"
_JPEG_XMP: Final = b"http://ns.adobe.com/xap/1.0/\0"
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_XMP: Final = "XML:com.adobe.xmp"
_JPEG_SIZES: Final = frozenset(
    (*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0))
)
_JPEG_BARE: Final = frozenset((0x01, *range(0xD0, 0xD9)))
_JPEG_SCAN: Final = frozenset((0xDA, 0xD9))
_HEIC_WINDOW_BYTES: Final = 1 << 20
_GIF_TABLE: Final = 0x80
_GIF_HEAD_BYTES: Final = 13


class PictureParts(Struct, frozen=True, kw_only=True):
    """What was found in a file; 0 and empty for what was not."""

    format: str
    width: int = 0
    """In pixels, as is `height`."""
    height: int = 0
    exif: bytes = b""
    """From `II*` or `MM*` on."""
    xmp: bytes = b""
    texts: tuple[tuple[str, str], ...] = ()
    """Notes of the format itself, by what it calls them in lower case; `comment` without a name."""


def parts_of(data: bytes) -> PictureParts | None:
    """The parts of a picture, as far as the file is whole; None for another format."""
    for mark, walk in _WALKS:
        if data.startswith(mark):
            return walk(data)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    return _heic(data) if data[4:8] == b"ftyp" else None


def _png(data: bytes) -> PictureParts:
    width, height = _pair(">II", data, 16)
    exif = xmp = b""
    texts: list[tuple[str, str]] = []
    for kind, body in _png_chunks(data):
        if kind == b"eXIf":
            exif = body
        elif kind in (b"tEXt", b"zTXt", b"iTXt") and len(texts) < _TEXTS_MAX:
            name, text = _png_text(kind, body)
            if name == _PNG_XMP:
                xmp = text
            elif name:
                texts.append(
                    (
                        name.lower(),
                        text.decode("utf-8" if kind == b"iTXt" else "latin-1", "replace"),
                    )
                )
    return PictureParts(
        format="PNG", width=width, height=height, exif=exif, xmp=xmp, texts=tuple(texts)
    )


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    for _ in range(_BLOCKS_MAX):
        if at + 12 > len(data):
            return
        size = int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        if kind not in (b"IDAT", b"fdAT"):
            yield kind, data[at + 8 : at + 8 + size]
        at += 12 + size


def _png_text(kind: bytes, body: bytes) -> tuple[str, bytes]:
    """The name of a note and its bytes, unpacked up to a bound."""
    name, _, rest = body.partition(b"\0")
    is_packed = kind == b"zTXt"
    if kind == b"zTXt":
        rest = rest[1:]
    elif kind == b"iTXt":
        is_packed = rest[:1] == b"\1"
        rest = rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    bound = _XMP_BYTES_MAX if name == _PNG_XMP.encode() else _TEXT_BYTES_MAX
    if is_packed:
        try:
            rest = zlib.decompressobj().decompress(rest, bound)
        except zlib.error:
            return "", b""
    return name.decode("latin-1")[:79], rest[:bound]


def _jpeg(data: bytes) -> PictureParts:
    width = height = 0
    exif = xmp = b""
    texts: list[tuple[str, str]] = []
    for marker, body in _jpeg_segments(data):
        if marker in _JPEG_SIZES and not width:
            height, width = _pair(">HH", body, 1)
        elif marker == 0xE1 and body.startswith(_EXIF):
            exif = exif or body[len(_EXIF) :]
        elif marker == 0xE1 and body.startswith(_JPEG_XMP):
            xmp = xmp or body[len(_JPEG_XMP) :]
        elif marker == 0xFE and len(texts) < _TEXTS_MAX:
            texts.append(("comment", body.decode("utf-8", "replace")))
    return PictureParts(
        format="JPEG", width=width, height=height, exif=exif, xmp=xmp, texts=tuple(texts)
    )


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The segments before the picture itself."""
    at = 2
    for _ in range(_BLOCKS_MAX):
        if at + 4 > len(data) or data[at] != 0xFF:
            return
        marker = data[at + 1]
        if marker == 0xFF or marker in _JPEG_BARE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker in _JPEG_SCAN:
            return
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        yield marker, data[at + 4 : at + 2 + size]
        at += 2 + max(size, 2)


def _gif(data: bytes) -> PictureParts:
    width, height = _pair("<HH", data, 6)
    flags = data[10] if len(data) > 10 else 0
    at = _GIF_HEAD_BYTES + (3 << (flags & 7) + 1 if flags & _GIF_TABLE else 0)
    texts: list[tuple[str, str]] = []
    # The notes stand before the first picture, if anywhere.
    while data[at : at + 1] == b"!" and len(texts) < _TEXTS_MAX:
        is_note = data[at + 1 : at + 2] == b"\xfe"
        at += 2
        blocks: list[bytes] = []
        while size := int.from_bytes(data[at : at + 1], "big"):
            blocks.append(data[at + 1 : at + 1 + size])
            at += 1 + size
        at += 1
        if is_note:
            texts.append(("comment", b"".join(blocks)[:_TEXT_BYTES_MAX].decode("utf-8", "replace")))
    return PictureParts(format="GIF", width=width, height=height, texts=tuple(texts))


def _webp(data: bytes) -> PictureParts:
    width = height = 0
    exif = xmp = b""
    at = 12
    for _ in range(_BLOCKS_MAX):
        if at + 8 > len(data):
            break
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        body = (
            data[at + 8 : at + 8 + size] if kind in (b"EXIF", b"XMP ") else data[at + 8 : at + 24]
        )
        if kind == b"EXIF":
            exif = body.removeprefix(_EXIF)
        elif kind == b"XMP ":
            xmp = body
        elif not width:
            width, height = _webp_size(kind, body)
        at += 8 + size + size % 2
    return PictureParts(format="WebP", width=width, height=height, exif=exif, xmp=xmp)


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int]:
    if kind == b"VP8X":
        sides = (body[4:7], body[7:10])
        return (int.from_bytes(sides[0], "little") + 1, int.from_bytes(sides[1], "little") + 1)
    if kind == b"VP8 ":
        width, height = _pair("<HH", body, 6)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return 0, 0


def _tiff(data: bytes) -> PictureParts:
    return PictureParts(format="TIFF", exif=data)


def _bmp(data: bytes) -> PictureParts:
    width, height = _pair("<ii", data, 18)
    return PictureParts(format="BMP", width=abs(width), height=abs(height))


def _heic(data: bytes) -> PictureParts | None:
    """The largest size that the head names, and Exif where its mark is; items are not followed."""
    if data[8:12] not in (
        b"heic",
        b"heix",
        b"hevc",
        b"heim",
        b"heis",
        b"mif1",
        b"msf1",
        b"avif",
        b"avis",
    ):
        return None
    width = height = 0
    at = data.find(b"ispe", 0, _HEIC_WINDOW_BYTES)
    for _ in range(_TEXTS_MAX):
        if at < 0:
            break
        width, height = max((width, height), _pair(">II", data, at + 8))
        at = data.find(b"ispe", at + 4, _HEIC_WINDOW_BYTES)
    mark = max(data.find(_EXIF + b"MM\0*"), data.find(_EXIF + b"II*\0"))
    exif = data[mark + len(_EXIF) : mark + len(_EXIF) + _XMP_BYTES_MAX] if mark >= 0 else b""
    name = "AVIF" if data[8:10] == b"av" else "HEIC"
    return PictureParts(format=name, width=width, height=height, exif=exif)


def _pair(form: str, data: bytes, at: int) -> tuple[int, int]:
    """Two numbers at an offset; zeros where the file ends before."""
    if at + struct.calcsize(form) > len(data):
        return 0, 0
    first, second = struct.unpack_from(form, data, at)
    return int(first), int(second)


_WALKS: Final = (
    (_PNG, _png),
    (b"\xff\xd8\xff", _jpeg),
    (b"GIF8", _gif),
    (b"II*\0", _tiff),
    (b"MM\0*", _tiff),
    (b"BM", _bmp),
)
