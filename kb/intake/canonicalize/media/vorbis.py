"""What do the comments of FLAC, Ogg Vorbis and Opus say?"""

from typing import Final

from kb.intake.canonicalize.media.facts import MediaFacts, first, joined, line, number, prose

_BLOCKS_MAX: Final = 128
_COMMENTS_MAX: Final = 500
_COMMENT_BYTES_MAX: Final = 65_536
_STREAM_INFO, _COMMENT_BLOCK = 0, 4
_OPUS_RATE: Final = 48_000
_LONG: Final = frozenset(("description", "comment", "lyrics", "unsyncedlyrics"))
# Page heads of Ogg: a sound's last one says where it ends.
_PAGE: Final = b"OggS"


def flac_facts(data: bytes) -> MediaFacts:
    """From the blocks before the sound."""
    at, seconds = 4, 0.0
    fields: dict[str, list[str]] = {}
    for _ in range(_BLOCKS_MAX):
        if at + 4 > len(data):
            break
        kind, size = data[at], int.from_bytes(data[at + 1 : at + 4])
        body = data[at + 4 : at + 4 + size]
        if kind & 0x7F == _STREAM_INFO and len(body) >= 18:
            packed = int.from_bytes(body[10:18])
            rate = packed >> 44
            seconds = (packed & (1 << 36) - 1) / rate if rate else 0
        elif kind & 0x7F == _COMMENT_BLOCK:
            fields = comments(body)
        if kind & 0x80:
            break
        at += 4 + size
    return _facts(fields, seconds)


def ogg_facts(data: bytes) -> MediaFacts:
    """From the packets that open the stream, and the last page."""
    rate = 0
    if (head := data.find(b"\x01vorbis")) >= 0:
        rate = number("<I", data, head + 12)
    elif data.find(b"OpusHead") >= 0:
        rate = _OPUS_RATE
    marks = ((b"\x03vorbis", 7), (b"OpusTags", 8))
    starts = [at + skip for mark, skip in marks if (at := data.find(mark)) >= 0]
    fields = comments(data[starts[0] :]) if starts else {}
    last = number("<Q", data, data.rfind(_PAGE) + 6)
    return _facts(fields, last / rate if rate and last < 1 << 62 else 0)


def comments(body: bytes) -> dict[str, list[str]]:
    """The values by the lower-case names of a Vorbis comment; what the bytes cut off is left."""
    fields: dict[str, list[str]] = {}
    at = 4 + number("<I", body, 0)
    count, at = number("<I", body, at), at + 4
    for _ in range(min(count, _COMMENTS_MAX)):
        size = number("<I", body, at)
        if not size or at + 4 + size > len(body):
            break
        if size <= _COMMENT_BYTES_MAX:
            name, _, value = body[at + 4 : at + 4 + size].decode("utf-8", "replace").partition("=")
            fields.setdefault(name.lower(), []).append(value)
        at += 4 + size
    return fields


def _facts(fields: dict[str, list[str]], seconds: float) -> MediaFacts:
    said = {
        name: prose("\n\n".join(values)) if name in _LONG else joined(map(line, values))
        for name, values in fields.items()
    }
    texts = (said.get(name) for name in ("description", "comment", "lyrics", "unsyncedlyrics"))
    return MediaFacts(
        title=first(said, "title"),
        people=first(said, "artist", "albumartist", "performer"),
        album=first(said, "album"),
        date=first(said, "date", "year"),
        text="\n\n".join(dict.fromkeys(filter(None, texts))),
        seconds=seconds,
    )
