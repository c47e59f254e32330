"""Bars with rate and time to go, on standard error, where that is a terminal."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from kb_cli.bars import Bar, BarDisplay
from kb_cli.pace import Pace, time_left

if TYPE_CHECKING:
    from kb.operations.work import WorkLeft

# To look at the store takes of the time that the workers have; this is how much at most.
_LOOK_EVERY_S: Final = 0.5
_LOOK_SHARE: Final = 0.05
_BY_WORDS: Final = "a search by words finds what is in already; by meaning, once it is embedded"


class AddProgress:
    """Files read, passages embedded, and when that ends."""

    def __init__(self, *, reads: bool = True) -> None:
        """Without `reads` nothing is read, and only the work of workers is shown."""
        self._files = Bar(name="reading", visible=reads)
        self._work = Bar(name="indexing", visible=False)
        self._display = BarDisplay([self._files, self._work])
        self._look: Callable[[], WorkLeft] | None = None
        self._next_look_s = 0.0
        self._file_pace = Pace()
        self._pace = Pace()
        self._is_growing = False
        self._total = self._done = 0
        self._embedded_before = 0

    def follow(self, look: "Callable[[], WorkLeft]") -> None:
        """Show the work of workers, too; `look` says what is left."""
        self._look = look
        left = look()
        self._embedded_before = left.chunks_kept - left.chunks

    def reading(self, done: int, total: int) -> None:
        """So many files of so many are read."""
        self._file_pace.note(time.monotonic(), done)
        self._show(self._files, done, total, "file", self._file_pace)
        self._look_now(is_reading=done < total)

    def waiting(self, docs: int) -> None:
        """So many docs are still to be indexed elsewhere."""
        self._tell(docs, "doc", is_growing=False)

    def working(self) -> None:
        """Nothing is left to read, and the workers go on."""
        self._look_now(is_reading=False)

    def _look_now(self, *, is_reading: bool) -> None:
        began_s = time.monotonic()
        if self._look is None or began_s < self._next_look_s:
            return
        left = self._look()
        ended_s = time.monotonic()
        self._next_look_s = ended_s + max(_LOOK_EVERY_S, (ended_s - began_s) / _LOOK_SHARE)
        if left.chunks or self._total:
            self._work.name = "embedding"
            self._total = max(self._total, left.chunks_kept - self._embedded_before)
            self._tell(left.chunks, "passage", is_growing=is_reading or not left.is_cut)
            self._display.note = _BY_WORDS
        elif left.jobs and not is_reading:
            self._work.visible = True
            self._work.count = f"{left.jobs:,} to do"
        self._display.draw()

    def _tell(self, left: int, noun: str, *, is_growing: bool) -> None:
        self._total = max(self._total, self._done + left)
        self._done = max(self._done, self._total - left)
        if self._is_growing and not is_growing:
            # What it took beside the reading says little of what it takes now.
            self._pace = Pace()
        self._is_growing = is_growing
        self._pace.note(time.monotonic(), self._done)
        left_s = None if is_growing else self._pace.left_s(left)
        self._work.left = time_left(left_s) if left_s else ""
        self._show(self._work, self._done, self._total, noun, self._pace, is_growing=is_growing)

    def _show(
        self,
        bar: Bar,
        done: int,
        total: int,
        noun: str,
        pace: Pace,
        *,
        is_growing: bool = False,
    ) -> None:
        more = "+" if is_growing else ""
        plural = "" if total == 1 and not more else "s"
        rate = pace.rate()
        bar.done, bar.total, bar.visible = done, total, True
        bar.count = f"{done:,} of {total:,}{more} {noun}{plural}"
        bar.rate = f"{rate:,.0f}/s" if rate else ""
        self._display.draw()

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self._next_look_s = 0.0
            self._look_now(is_reading=False)
            self._display.draw(now=True)
        self._display.__exit__(kind, *error)
