"""How is a graph loaded without copying its weights? By naming where they lie in its own file.

onnxruntime copies the weights of a file twice as it loads it, which took half of a cold search.
Weights in a file of their own it maps, and reads what it uses. A graph can say that its weights
lie in such a file, from a place on: here that file is the graph's own.

The format is protobuf (https://protobuf.dev/programming-guides/encoding/) with the fields of
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# Weights of fewer bytes are not worth a mapping.
_BYTES_MIN: Final = 1 << 16
_MODEL_GRAPH: Final = 7
_GRAPH_INITIALIZER: Final = 5
_TENSOR_DATA_TYPE: Final = 2
_TENSOR_RAW_DATA: Final = 9
_TENSOR_EXTERNAL_DATA: Final = 13
_TENSOR_DATA_LOCATION: Final = 14
_EXTERNAL: Final = 1
_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}
_UINT8: Final = 2
_INT8: Final = 3
_VARINT_BYTES_MAX: Final = 10

_Field = tuple[int, int, int, int]


def with_mapped_weights(path: Path) -> bytes | None:
    """The graph of a file, whose large weights of one byte each are named instead of held.

    Those of other types would have to be aligned. None where there are none such, or the file is
    no graph. Whoever loads it has to be told the file's folder. Raises OSError.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        try:
            return _model(whole, path.name.encode())
        except (ValueError, IndexError):
            return None


def _model(whole: mmap.mmap, name: bytes) -> bytes | None:
    parts: list[bytes] = []
    named = 0
    for number, start, value, end in _fields(whole, 0, len(whole)):
        if number != _MODEL_GRAPH:
            parts.append(whole[start:end])
            continue
        graph: list[bytes] = []
        for inner, inner_start, tensor, inner_end in _fields(whole, value, end):
            is_large = inner == _GRAPH_INITIALIZER and inner_end - tensor >= _BYTES_MIN
            weights = _named_weights(whole, tensor, inner_end, name) if is_large else None
            named += weights is not None
            graph.append(
                whole[inner_start:inner_end]
                if weights is None
                else _field(_GRAPH_INITIALIZER, weights)
            )
        parts.append(_field(_MODEL_GRAPH, b"".join(graph)))
    return b"".join(parts) if named else None


def _named_weights(whole: mmap.mmap, start: int, end: int, name: bytes) -> bytes | None:
    """A tensor that names where its bytes lie; None for one that stays as it is."""
    parts: list[bytes] = []
    data: tuple[int, int] | None = None
    is_bytes = False
    for number, field_start, value, field_end in _fields(whole, start, end):
        if number == _TENSOR_RAW_DATA:
            data = value, field_end - value
            continue
        if number == _TENSOR_DATA_TYPE:
            is_bytes = whole[value] in (_UINT8, _INT8)
        parts.append(whole[field_start:field_end])
    if data is None or not is_bytes:
        return None
    offset, length = data
    place = (("location", name), ("offset", b"%d" % offset), ("length", b"%d" % length))
    for key, text in place:
        entry = _field(1, key.encode()) + _field(2, text)
        parts.append(_field(_TENSOR_EXTERNAL_DATA, entry))
    parts.append(_varint(_TENSOR_DATA_LOCATION << 3 | _VARINT) + _varint(_EXTERNAL))
    return b"".join(parts)


def _fields(whole: mmap.mmap, place: int, end: int) -> Iterator[_Field]:
    """Of each field its number, and where it, its value and what follows it begin.

    Raises ValueError or IndexError where there are no fields.
    """
    while place < end:
        start = place
        tag, place = _read_varint(whole, place)
        kind, value = tag & 7, place
        if kind == _VARINT:
            _, place = _read_varint(whole, place)
        elif kind == _BYTES:
            length, value = _read_varint(whole, place)
            place = value + length
        elif kind in _FIXED:
            place += _FIXED[kind]
        else:
            raise ValueError(f"no field has the kind {kind}")
        if place > end:
            raise ValueError("a field is longer than what it lies in")
        yield tag >> 3, start, value, place


def _read_varint(whole: mmap.mmap, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(_VARINT_BYTES_MAX):
        byte = whole[place + shift]
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, place + shift + 1
    raise ValueError("a number is too long")


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value
