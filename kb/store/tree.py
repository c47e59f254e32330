"""Reads the B+ trees of an LMDB data file with plain reads, so that no damage can crash it.

LMDB trusts its file: a damaged page crashes the process that maps it, or returns wrong records.
This reader verifies every page that the newest root leads to: its number, its kind, the order of
its keys, and that nothing else leads to it. Unreachable pages are never read, because their old
records still have valid checksums.
"""

import itertools
import os
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from kb.store.pages import (
    BIG,
    BRANCH,
    HEAD,
    HEAD_BYTES,
    LEAF,
    MAGIC,
    NO_PAGE,
    NODE,
    SUBTREE,
    U64,
)

# struct MDB_meta: magic, version, address, size of the map, the free list, the tables, last page,
# transaction; and struct MDB_db: page size (of the free list), flags, depth, three counts of pages,
# entries, root.
_META: Final = struct.Struct("=IIQQ48s48sQQ")
_DB: Final = struct.Struct("=IHHQQQQQ")
_VERSION: Final = 1
_META_PAGE, _OVERFLOW = 0x08, 0x04
_INTEGER_KEYS: Final = 0x08
_PAGE_BYTES: Final = (4096, 8192, 16384, 32768, 65536)
_DEPTH_MAX: Final = 32
_TAKEN, _FREE = 1, 2

FREE_LIST: Final = "free list"
LIST_OF_TABLES: Final = "list of tables"
_ROOT: Final = "root"


class Table(Struct, frozen=True):
    """A table: one B+ tree of the file."""

    name: str
    entries: int
    """How many records it should have."""
    depth: int
    root: int


class Record(Struct, frozen=True):
    """One record as it is stored."""

    key: bytes
    value: bytes
    in_sound_page: bool
    """False if its page is damaged elsewhere: then only the checksum can verify the record."""
    is_table: bool = False


class _Root(Struct, frozen=True):
    page_bytes: int
    free: bytes
    main: bytes
    last_page: int
    txn_id: int


class _Node(Struct, frozen=True):
    key: bytes
    flags: int
    child: int
    """In a branch: number of the child page."""
    value: bytes
    """In a leaf: the value, or the number of its first overflow page."""
    size: int


