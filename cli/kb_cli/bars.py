"""Bars that are drawn in place on a terminal, and are gone once the work is done."""

import os
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack, redirect_stderr
from typing import IO, Any, Final, Self, cast

from msgspec import Struct

_DRAW_EVERY_S: Final = 0.1
_CELLS_MAX: Final = 40
# A shorter bar says nothing.
_CELLS_MIN: Final = 8
_COLUMNS_UNTOLD: Final = 80
_GAP: Final = "  "
_CLEAR_LINE: Final = "\r\033[2K"
_CLEAR_LINE_ABOVE: Final = "\033[1A\033[2K"


class Bar(Struct, kw_only=True):
    """One bar, and what is said beside it."""

    name: str
    visible: bool = True
    done: int = 0
    total: int = 0
    """0 while nobody knows; then there is no bar."""
    count: str = ""
    rate: str = ""
    left: str = ""


def lines_of(bars: Iterable[Bar], note: str, columns: int) -> list[str]:
    """What is drawn: a line for each visible bar, then the note; each at most `columns` wide.

    The texts stand below each other. The bars take the room that the texts leave, and go where
    that is too little.
    """
    shown = [bar for bar in bars if bar.visible]
    texts = [(bar.name, bar.count, bar.rate, bar.left) for bar in shown]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    room = columns - sum(width + len(_GAP) for width in widths if width) - len("[]")
    cells = 0 if room < _CELLS_MIN else min(room, _CELLS_MAX)
    lines = []
    for bar, row in zip(shown, texts, strict=True):
        name, *others = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        parts = [name, _drawn(bar, cells), *others]
        lines.append(_cut(_GAP.join(filter(None, parts)).rstrip(), columns))
    if note:
        lines.append(_cut(note, columns))
    return lines


def _drawn(bar: Bar, cells: int) -> str:
    if not cells:
        return ""
    full = cells * min(bar.done, bar.total) // bar.total if bar.total else 0
    return f"[{'#' * full}{'-' * (cells - full)}]" if bar.total else " " * (cells + len("[]"))


def _cut(line: str, columns: int) -> str:
    return line if len(line) <= columns else line[: max(columns - 1, 0)] + "…"


class BarDisplay:
    """Draws bars on standard error until it is left; what others write there comes above them."""

    def __init__(self, bars: list[Bar]) -> None:
        self.bars = bars
        self.note = ""
        self._stream = sys.stderr
        self._drawn: list[str] = []
        self._next_s = 0.0
        self._stack = ExitStack()

    def draw(self, *, now: bool = False) -> None:
        """Draw what there is to say, if that is due."""
        time_s = time.monotonic()
        if not now and time_s < self._next_s:
            return
        self._next_s = time_s + _DRAW_EVERY_S
        # The last column stays free: some terminals go on to the next line once it is written.
        lines = lines_of(self.bars, self.note, max(self._columns() - 1, 1))
        if lines != self._drawn:
            self._write(self._erasure() + "\n".join(lines))
            self._drawn = lines

    def clear(self) -> None:
        """Remove the bars from the terminal."""
        if self._drawn:
            self._write(self._erasure())
            self._drawn = []

    def _erasure(self) -> str:
        """What erases the lines that were drawn, also where a narrower terminal broke them."""
        columns = self._columns()
        rows = sum(max(1, -(-len(line) // columns)) for line in self._drawn)
        return _CLEAR_LINE + _CLEAR_LINE_ABOVE * (rows - 1)

    def _columns(self) -> int:
        told = os.environ.get("COLUMNS", "")
        if told.isdecimal() and int(told):
            return int(told)
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS_UNTOLD
        except (OSError, ValueError):
            return _COLUMNS_UNTOLD

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def __enter__(self) -> Self:
        self._stack.enter_context(redirect_stderr(cast("IO[str]", _Above(self, self._stream))))
        self.draw(now=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self.clear()


class _Above:
    """Standard error for all others: what is written removes the bars first."""

    def __init__(self, display: BarDisplay, stream: IO[str]) -> None:
        self._display = display
        self._stream = stream

    def write(self, text: str) -> int:
        self._display.clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
