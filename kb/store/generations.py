"""How many sources began at each place: counts that never go back, so that no id is given twice.

A source keeps its id wherever it moves, and its old place is free for another source. The birth
number tells the two apart. Each place has a count of its own: equal files have equal ids in two
homes, and no id tells how much others have added.
"""

from typing import Final

from kb.errors import StoreDamaged
from kb.model.ids import Lsid, split_generation
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import (
    FORMAT,
    FORMAT_WITHOUT_GENERATIONS,
    get_word,
    last_number,
    raise_number,
    set_word,
)
from kb.store.records import BIRTHS, DOCS, StoredValue

_FLOOR: Final = "birth"
# More births than one place has in all its time.
_SKIP: Final = 1 << 20


def next_generation(txn: WriteTxn, place: Lsid) -> int:
    """Count a birth at a place and return its number; the first is 1."""
    start_counting(txn)
    number = max(last_generation(txn, place), last_number(txn, _FLOOR)) + 1
    BIRTHS.put(txn, lsid_key(place), StoredValue(number=number))
    return number


def last_generation(txn: ReadTxn, place: Lsid) -> int:
    """How many sources began at a place. Raises StoreDamaged."""
    return (BIRTHS.get(txn, lsid_key(place)) or StoredValue()).number


def are_counted(txn: ReadTxn) -> bool:
    """Whether the store counts births: one of an earlier program does not yet."""
    return get_word(txn, "format") != FORMAT_WITHOUT_GENERATIONS


def start_counting(txn: WriteTxn) -> None:
    """Count births from now on, before docs come or go in a store that did not."""
    if not are_counted(txn):
        raise_to_docs(txn)
        set_word(txn, "format", FORMAT)


def raise_to_docs(txn: WriteTxn) -> None:
    """Count at least the births that the docs tell of.

    Where a doc cannot be read, what it would tell is taken for lost.
    """
    generations: set[tuple[Lsid, int]] = set()
    has_damage = False
    for key, _ in txn.scan("docs"):
        try:
            doc = DOCS.get(txn, key)
        except StoreDamaged:
            has_damage = True
            continue
        if doc is not None:
            generations.add(split_generation(doc.lsid))
    for place, number in sorted(generations):
        if last_generation(txn, place) < number:
            BIRTHS.put(txn, lsid_key(place), StoredValue(number=number))
    if has_damage:
        skip_lost_numbers(txn)


def recount(txn: WriteTxn, *, lost: bool) -> None:
    """Count the births that the docs tell of; where counts were `lost`, skip what they had."""
    if lost:
        skip_lost_numbers(txn)
    raise_to_docs(txn)


def skip_lost_numbers(txn: WriteTxn) -> None:
    """Number later births above all earlier ones, wherever they are.

    For a store that lost some counts: nothing tells which places they were of.
    """
    highest = max((count.number for _, count in BIRTHS.scan(txn)), default=0)
    try:
        floor = last_number(txn, _FLOOR)
    except StoreDamaged:
        # How often it was raised is lost, too.
        floor = _SKIP << 10
    raise_number(txn, _FLOOR, max(highest, floor) + _SKIP)
