"""Files of a home in a database: what in other homes lies in their folder beside the store.

Settings, entries, packs and the notebook. Each machine has copies of them in its local folder; here
is what they are copies of.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kb.errors import StoreDamaged
from kb.model.ids import sha256_hex
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn, prefix_stop
from kb.store.records import HOME_FILE_PARTS, HOME_FILES, ContentPart, HomeFile

PART_BYTES: Final = 256 << 10
"""A file is stored in parts of so many bytes."""


def get(txn: ReadTxn, path: str) -> HomeFile | None:
    """The file of a path, without its bytes; None if there is none."""
    return HOME_FILES.get(txn, lsid_key(path))


def listed(txn: ReadTxn) -> Iterator[HomeFile]:
    """Every file, without its bytes."""
    return (file for _, file in HOME_FILES.scan(txn))


def pieces(txn: ReadTxn, path: str) -> Iterator[bytes]:
    """The bytes of a file in pieces; none if there is no such file. They may not be whole."""
    return (part.data for _, part in HOME_FILE_PARTS.scan(txn, lsid_key(path)))


def read(txn: ReadTxn, file: HomeFile) -> bytes:
    """The bytes of a file. Raises StoreDamaged if they are not what was written."""
    data = b"".join(pieces(txn, file.path))
    if sha256_hex(data) != file.sha256:
        raise StoreDamaged("the content is not what was written", place=file.path)
    return data


def put(txn: WriteTxn, file: HomeFile, data: bytes) -> None:
    """Store a file, whatever was there."""
    present = get(txn, file.path)
    if present is not None and present.size_bytes > PART_BYTES:
        remove(txn, file.path)
    HOME_FILES.put(txn, lsid_key(file.path), file)
    for key, part in parts(file.path, [data]):
        HOME_FILE_PARTS.put(txn, key, part)


def remove(txn: WriteTxn, path: str) -> None:
    """Remove a file; nothing if there is none."""
    if not HOME_FILES.delete(txn, lsid_key(path)):
        return
    start = lsid_key(path)
    for key in [key for key, _ in txn.scan(HOME_FILE_PARTS.name, start, prefix_stop(start))]:
        txn.delete(HOME_FILE_PARTS.name, key)


def parts(path: str, data: Iterable[bytes]) -> Iterator[tuple[bytes, ContentPart]]:
    """The records of a file's bytes, which come in pieces of any length."""
    for number, piece in enumerate(_regular(data)):
        part = ContentPart(data=piece, path="" if number else path)
        yield lsid_key(path) + number.to_bytes(4, "big"), part


def _regular(data: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one length."""
    waiting = b""
    for piece in data:
        waiting += piece
        while len(waiting) >= PART_BYTES:
            yield waiting[:PART_BYTES]
            waiting = waiting[PART_BYTES:]
    if waiting:
        yield waiting