class DataFile:
    """A snapshot of a data file. Calls `report` with (place, problem) for each defect."""

    def __init__(
        self, fd: int, report: Callable[[str, str], None], txn_id: int | None = None
    ) -> None:
        """Find the root of transaction `txn_id` in the open file `fd`, or else the newest."""
        self._fd = fd
        self._report = report
        self._root = self._newest_root(txn_id)
        self.txn_id = self._root.txn_id if self._root else 0
        pages = os.fstat(fd).st_size // self._root.page_bytes if self._root else 0
        self._state = bytearray(min(pages, self._root.last_page + 1) if self._root else 0)
        self._state[:2] = bytes((_TAKEN,)) * len(self._state[:2])

    @property
    def has_root(self) -> bool:
        """Whether the file has a readable root."""
        return self._root is not None

    def tables(self) -> list[Table]:
        """Read the free list, then the list of tables; returns the readable tables."""
        if self._root is None:
            return []
        free = self._table(FREE_LIST, self._root.free)
        if free is not None:
            self._read_free_list(free, self._root)
        listed = self._table(LIST_OF_TABLES, self._root.main)
        tables = (
            self._table(record.key.decode("ascii", "backslashreplace"), record.value)
            for record in (self.records(listed) if listed else ())
        )
        return [table for table in tables if table is not None]

    def records(self, table: Table) -> Iterator[Record]:
        """Every readable record of a table. Call it once for each table."""
        count = 0
        waiting = [(table.root, 1, b"", b"")] if table.root != NO_PAGE else []
        while waiting:
            number, level, low, high = waiting.pop()
            kind = BRANCH if level < table.depth else LEAF
            raw = self._page(table.name, number, kind)
            if raw is None:
                continue
            nodes, is_sound = _nodes(raw, kind)
            is_sound &= _are_in_order(table.name, nodes, kind, low, high)
            if not is_sound or not nodes:
                self._report(table.name, f"page {number} is damaged")
            if kind == BRANCH:
                ends = [*(node.key for node in nodes[1:]), high]
                starts = [low, *(node.key for node in nodes[1:])]
                below = [
                    (node.child, level + 1, start, end)
                    for node, start, end in zip(nodes, starts, ends, strict=True)
                ]
                waiting += reversed(below)
                continue
            for node in nodes:
                record = self._record(table.name, node, is_sound)
                if record is not None:
                    count += 1
                    yield record
        if count != table.entries:
            self._report(table.name, f"{count:,} of {table.entries:,} records can be read")

    def _record(self, place: str, node: _Node, is_sound: bool) -> Record | None:
        is_table = node.flags == SUBTREE
        if is_table != (place == LIST_OF_TABLES) or node.flags not in (0, BIG, SUBTREE):
            self._report(place, f"a record of a kind that kb never makes: {node.key.hex()[:16]}")
            return None
        if node.flags != BIG:
            return Record(node.key, node.value, is_sound, is_table)
        value = self._overflow_value(place, U64.unpack(node.value)[0], node.size)
        return None if value is None else Record(node.key, value[0], is_sound and value[1])

    def _overflow_value(self, place: str, number: int, size: int) -> tuple[bytes, bool] | None:
        """A value on overflow pages, and whether their header is intact."""
        assert self._root is not None
        least = -(-(HEAD_BYTES + size) // self._root.page_bytes)
        if number + least > len(self._state):
            self._report(place, f"page {number} lies behind the end of the file")
            return None
        raw = os.pread(self._fd, HEAD_BYTES + size, number * self._root.page_bytes)
        if len(raw) < HEAD_BYTES + size:
            self._report(place, f"page {number} cannot be read")
            return None
        page_number, _, flags, low, high = HEAD.unpack_from(raw)
        # A longer value that was overwritten in the same transaction leaves more pages than needed.
        run = low | high << 16
        is_sound = (page_number, flags) == (number, _OVERFLOW) and least <= run <= len(self._state)
        if not self._claim_pages(place, number, run if is_sound else least):
            return None
        if not is_sound:
            self._report(place, f"page {number} is damaged")
        return raw[HEAD_BYTES:], is_sound

    def _page(self, place: str, number: int, kind: int) -> bytes | None:
        assert self._root is not None
        if not self._claim_pages(place, number, 1):
            return None
        raw = os.pread(self._fd, self._root.page_bytes, number * self._root.page_bytes)
        if len(raw) == self._root.page_bytes:
            page_number, _, flags, lower, upper = HEAD.unpack_from(raw)
            if page_number == number and flags == kind and HEAD_BYTES <= lower <= upper <= len(raw):
                return raw
        self._report(place, f"page {number} cannot be read")
        return None

    def _claim_pages(self, place: str, number: int, run: int) -> bool:
        """Mark pages as in use; False if they do not exist or are in use already."""
        if number + run > len(self._state):
            self._report(place, f"page {number} lies behind the end of the file")
            return False
        if any(self._state[number : number + run]):
            is_free = _FREE in self._state[number : number + run]
            self._report(place, f"page {number} is {'free' if is_free else 'of something else'}")
            return False
        self._state[number : number + run] = bytes((_TAKEN,)) * run
        return True

    def _table(self, name: str, raw: bytes) -> Table | None:
        if len(raw) != _DB.size:
            self._report(name, "what leads to it is damaged")
            return None
        _, flags, depth, _, _, _, entries, root = _DB.unpack(raw)
        if flags != (_INTEGER_KEYS if name == FREE_LIST else 0) or depth > _DEPTH_MAX:
            self._report(name, "it is not a table as kb makes them")
            return None
        if not (root == NO_PAGE) == (entries == 0) == (depth == 0):
            self._report(name, "what leads to it is damaged")
        return Table(name, entries, depth, root)

    def _read_free_list(self, free: Table, root: _Root) -> None:
        """Mark the free pages; report entries that are damaged or list a page twice."""
        for record in self.records(free):
            txn_id = int.from_bytes(record.key, sys.byteorder)
            count = U64.unpack_from(record.value)[0] if len(record.value) >= U64.size else -1
            # An entry may have spare room after its last number.
            if not 0 <= count < len(record.value) // U64.size or not 0 < txn_id <= root.txn_id:
                self._report(FREE_LIST, f"the entry of transaction {txn_id} is damaged")
                continue
            numbers = struct.unpack_from(f"={count}Q", record.value, U64.size)
            if not self._mark_free(numbers, root.last_page):
                self._report(FREE_LIST, f"the entry of transaction {txn_id} is damaged")

    def _mark_free(self, numbers: tuple[int, ...], last_page: int) -> bool:
        above = last_page + 1
        state = self._state
        for number in numbers:
            is_there = number < len(state)
            if not 2 <= number < above or (is_there and state[number]):
                return False
            above = number
        for number in numbers:
            if number < len(state):
                state[number] = _FREE
        return True

    def _newest_root(self, txn_id: int | None) -> _Root | None:
        roots = [_root_at(self._fd, number) for number in range(2)]
        readable = [root for root in roots if root is not None]
        for number, root in enumerate(roots):
            if root is None:
                self._report(_ROOT, f"page {number} cannot be read: the last change may be missing")
        # Transactions write the two roots in turn.
        if len(readable) == 2 and readable[0].page_bytes != readable[1].page_bytes:
            self._report(_ROOT, "the two roots are not of one file")
        candidates = [root for root in readable if root.txn_id == txn_id] or readable
        return max(candidates, key=lambda root: root.txn_id, default=None)


def _root_at(fd: int, number: int) -> _Root | None:
    for page_bytes in _PAGE_BYTES:
        raw = os.pread(fd, HEAD_BYTES + _META.size, number * page_bytes)
        if len(raw) < HEAD_BYTES + _META.size:
            return None
        page_number, _, page_flags, _, _ = HEAD.unpack_from(raw)
        magic, version, _, _, free, main, last_page, txn_id = _META.unpack_from(raw, HEAD_BYTES)
        stated_bytes, flags, *_ = _DB.unpack(free)
        is_root = (page_number, page_flags, magic, version) == (number, _META_PAGE, MAGIC, _VERSION)
        if is_root and stated_bytes == page_bytes and flags == _INTEGER_KEYS:
            return _Root(page_bytes, free, main, last_page, txn_id)
    return None


def _nodes(raw: bytes, kind: int) -> tuple[list[_Node], bool]:
    """The nodes that lie inside a page, and whether the page layout is intact."""
    _, _, _, lower, upper = HEAD.unpack_from(raw)
    nodes: list[_Node] = []
    places: list[tuple[int, int]] = []
    pointers = struct.unpack_from(f"={(lower - HEAD_BYTES) // 2}H", raw, HEAD_BYTES)
    for at in pointers:
        if not upper <= at <= len(raw) - NODE.size:
            continue
        low, high, flags, key_bytes = NODE.unpack_from(raw, at)
        data = at + NODE.size + key_bytes
        size = low | high << 16
        if kind == BRANCH:
            end, child = data, size | flags << 32
        else:
            end, child = data + (U64.size if flags & BIG else size), 0
        if end <= len(raw):
            key = raw[at + NODE.size : data]
            nodes.append(_Node(key, flags if kind == LEAF else 0, child, raw[data:end], size))
            places.append((at, end + (end & 1)))
    # Nodes are packed from `upper` to the end of the page, without gaps.
    position = upper
    for at, end in sorted(places):
        if at != position:
            return nodes, False
        position = end
    is_whole = position == len(raw) and len(nodes) == len(pointers) and not lower & 1
    return nodes, is_whole and (kind == LEAF or len(nodes) > 1)


def _are_in_order(name: str, nodes: list[_Node], kind: int, low: bytes, high: bytes) -> bool:
    """Whether keys ascend from `low` to below `high`; an empty `high` means no bound."""
    # The first key of a branch is ignored: its child begins at `low`.
    keys = [node.key for node in (nodes[1:] if kind == BRANCH else nodes)]
    bounds = [low, *keys, high] if high else [low, *keys]
    if name == FREE_LIST:
        # Keys of the free list are integers in native byte order.
        bounds = [key[::-1] if sys.byteorder == "little" else key for key in bounds]
        if any(len(key) != U64.size for key in keys):
            return False
    pairs = itertools.pairwise(bounds)
    first_may_equal = next(pairs, None)
    if first_may_equal is not None and first_may_equal[0] > first_may_equal[1]:
        return False
    return all(key and before < key for before, key in pairs)
