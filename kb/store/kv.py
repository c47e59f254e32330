"""The seam: an ordered, transactional key-value environment with one writer at a time.

Nothing above this protocol knows which engine holds the bytes. Keys are 1 to 511 bytes; a caller's
mistake (a key of another length put, a transaction or environment used after its end) is a
ValueError, an unknown table a KeyError.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

KEY_BYTES_MAX: Final = 511

TABLES: Final[tuple[str, ...]] = (
    "docs",
    "lsids",
    "births",
    "versions",
    "source_docs",
    "facets",
    "seen",
    "holds",
    "sources",
    "ledger",
    "jobs",
    "jobs_ready",
    "jobs_running",
    "jobs_failed",
    "jobs_dedupe",
    "chunks",
    "chunk_ids",
    "source_chunks",
    "vectors",
    "entities",
    "entity_chunks",
    "embedders",
    "packs",
    "registries",
    "pulled",
    "notes",
    "note_texts",
    "pushes",
    "signals",
    "tokens",
    "orphans",
    "log",
    "meta",
)


class ReadTxn(Protocol):
    """A consistent view of one moment."""

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value, or None."""
        ...

    def scan(
        self,
        table: str,
        start: bytes = b"",
        stop: bytes | None = None,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs with start <= key < stop in key order (or backwards).

        The table must not be written through the same transaction while the iterator lives.
        """
        ...

    def count(self, table: str) -> int:
        """How many keys the table holds."""
        ...

    def last_txn(self) -> int:
        """The number of the newest change in this view: equal numbers, equal views.

        While it writes, the number that its own change will have.
        """
        ...


class WriteTxn(ReadTxn, Protocol):
    """The one writer's view; all of it is kept at the end, or none."""

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Set the value, whatever was there."""
        ...

    def delete(self, table: str, key: bytes) -> bool:
        """Remove the key; False where it was absent."""
        ...


class Environment(Protocol):
    """Opens transactions. A block left by an exception keeps nothing."""

    def read(self) -> AbstractContextManager[ReadTxn]:
        """A read transaction; any number at once, none waits for the writer."""
        ...

    def write(self) -> AbstractContextManager[WriteTxn]:
        """The write transaction; waits for the current writer to end."""
        ...

    def size_bytes(self) -> int:
        """Bytes in use."""
        ...

    def last_txn(self) -> int:
        """A number that every kept change, of any process, makes greater; it costs no look-up."""
        ...

    def reap_readers(self) -> int:
        """Free the slots of readers that died; returns how many."""
        ...

    def copy_to(self, folder: Path) -> None:
        """Write what one moment holds as an LMDB environment into the empty `folder`, durably.

        No writer waits for it. Raises StoreFull, ReadOnlyHome or StoreDamaged.
        """
        ...

    def close(self) -> None:
        """Give back what is held; a second call does nothing."""
        ...


def check_key(key: bytes) -> None:
    """Raise ValueError where a key cannot be put."""
    if not 1 <= len(key) <= KEY_BYTES_MAX:
        raise ValueError(f"a key has 1 to {KEY_BYTES_MAX} bytes, not {len(key)}")


def prefix_stop(prefix: bytes) -> bytes | None:
    """The smallest key above every key that starts with `prefix`; None where there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
