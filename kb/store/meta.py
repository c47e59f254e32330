"""What the store keeps about itself: counters that never go back, and a few words."""

from typing import Final

from kb.errors import StoreDamaged
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import META, StoredValue

# How the tables are laid out. The one before it had no counts of births.
FORMAT: Final = "2"
FORMAT_WITHOUT_GENERATIONS: Final = "1"
# Which chunker's passages the home holds or is working towards.
CHUNKER: Final = "chunker"


def next_number(txn: WriteTxn, counter: str) -> int:
    """Count one up and return it; the first is 1. Never gives the same number twice."""
    return next_numbers(txn, counter, 1)


def next_numbers(txn: WriteTxn, counter: str, count: int) -> int:
    """Take `count` numbers at once and return the first of them."""
    key = b"counter:" + counter.encode()
    last = META.get(txn, key) or StoredValue()
    META.put(txn, key, StoredValue(number=last.number + count))
    return last.number + 1


def last_number(txn: ReadTxn, counter: str) -> int:
    """The number given out last; 0 before the first."""
    return (META.get(txn, b"counter:" + counter.encode()) or StoredValue()).number


def compactions(txn: ReadTxn) -> int:
    """How many compactions have come to their end: the clock that nobody can set."""
    return last_number(txn, "compaction")


def count_compaction(txn: WriteTxn) -> None:
    """Say that a compaction has come to its end."""
    next_number(txn, "compaction")


def raise_number(txn: WriteTxn, counter: str, at_least: int) -> None:
    """Let a counter go on above `at_least`; never lowers it, and replaces one that is damaged."""
    key = b"counter:" + counter.encode()
    try:
        current = META.get(txn, key) or StoredValue()
    except StoreDamaged:
        current = StoredValue()
    META.put(txn, key, StoredValue(number=max(current.number, at_least)))


def get_word(txn: ReadTxn, name: str) -> str:
    """A word kept under `name`; empty where there is none."""
    return (META.get(txn, b"word:" + name.encode()) or StoredValue()).text


def set_word(txn: WriteTxn, name: str, text: str) -> None:
    """Keep a word under `name`."""
    META.put(txn, b"word:" + name.encode(), StoredValue(text=text))
