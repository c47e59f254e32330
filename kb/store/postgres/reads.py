"""What was read at one commit: the same for every transaction that sees that commit."""

from collections.abc import Mapping
from typing import Final

from kb.store.postgres.schema import Commit

Pair = tuple[bytes, bytes]
Range = tuple[str, bytes, bytes | None, bool]
"""Table, start, stop, and whether it is read backwards."""

UNKNOWN: Final = object()
# What a row takes beside its value, roughly.
_ROW_BYTES: Final = 128
_CHANGE_BYTES_MAX: Final = 16 << 10


class Reads:
    """Values by key, None for an absent one, and the first rows of ranges.

    Threads may share one. What does not fit any more takes the place of all that was there.
    """

    def __init__(self, commit: Commit, bytes_max: int) -> None:
        self.commit = commit
        self._bytes_max = bytes_max
        self._bytes = 0
        self._values: dict[tuple[str, bytes], bytes | None] = {}
        self._firsts: dict[Range, tuple[list[Pair], bool]] = {}

    def value(self, table: str, key: bytes) -> object:
        """What lies under a key; UNKNOWN if nobody has read it."""
        return self._values.get((table, key), UNKNOWN)

    def keep(self, table: str, values: dict[bytes, bytes | None]) -> None:
        """Take values over."""
        self._make_room(sum(_ROW_BYTES + len(value or b"") for value in values.values()))
        self._values.update({(table, key): value for key, value in values.items()})

    def first(self, asked: Range) -> tuple[list[Pair], bool] | None:
        """The first rows of a range, and whether it has no others; None if nobody has read them."""
        return self._firsts.get(asked)

    def keep_first(self, asked: Range, rows: list[Pair], *, is_all: bool) -> None:
        """Take the first rows of a range over."""
        self._make_room(_ROW_BYTES + sum(_ROW_BYTES + len(value) for _, value in rows))
        self._firsts[asked] = (rows, is_all)

    def after(self, commit: Commit, changes: Mapping[str, Mapping[bytes, bytes | None]]) -> "Reads":
        """What is known of the next commit, which makes these changes and no others."""
        reads = Reads(commit, self._bytes_max)
        reads._values, reads._bytes = dict(self._values), self._bytes
        reads._firsts = {
            asked: rows for asked, rows in self._firsts.items() if asked[0] not in changes
        }
        for table, changed in changes.items():
            small = {k: v for k, v in changed.items() if len(v or b"") <= _CHANGE_BYTES_MAX}
            reads.keep(table, small)
            for key in changed.keys() - small.keys():
                reads._values.pop((table, key), None)
        return reads

    def _make_room(self, more: int) -> None:
        self._bytes += more
        if self._bytes > self._bytes_max:
            # Other threads may be reading what was there.
            self._values, self._firsts, self._bytes = {}, {}, more
