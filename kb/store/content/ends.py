"""Which bytes stand for a file that is never read whole? Its first and its last ones.

What a film or an archive says of itself stands there. Two files of one length with equal ends count
as the same; a change between the ends is not seen, and nothing that kb knows of them would differ.
"""

import hashlib
import os
from typing import Final

HEAD_BYTES: Final = 256 << 10
TAIL_BYTES: Final = 128 << 10
WHOLE_BYTES_MAX: Final = HEAD_BYTES + TAIL_BYTES
"""A file that is not longer is read whole."""
_MARK: Final = "ends:"


def ends_of(fd: int, size_bytes: int) -> bytes:
    """The first and the last bytes of an open file of this length. Raises OSError."""
    head = _read_at(fd, 0, min(HEAD_BYTES, size_bytes))
    return head + _read_at(fd, max(len(head), size_bytes - TAIL_BYTES), TAIL_BYTES)


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
