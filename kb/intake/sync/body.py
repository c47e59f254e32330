"""Reads and decompresses the body of a response, up to a limit."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from kb.errors import Permanent, Refused, Transient

_PIECE_BYTES: Final = 64 << 10
_GZIP_WBITS: Final = 31


def read_body(parts: Iterable[bytes], encoding: str | None, bytes_max: int, source: str) -> bytes:
    """All bytes of a body; `encoding` is its Content-Encoding.

    Holds at most `bytes_max` and one piece in memory, however well the body is compressed. Raises
    OverLimit if there are more bytes, compressed or not; Transient if the compressed data is
    damaged or ends early; Permanent for an encoding that kb did not ask for.
    """
    counted = _bounded(parts, bytes_max, source)
    match (encoding or "identity").strip().lower():
        case "identity":
            return b"".join(counted)
        case "gzip" | "x-gzip":
            return b"".join(_bounded(_gunzip(counted, source), bytes_max, source))
        case _:
            raise Permanent(
                "the server compressed it in a way that kb did not ask for", source=source
            )


class OverLimit(Refused):
    """A body that is larger than the caller allows."""


def over_limit_error(bytes_max: int, source: str) -> OverLimit:
    """The error for a body over the limit."""
    return OverLimit(
        f"over the limit of {bytes_max:,} bytes; raise fetch.bytes_max to fetch it", source=source
    )


def _bounded(parts: Iterable[bytes], bytes_max: int, source: str) -> Iterator[bytes]:
    total = 0
    for part in parts:
        total += len(part)
        if total > bytes_max:
            raise over_limit_error(bytes_max, source)
        yield part


def _gunzip(parts: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Decompress gzip in pieces.

    Several members may follow one another; other trailing bytes are ignored.
    """
    member = zlib.decompressobj(_GZIP_WBITS)
    has_begun = False
    try:
        for part in parts:
            left = part
            while left:
                if member.eof:
                    if not left.startswith(b"\x1f"):
                        return
                    member = zlib.decompressobj(_GZIP_WBITS)
                has_begun = True
                yield from _decompress(member, left)
                left = member.unused_data
    except zlib.error as error:
        raise Transient("the server sent damaged data", source=source) from error
    if has_begun and not member.eof:
        raise Transient("the server sent less than it announced", source=source)


def _decompress(member: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    while True:
        yield member.decompress(data, _PIECE_BYTES)
        data = member.unconsumed_tail
        # Read what the decompressor still holds before the checksum at the end goes in.
        if member.eof or not data:
            return
