"""Decoders of record types, each made by one thread at a time.

msgspec learns a record type at its first use. If two threads let it do so at once, one may read
what the other has half made, and the process ends by a segmentation fault. So nothing else in kb
decodes by a type.
"""

import functools
import threading
from typing import Any, Final, TypeVar, overload

import msgspec

_T = TypeVar("_T")
_LEARNING: Final = threading.Lock()


@overload
def decode_json(data: bytes | bytearray | memoryview | str, kind: type[_T]) -> _T: ...
@overload
def decode_json(data: bytes | bytearray | memoryview | str, kind: Any) -> Any: ...
def decode_json(data: bytes | bytearray | memoryview | str, kind: Any) -> Any:
    """The JSON document in `data` as a `kind`. Raises msgspec.DecodeError."""
    return json_decoder(kind).decode(data)


@overload
def convert(
    value: object, kind: type[_T], *, strict: bool = True, from_attributes: bool = False
) -> _T: ...
@overload
def convert(
    value: object, kind: Any, *, strict: bool = True, from_attributes: bool = False
) -> Any: ...
def convert(value: object, kind: Any, *, strict: bool = True, from_attributes: bool = False) -> Any:
    """A value made of plain ones as a `kind`. Raises msgspec.ValidationError."""
    json_decoder(kind)
    return msgspec.convert(value, kind, strict=strict, from_attributes=from_attributes)


def msgpack_decoder(kind: Any) -> "msgspec.msgpack.Decoder[Any]":
    """A new decoder of MessagePack that is a `kind`."""
    with _LEARNING:
        return msgspec.msgpack.Decoder(kind)


@functools.cache
def json_decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    """The decoder of JSON documents that are a `kind`."""
    with _LEARNING:
        return msgspec.json.Decoder(kind)
