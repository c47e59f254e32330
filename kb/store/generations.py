"""Generation numbers: how many sources began at each place, so that no source id is reused.

A source keeps its id when it moves, and its old place becomes free for another source. The
generation number tells the two apart. Each place has its own count, so that equal files get equal
ids in two homes, and an id does not reveal how much others have added. On disk a generation is
called a birth.
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
# More generations than one place can have.
_SKIP: Final = 1 << 20


def next_generation(txn: WriteTxn, place: Lsid) -> int:
    """Count a new source at a place and return its generation; the first is 1."""
    start_counting(txn)
    number = max(last_generation(txn, place), last_number(txn, _FLOOR)) + 1
    BIRTHS.put(txn, lsid_key(place), StoredValue(number=number))
    return number


def last_generation(txn: ReadTxn, place: Lsid) -> int:
    """The newest generation at a place; 0 before the first. Raises StoreDamaged."""
    return (BIRTHS.get(txn, lsid_key(place)) or StoredValue()).number


def are_counted(txn: ReadTxn) -> bool:
    """Whether the store counts generations; a store of format 1 does not."""
    return get_word(txn, "format") != FORMAT_WITHOUT_GENERATIONS


def start_counting(txn: WriteTxn) -> None:
    """Upgrade a store of format 1, before docs are added or removed; else do nothing."""
    if not are_counted(txn):
        raise_to_docs(txn)
        set_word(txn, "format", FORMAT)


def raise_to_docs(txn: WriteTxn) -> None:
    """Raise the counts to the generations that the docs have.

    If a doc is damaged, its generation is unknown, and some numbers are skipped.
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
    """Raise the counts to those of the docs; if counts were `lost`, skip some numbers first."""
    if lost:
        skip_lost_numbers(txn)
    raise_to_docs(txn)


def skip_lost_numbers(txn: WriteTxn) -> None:
    """Let all later generations, at any place, start above every earlier one.

    For a store that lost some counts: it is unknown which places they belonged to.
    """
    highest = max((count.number for _, count in BIRTHS.scan(txn)), default=0)
    try:
        floor = last_number(txn, _FLOOR)
    except StoreDamaged:
        # It is unknown how often the floor was raised: skip over many raises.
        floor = _SKIP << 10
    raise_number(txn, _FLOOR, max(highest, floor) + _SKIP)
