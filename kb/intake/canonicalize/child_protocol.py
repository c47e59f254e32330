"""How do parent and child speak? A frame is eight bytes of length, then msgpack."""

import struct
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import EmptySource, Encrypted, Scanned, SourceError, Unparsable, Unsupported
from kb.intake.canonicalize.dispatch import CanonicalizeInput, PictureInput
from kb.model.decoding import msgpack_decoder
from kb.model.text import Canonical

HEADER: Final = struct.Struct(">Q")
REPLY_BYTES_MAX: Final = 512 * 1024 * 1024

_CROSSING: Final[dict[str, type[SourceError]]] = {
    cls.__name__: cls for cls in (Unsupported, EmptySource, Encrypted, Unparsable)
}


class ParseSuccess(Struct, frozen=True, kw_only=True, tag="parsed"):
    """It was read."""

    canonical: Canonical
    rss_bytes: int
    """The most memory the child has held so far."""


class ParseFailure(Struct, frozen=True, kw_only=True, tag="refused"):
    """It was not; the class of the error, and what the error says."""

    error: str
    detail: str
    source: str
    rss_bytes: int
    pages: int = 0
    """Of a file whose pages are pictures: how many it has."""

    def exception(self) -> SourceError:
        """The error as it was raised; Unparsable for a class that may not cross."""
        if self.error == Scanned.__name__:
            return Scanned(self.detail, source=self.source, pages=self.pages)
        return _CROSSING.get(self.error, Unparsable)(self.detail, source=self.source)


class PageDrawn(Struct, frozen=True, kw_only=True, tag="drawn"):
    """A page was drawn."""

    picture: bytes
    rss_bytes: int


Reply = ParseSuccess | ParseFailure | PageDrawn
Question = CanonicalizeInput | PictureInput

encode: Callable[[Question | Reply], bytes] = msgspec.msgpack.Encoder().encode
decode_request: Callable[[bytes], Question] = msgpack_decoder(Question).decode
decode_reply: Callable[[bytes | bytearray], Reply] = msgpack_decoder(Reply).decode


def encode_frame(payload: bytes) -> bytes:
    """The payload with its length in front."""
    return HEADER.pack(len(payload)) + payload
