"""Content in the store itself, for homes that have no folder which all their machines see."""

from collections.abc import Iterator, Sequence
from typing import Final

from kb.errors import StoreDamaged
from kb.model.ids import sha256_hex
from kb.store.content.files import RemovedContent
from kb.store.content.layout import HomePaths
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn, prefix_stop
from kb.store.records import CONTENT, ContentPart
from kb.store.store import Store

_PART_BYTES: Final = 256 << 10
_NUMBER_BYTES: Final = 4
_RANGES: Final = 64


class StoredContent:
    """Bytes as records, in parts, written in the transaction of the doc that names them."""

    def __init__(self, store: Store, paths: HomePaths) -> None:
        self._store = store
        self._paths = paths

    @property
    def paths(self) -> HomePaths:
        """The folders of the home on this machine; no content lies there."""
        return self._paths

    @property
    def machine(self) -> str:
        """This machine's name in the records of the home."""
        return self._store.machine

    @property
    def is_shared(self) -> bool:
        """Whether it is of a home in a database."""
        return self._store.is_shared

    def stage(self, relative: str, data: bytes) -> None:
        """Nothing: the transaction itself writes the bytes."""

    def keep(self, txn: WriteTxn, relative: str, data: bytes) -> bool:
        """Write the bytes, unless they are there. Raises StoreDamaged for others of that name."""
        first = CONTENT.get(txn, head_key(relative))
        if first is None:
            _write(txn, relative, data)
        elif (first.path, first.size_bytes) != (relative, len(data)):
            raise StoreDamaged("another file has this name", place=relative)
        return True

    def replace(self, relative: str, data: bytes) -> None:
        """Write the bytes over damaged ones."""
        with self._store.write() as txn:
            self.remove(txn, relative)
            _write(txn, relative, data)

    def expect(self, txn: ReadTxn, paths: Sequence[str]) -> None:
        """Read these paths, each of few bytes, for transactions that see the same commit."""
        heads = [lsid_key(path) for path in paths]
        txn.scan_many("content", [(head, prefix_stop(head)) for head in heads], 1)

    def read(self, relative: str, sha256: str) -> bytes:
        """The bytes of a path. Raises StoreDamaged if they are missing or fail their checksum."""
        with self._store.read() as txn:
            parts = parts_at(txn, relative)
        data = b"".join(part.data for part in parts) if parts else None
        return whole(relative, data, sha256)

    def all_paths(self, txn: ReadTxn) -> Iterator[str]:
        """The paths of all content."""
        return (head.path for head in heads(txn))

    def size_of(self, txn: ReadTxn, relative: str) -> int:
        """How many bytes a path has; 0 if there are none."""
        first = CONTENT.get(txn, head_key(relative))
        return first.size_bytes if first else 0

    def remove(self, txn: WriteTxn, relative: str) -> RemovedContent | None:
        """Remove all parts of a path; returns what was removed, None if it was not there."""
        size_bytes = self.size_of(txn, relative)
        keys = [key for key, _ in txn.scan("content", *_range(relative))]
        for key in keys:
            txn.delete("content", key)
        return RemovedContent(size_bytes=size_bytes) if keys else None

    def discard(self, objects: Sequence[str]) -> None:
        """Nothing: the transaction has removed the bytes."""


def heads(txn: ReadTxn) -> Iterator[ContentPart]:
    """The first part of every content. Reads a few dozen in a round trip."""
    # Keys are hashes. Each range goes from one path to the next, past the parts in between.
    step = 256 // _RANGES
    ranges: list[tuple[bytes, bytes | None]] = [
        (bytes([first]), bytes([first + step]) if first + step < 256 else None)
        for first in range(0, 256, step)
    ]
    while ranges:
        pages = txn.scan_many("content", ranges, 1)
        rest: list[tuple[bytes, bytes | None]] = []
        for (_, end), page in zip(ranges, pages, strict=True):
            for key, stored in page:
                yield CONTENT.decode(key, stored)
                rest.append((_key_after(key), end))
        ranges = rest


def parts_at(txn: ReadTxn, relative: str) -> list[ContentPart]:
    """The records of a path, in their order."""
    return [part for _, part in CONTENT.scan(txn, lsid_key(relative))]


def whole(relative: str, data: bytes | None, sha256: str) -> bytes:
    """The bytes, if they are what was written. Raises StoreDamaged."""
    if data is None:
        raise StoreDamaged("its content is missing", place=relative)
    if sha256_hex(data) != sha256:
        raise StoreDamaged("the content is not what was written", place=relative)
    return data


def _write(txn: WriteTxn, relative: str, data: bytes) -> None:
    for key, part in parts_of(relative, data):
        CONTENT.put(txn, key, part)


def parts_of(relative: str, data: bytes) -> Iterator[tuple[bytes, ContentPart]]:
    """The records of the bytes of a path."""
    for number, start in enumerate(range(0, len(data) or 1, _PART_BYTES)):
        part = ContentPart(
            data=data[start : start + _PART_BYTES],
            path="" if number else relative,
            size_bytes=0 if number else len(data),
        )
        yield _part_key(relative, number), part


def head_key(relative: str) -> bytes:
    """The key of the first part of a path."""
    return _part_key(relative, 0)


def _part_key(relative: str, number: int) -> bytes:
    return lsid_key(relative) + number.to_bytes(_NUMBER_BYTES, "big")


def _key_after(key: bytes) -> bytes:
    """The first key after all parts of the path that has this one."""
    return key[:-_NUMBER_BYTES] + b"\xff" * _NUMBER_BYTES + b"\0"


def _range(relative: str) -> tuple[bytes, bytes]:
    return head_key(relative), _part_key(relative, (1 << 32) - 1)
