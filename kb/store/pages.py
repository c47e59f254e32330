"""Checks that a data file is long enough for its tree, before LMDB maps it.

Reading a mapped page past the end of the file is a bus error, not an exception. A short file alone
proves nothing: LMDB counts pages that were allocated and freed within one transaction but does not
write them. So for a short file the pages of its tree are followed with plain reads.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

# struct MDB_page, MDB_meta, MDB_db and MDB_node of LMDB 0.9, 64-bit, as lmdb.h and mdb.c lay
# them out. The two metas fill the first two pages.
HEAD: Final = struct.Struct("=QHHHH")
_META: Final = struct.Struct("=IIQQ I36xQ 40xQ QQ")
NODE: Final = struct.Struct("=HHHH")
U64: Final = struct.Struct("=Q")
HEAD_BYTES: Final = 16
MAGIC: Final = 0xBEEFC0DE
NO_PAGE: Final = (1 << 64) - 1
BRANCH, LEAF = 0x01, 0x02
BIG, SUBTREE = 0x01, 0x02
_ROOT_IN_SUBTREE: Final = 40
# A short file is rare, for `pad` follows every commit; a bound keeps a huge one openable.
_PAGES_WALKED_MAX: Final = 1 << 16


class _Meta(Struct, frozen=True):
    page_bytes: int
    roots: tuple[int, int]
    last_page: int
    txn_id: int


def tree_is_truncated(data_file: Path, txn_id: int) -> bool:
    """Whether the tree of transaction `txn_id` (0: the newest) names a page past the file's end.

    The caller holds a read transaction with that id, so that its pages are not reused.
    """
    fd = os.open(data_file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        meta = _meta(fd, txn_id)
        if meta is None:
            return False
        pages = os.fstat(fd).st_size // meta.page_bytes
        return pages <= meta.last_page and _leads_past_end(fd, meta, pages)
    finally:
        os.close(fd)


def pad(data_file: Path, size_bytes: int) -> None:
    """Extend the file to at least `size_bytes`, if the system supports it; never shortens it."""
    if data_file.stat().st_size >= size_bytes or not hasattr(os, "posix_fallocate"):
        return
    fd = os.open(data_file, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_fallocate(fd, 0, size_bytes)
    finally:
        os.close(fd)


def _meta(fd: int, txn_id: int) -> _Meta | None:
    metas: list[_Meta] = []
    offset = 0
    for _ in range(2):
        raw = os.pread(fd, HEAD_BYTES + _META.size, offset)
        if len(raw) < HEAD_BYTES + _META.size:
            break
        magic, _, _, _, page_bytes, free, main, last, txn = _META.unpack_from(raw, HEAD_BYTES)
        if magic != MAGIC or page_bytes < HEAD_BYTES + _META.size:
            break
        metas.append(_Meta(page_bytes, (free, main), last, txn))
        offset = page_bytes
    candidates = [meta for meta in metas if meta.txn_id == txn_id] or metas
    return max(candidates, key=lambda meta: meta.txn_id, default=None)


def _leads_past_end(fd: int, meta: _Meta, pages: int) -> bool:
    waiting = [root for root in meta.roots if root != NO_PAGE]
    for _ in range(_PAGES_WALKED_MAX):
        if not waiting:
            return False
        number = waiting.pop()
        if number >= pages:
            return True
        raw = os.pread(fd, meta.page_bytes, number * meta.page_bytes)
        for page, is_tree in _child_pages(raw):
            if page >= pages:
                return True
            if is_tree:
                waiting.append(page)
    return False


def _child_pages(raw: bytes) -> Iterator[tuple[int, bool]]:
    """Numbers of the pages that a page refers to, each with whether it is a tree page."""
    _, _, flags, lower, _ = HEAD.unpack_from(raw)
    if not flags & (BRANCH | LEAF) or lower > len(raw):
        return
    for (at,) in struct.iter_unpack("=H", raw[HEAD_BYTES : lower - lower % 2]):
        if at + NODE.size > len(raw):
            return
        low, high, node_flags, key_bytes = NODE.unpack_from(raw, at)
        data = at + NODE.size + key_bytes
        if flags & BRANCH:
            yield low | high << 16 | node_flags << 32, True
        elif node_flags & SUBTREE and data + _ROOT_IN_SUBTREE + 8 <= len(raw):
            (root,) = U64.unpack_from(raw, data + _ROOT_IN_SUBTREE)
            if root != NO_PAGE:
                yield root, True
        elif node_flags & BIG and data + 8 <= len(raw):
            yield U64.unpack_from(raw, data)[0], False
