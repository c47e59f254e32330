"""The store's metadata: counters that only grow, and a few named texts."""

from typing import Final

from kb.errors import StoreDamaged
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import META, StoredValue

# The version of the table layout. Format 1 had no generation counts.
FORMAT: Final = "2"
FORMAT_WITHOUT_GENERATIONS: Final = "1"
FORMAT_UNFINISHED: Final = "unfinished"
"""In the place of a format: the home is still being copied there."""
# The chunker whose chunks the home has or is making.
CHUNKER: Final = "chunker"
OCR: Final = "ocr"
# The parsers that the docs are read with, or will be.
PARSERS: Final = "parsers"
# The machine that made a home in a database: places of its files name no machine.
MACHINE: Final = "machine"


def next_number(txn: WriteTxn, counter: str) -> int:
    """Increment a counter and return it; the first number is 1. No number is reused."""
    return next_numbers(txn, counter, 1)


def next_numbers(txn: WriteTxn, counter: str, count: int) -> int:
    """Take `count` numbers at once and return the first of them."""
    key = b"counter:" + counter.encode()
    last = META.get(txn, key) or StoredValue()
    META.put(txn, key, StoredValue(number=last.number + count))
    return last.number + 1


def last_number(txn: ReadTxn, counter: str) -> int:
    """The last number of a counter; 0 before the first."""
    return (META.get(txn, b"counter:" + counter.encode()) or StoredValue()).number


def expect_number(txn: ReadTxn, counter: str) -> None:
    """Say that the last number of a counter is read next."""
    txn.expect("meta", (b"counter:" + name.encode() for name in (counter,)))


def expect_words(txn: ReadTxn, *names: str) -> None:
    """Say that these texts are read next."""
    txn.expect("meta", (b"word:" + name.encode() for name in names))


def compactions(txn: ReadTxn) -> int:
    """How many compactions have finished: a clock that nobody can set."""
    return last_number(txn, "compaction")


def count_compaction(txn: WriteTxn) -> None:
    """Count a finished compaction."""
    next_number(txn, "compaction")


def raise_number(txn: WriteTxn, counter: str, at_least: int) -> None:
    """Raise a counter to `at_least`; never lowers it, and replaces a damaged one."""
    key = b"counter:" + counter.encode()
    try:
        current = META.get(txn, key) or StoredValue()
    except StoreDamaged:
        current = StoredValue()
    META.put(txn, key, StoredValue(number=max(current.number, at_least)))


def word_key(name: str) -> bytes:
    """The key of the text that is stored under `name`."""
    return b"word:" + name.encode()


def get_word(txn: ReadTxn, name: str) -> str:
    """The text stored under `name`; empty if there is none."""
    return (META.get(txn, word_key(name)) or StoredValue()).text


def set_word(txn: WriteTxn, name: str, text: str) -> None:
    """Store a text under `name`."""
    META.put(txn, word_key(name), StoredValue(text=text))
