"""How do parent and child speak? A frame is eight bytes of length, then msgpack."""

import struct
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import EmptySource, Encrypted, SourceError, Unparsable, Unsupported
from kb.intake.canonicalize.dispatch import CanonicalizeInput
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

    def exception(self) -> SourceError:
        """The error as it was raised; Unparsable for a class that may not cross."""
        return _CROSSING.get(self.error, Unparsable)(self.detail, source=self.source)


Reply = ParseSuccess | ParseFailure

encode: Callable[[CanonicalizeInput | Reply], bytes] = msgspec.msgpack.Encoder().encode
decode_request: Callable[[bytes], CanonicalizeInput] = msgspec.msgpack.Decoder(
    CanonicalizeInput
).decode
decode_reply: Callable[[bytes | bytearray], Reply] = msgspec.msgpack.Decoder(Reply).decode


def encode_frame(payload: bytes) -> bytes:
    """The payload with its length in front."""
    return HEADER.pack(len(payload)) + payload
