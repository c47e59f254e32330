"""Sounds, films and books of a few bytes, with what people and programs write into them."""

import struct


def mp3(*frames: tuple[str, str], old: dict[str, str] | None = None, sound: int = 400) -> bytes:
    """An MP3 with ID3v2.3 in front, and ID3v1 at its end where `old` says something."""
    body = b"".join(_frame(name, text) for name, text in frames) + bytes(10)
    head = b"ID3\3\0\0" + _synchsafe(len(body)) + body if frames else b""
    # A frame of 44.1 kHz, whose Xing header counts 1,000 frames.
    first = b"\xff\xfb\x90\0" + bytes(32) + b"Xing" + struct.pack(">II", 1, 1_000)
    return head + first + bytes(sound) + (_id3v1(old) if old else b"")


def _frame(name: str, text: str) -> bytes:
    stored = b"\1" + text.encode("utf-16")
    if name in ("COMM", "USLT"):
        stored = b"\1eng" + "\0".encode("utf-16") + text.encode("utf-16")
    return name.encode() + struct.pack(">IH", len(stored), 0) + stored


def _synchsafe(size: int) -> bytes:
    return bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))


def _id3v1(said: dict[str, str]) -> bytes:
    cut = [
        said.get(name, "").encode("latin-1").ljust(30, b"\0")
        for name in ("title", "artist", "album")
    ]
    return b"TAG" + b"".join(cut) + said.get("year", "").encode().ljust(4, b"\0") + bytes(31)


def box(name: bytes, body: bytes) -> bytes:
    """A box of MP4."""
    return struct.pack(">I", len(body) + 8) + name + body


def mp4(*items: tuple[bytes, str], seconds: int = 90, made: int = 0, film: int = 400) -> bytes:
    """An MP4 whose movie stands behind the film, as phones and ffmpeg write it."""
    values = b"".join(box(n, box(b"data", struct.pack(">II", 1, 0) + t.encode())) for n, t in items)
    user = box(b"udta", box(b"meta", bytes(4) + box(b"ilst", values)))
    head = box(b"mvhd", struct.pack(">IIIII", 0, made, made, 1_000, seconds * 1_000) + bytes(80))
    return box(b"ftyp", b"isom" + bytes(4)) + box(b"mdat", bytes(film)) + box(b"moov", head + user)


def vorbis(*fields: tuple[str, str]) -> bytes:
    """A Vorbis comment."""
    each = [f"{name}={text}".encode() for name, text in fields]
    rows = b"".join(struct.pack("<I", len(row)) + row for row in each)
    return struct.pack("<I", 4) + b"test" + struct.pack("<I", len(each)) + rows


def flac(*fields: tuple[str, str], seconds: int = 61) -> bytes:
    """A FLAC up to its sound."""
    packed = 44_100 << 44 | 44_100 * seconds
    info = bytes(10) + packed.to_bytes(8) + bytes(16)
    notes = vorbis(*fields)
    blocks = b"\0" + len(info).to_bytes(3) + info + b"\x84" + len(notes).to_bytes(3) + notes
    return b"fLaC" + blocks + bytes(100)


def opus(*fields: tuple[str, str], seconds: int = 30) -> bytes:
    """The packets that open an Opus stream, and its last page."""
    pages = (b"OpusHead\1\2" + bytes(9), b"OpusTags" + vorbis(*fields))
    start = b"".join(b"OggS\0\2" + bytes(21) + b"\xff" + page for page in pages)
    return start + bytes(300) + b"OggS\0\4" + struct.pack("<Q", 48_000 * seconds) + bytes(13)


def element(ident: str, body: bytes) -> bytes:
    """An element of EBML, by the digits of its id."""
    return bytes.fromhex(ident) + struct.pack(">Q", len(body) | 1 << 56) + body


def mkv(title: str, *tags: tuple[str, str], seconds: int = 200, film: int = 400) -> bytes:
    """A Matroska film whose tags stand behind it."""
    duration = element("4489", struct.pack(">d", seconds * 1_000))
    info = element("1549a966", element("7ba9", title.encode()) + duration)
    simple = b"".join(
        element("67c8", element("45a3", name.encode()) + element("4487", text.encode()))
        for name, text in tags
    )
    body = info + element("1f43b675", bytes(film)) + element("1254c367", element("7373", simple))
    return element("1a45dfa3", element("4282", b"matroska")) + element("18538067", body)


def wav(*notes: tuple[bytes, str], seconds: int = 2) -> bytes:
    """A WAV with a list of notes at its end."""
    rows = b"".join(_chunk(name, text.encode() + b"\0") for name, text in notes)
    form = _chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, 8_000, 8_000, 1, 8))
    body = form + _chunk(b"data", bytes(8_000 * seconds)) + _chunk(b"LIST", b"INFO" + rows)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def _chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def mobi(title: str, author: str) -> bytes:
    """The head of a book for Kindle."""
    row = struct.pack(">II", 100, len(author.encode()) + 8) + author.encode()
    exth = b"EXTH" + struct.pack(">II", 12 + len(row), 1) + row
    head = bytearray(232)
    head[:4] = b"MOBI"
    struct.pack_into(">I", head, 4, 232)
    struct.pack_into(">I", head, 12, 65_001)
    struct.pack_into(">II", head, 68, 16 + 232 + len(exth), len(title.encode()))
    record = bytes(16) + bytes(head) + exth + title.encode()
    return bytes(60) + b"BOOKMOBI" + bytes(8) + struct.pack(">HI", 1, 90) + bytes(8) + record


def aiff(*notes: tuple[bytes, str], seconds: int = 3) -> bytes:
    """An AIFF of 8,000 frames a second, whose rate is a number of eighty bits."""
    rate = struct.pack(">HQ", 16_383 + 12, 8_000 << 51)
    form = struct.pack(">HIH", 1, 8_000 * seconds, 8) + rate
    rows = b"".join(box_of_iff(name, text.encode()) for name, text in notes)
    body = box_of_iff(b"COMM", form) + rows + box_of_iff(b"SSND", bytes(400))
    return b"FORM" + struct.pack(">I", len(body) + 4) + b"AIFF" + body


def box_of_iff(name: bytes, body: bytes) -> bytes:
    """A chunk with its length in front, padded to an even one."""
    return name + struct.pack(">I", len(body)) + body + bytes(len(body) % 2)


def asf(title: str, author: str, text: str = "", seconds: int = 4) -> bytes:
    """The head of a Windows Media file: what it is called, and how long it is."""
    said = [f"{part}\0".encode("utf-16-le") for part in (title, author, "", text, "")]
    sizes = struct.pack("<5H", *map(len, said))
    texts = bytes.fromhex("3326b2758e66cf11a6d900aa0062ce6c")
    file = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
    body = b"".join(said)
    return (
        bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + struct.pack("<QIH", 999, 2, 0x201)
        + texts + struct.pack("<Q", 34 + len(body)) + sizes + body
        + file + struct.pack("<Q", 104) + bytes(40) + struct.pack("<Q", seconds * 10**7) + bytes(32)
    )  # fmt: skip
