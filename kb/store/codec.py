"""The encoding of a record: version byte, CRC-32 of table, key and body, then the body.

LMDB pages have no checksum, so each record has one. It covers table and key, because a lost or
misplaced page returns the bytes of another record.
"""

import functools
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Generic, TypeVar

import msgspec

from kb.errors import StoreDamaged
from kb.model.decoding import msgpack_decoder
from kb.store.kv import ReadTxn, WriteTxn, prefix_stop

T = TypeVar("T")

RECORD_VERSION: Final = 1
_HEAD: Final = struct.Struct(">BI")
_HEAD_BYTES: Final = _HEAD.size
_pack_head = _HEAD.pack


def seal(table: str, key: bytes, body: bytes) -> bytes:
    """Encode `body` as it is stored under `key`."""
    return _pack_head(RECORD_VERSION, _crc(table, key, body)) + body


def unseal(table: str, key: bytes, stored: bytes) -> bytes:
    """Decode the body. Raises StoreDamaged if it is not what was written under this key."""
    body = stored[_HEAD_BYTES:]
    # Written out, for it is done for every record that is read.
    checksum = zlib.crc32(body, zlib.crc32(key, _crc_of_table(table)))
    if stored[:_HEAD_BYTES] == _pack_head(RECORD_VERSION, checksum):
        return body
    if len(stored) < _HEAD_BYTES:
        detail = "the record is cut short"
    elif stored[0] != RECORD_VERSION:
        detail = f"record version {stored[0]} is not one this program reads"
    else:
        detail = "the checksum does not match"
    raise StoreDamaged(detail, place=f"{table}/{key.hex()[:16]}")


def _crc(table: str, key: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(key, _crc_of_table(table)))


@functools.cache
def _crc_of_table(table: str) -> int:
    return zlib.crc32(table.encode())


def u64(number: int) -> bytes:
    """A number as eight big-endian bytes, which sort like the numbers."""
    return number.to_bytes(8, "big")


def from_u64(raw: bytes) -> int:
    """The number that `u64` encoded."""
    return int.from_bytes(raw, "big")


class RecordTable(Generic[T]):
    """A table of one record type."""

    def __init__(self, table: str, record_type: type[T]) -> None:
        self.name = table
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[T] = msgpack_decoder(record_type)

    def get(self, txn: ReadTxn, key: bytes) -> T | None:
        """The record, or None. Raises StoreDamaged."""
        stored = txn.get(self.name, key)
        return None if stored is None else self.decode(key, stored)

    def peek(self, txn: ReadTxn, key: bytes) -> T | None:
        """As `get`, but None for a damaged record: whoever reads it next is told."""
        try:
            return self.get(txn, key)
        except StoreDamaged:
            return None

    def put(self, txn: WriteTxn, key: bytes, record: T) -> None:
        """Write the record, whatever was there."""
        txn.put(self.name, key, self.encode(key, record))

    def encode(self, key: bytes, record: T) -> bytes:
        """The value that is stored under `key`."""
        return seal(self.name, key, self._encoder.encode(record))

    def delete(self, txn: WriteTxn, key: bytes) -> bool:
        """Remove the record; False if it was absent."""
        return txn.delete(self.name, key)

    def scan(
        self, txn: ReadTxn, prefix: bytes = b"", *, start: bytes = b"", reverse: bool = False
    ) -> Iterator[tuple[bytes, T]]:
        """Records whose key starts with `prefix` (and is at least `start`), in key order."""
        low = max(prefix, start)
        stop = prefix_stop(prefix) if prefix else None
        for key, stored in txn.scan(self.name, low, stop, reverse=reverse):
            yield key, self.decode(key, stored)

    def scan_sound(self, txn: ReadTxn, prefix: bytes) -> Iterator[T]:
        """The records that `scan` finds, without damaged ones: whoever reads them next is told."""
        for key, stored in txn.scan(self.name, prefix, prefix_stop(prefix)):
            with suppress(StoreDamaged):
                yield self.decode(key, stored)

    def expect_scan(self, txn: ReadTxn, prefix: bytes = b"") -> None:
        """Say that records whose key starts with `prefix` are scanned next."""
        txn.expect_scan(self.name, prefix, prefix_stop(prefix) if prefix else None)

    def decode(self, key: bytes, stored: bytes) -> T:
        """Decode the value stored under `key`. Raises StoreDamaged."""
        try:
            return self._decoder.decode(unseal(self.name, key, stored))
        except msgspec.DecodeError as error:
            place = f"{self.name}/{key.hex()[:16]}"
            raise StoreDamaged(f"not the expected record ({error})", place=place) from error
