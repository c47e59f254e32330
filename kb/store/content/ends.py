"""Which bytes stand for a file that is never read whole? Its first and its last ones.

What a film or an archive says of itself stands there, or, in a film whose index is long, in two
boxes that are found by hopping from box to box. Two files of one length with equal ends count as
the same; a change between the ends is not seen, and nothing that kb knows of them would differ.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import Final

HEAD_BYTES: Final = 256 << 10
TAIL_BYTES: Final = 128 << 10
WHOLE_BYTES_MAX: Final = HEAD_BYTES + TAIL_BYTES
"""A file that is not longer is read whole."""
_FILM: Final = b"ftyp"
_WANTED: Final = (b"mvhd", b"udta", b"meta")
_BOXES_MAX: Final = 256
_BOXES_BYTES_MAX: Final = 2 * TAIL_BYTES
_MARK: Final = "ends:"


def ends_of(fd: int, size_bytes: int) -> bytes:
    """The first and the last bytes of an open file of this length. Raises OSError.

    Between them stand the boxes of a film that say what it is, if they lie between the ends.
    """
    head = _read_at(fd, 0, min(HEAD_BYTES, size_bytes))
    tail_at = max(len(head), size_bytes - TAIL_BYTES)
    boxes = b""
    if head[4:8] == _FILM and tail_at > len(head):
        boxes = _film_boxes(fd, size_bytes, len(head), tail_at)
    return head + boxes + _read_at(fd, tail_at, TAIL_BYTES)


def _film_boxes(fd: int, size_bytes: int, low: int, high: int) -> bytes:
    """The movie's head and its user data (ISO/IEC 14496-12), where they lie between two offsets."""
    found = b""
    for name, start, end in _boxes(fd, 0, size_bytes):
        for inner, at, stop in _boxes(fd, start, end) if name == b"moov" else ():
            if inner in _WANTED and low < min(stop, at + TAIL_BYTES) and at < high:
                # From its length and its name on.
                found += _read_at(fd, at - 8, min(stop - at + 8, TAIL_BYTES))
                if len(found) > _BOXES_BYTES_MAX:
                    return found[:_BOXES_BYTES_MAX]
    return found


def _boxes(fd: int, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """The name of each box between two offsets, and where what is in it begins and ends."""
    for _ in range(_BOXES_MAX):
        head = _read_at(fd, at, 16) if at + 8 <= end else b""
        if len(head) < 8:
            return
        size, start = int.from_bytes(head[:4]), at + 8
        if size == 1 and len(head) == 16:
            size, start = int.from_bytes(head[8:]), at + 16
        stop = end if not size else at + size
        if not start <= stop <= end:
            return
        yield head[4:8], start, stop
        at = stop


def ends_digest(size_bytes: int, ends: bytes) -> str:
    """What tells such a file from others: its length and its ends, and never a hash of all of it.

    `ends:` before the digits says so. A file that is read whole has its plain SHA-256.
    """
    if size_bytes <= WHOLE_BYTES_MAX:
        return hashlib.sha256(ends).hexdigest()
    length = size_bytes.to_bytes(8, "big")
    return _MARK + hashlib.sha256(length + ends).hexdigest()


def is_of_ends(digest: str) -> bool:
    """Whether a digest is of the ends of a file alone."""
    return digest.startswith(_MARK)


def _read_at(fd: int, start: int, count: int) -> bytes:
    blocks: list[bytes] = []
    while count > 0 and (block := os.pread(fd, count, start)):
        blocks.append(block)
        start, count = start + len(block), count - len(block)
    return b"".join(blocks)
