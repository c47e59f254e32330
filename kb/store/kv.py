"""The storage protocol: an ordered, transactional key-value environment with a single writer.

Code above this protocol does not know the storage engine. Keys have 1 to 511 bytes. Misuse (a key
of another length, a transaction or environment used after its end) raises ValueError, an unknown
table KeyError.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Literal, Protocol

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
    "site_pages",
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
    "content",
    "home_files",
    "home_file_parts",
    "questions",
    "orphans",
    "followers",
    "workers",
    "log",
    "meta",
)

ToldTable = Literal["jobs_ready", "log"]
"""A table of whose new rows a store that machines share tells."""


class ReadTxn(Protocol):
    """A consistent snapshot of the tables."""

    def get(self, table: str, key: bytes) -> bytes | None:
        """Return the value, or None."""
        ...

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, in their order; one round trip where the store is a server."""
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

    def expect(self, table: str, keys: Iterable[bytes]) -> None:
        """Say which keys are got next, so that a server is asked for all of them at once.

        What is expected in several tables comes together, with the first read that needs a round
        trip. Elsewhere it does nothing, not even look at `keys`, so pass a generator.
        """
        ...

    def expect_scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> None:
        """Say that `scan` reads this range next, from its start; as `expect`."""
        ...

    def scan_many(
        self, table: str, ranges: Sequence[tuple[bytes, bytes | None]], limit: int
    ) -> list[list[tuple[bytes, bytes]]]:
        """The first `limit` pairs of each range (start, stop), in key order, in one round trip."""
        ...

    def count(self, table: str) -> int:
        """How many keys the table holds."""
        ...

    def last_txn(self) -> int:
        """The number of the newest commit in this view: equal numbers mean equal views.

        In a write transaction, the number that its own commit will have.
        """
        ...


class WriteTxn(ReadTxn, Protocol):
    """The single writer's transaction: committed as a whole, or not at all."""

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Set the value, whatever was there."""
        ...

    def delete(self, table: str, key: bytes) -> bool:
        """Remove the key; False where it was absent."""
        ...


class Environment(Protocol):
    """Opens transactions. An exception in the block rolls back a write transaction."""

    def read(self) -> AbstractContextManager[ReadTxn]:
        """A read transaction; any number may be open, and none waits for the writer."""
        ...

    def write(self) -> AbstractContextManager[WriteTxn]:
        """The write transaction; waits for the current writer to end."""
        ...

    def size_bytes(self) -> int:
        """Bytes in use."""
        ...

    def last_txn(self) -> int:
        """The number of the newest commit of any process; it only grows. Costs no look-up."""
        ...

    def seen_txn(self) -> int:
        """The number of the newest commit that this process has seen or made; costs no look-up."""
        ...

    def tell_of(self, table: ToldTable, wake: Callable[[], None]) -> Callable[[], None] | None:
        """Call `wake` whenever any process has put a row into a table, until the result is called.

        None where the store cannot tell, so that one has to look.
        """
        ...

    def reap_readers(self) -> int:
        """Free the reader slots of dead processes; returns how many."""
        ...

    def copy_to(self, folder: Path) -> None:
        """Write a snapshot durably into the empty `folder`, as an LMDB environment.

        Does not block writers. Raises StoreFull, ReadOnlyHome or StoreDamaged.
        """
        ...

    def close(self) -> None:
        """Release all resources; a second call does nothing."""
        ...


def check_key(key: bytes) -> None:
    """Raise ValueError if a key has an invalid length."""
    if not 1 <= len(key) <= KEY_BYTES_MAX:
        raise ValueError(f"a key has 1 to {KEY_BYTES_MAX} bytes, not {len(key)}")


def prefix_stop(prefix: bytes) -> bytes | None:
    """The smallest key above all keys that start with `prefix`; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
