"""Bars in place: what is drawn at each width, and what is left of it."""

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios

import pytest
from kb_cli.bars import Bar, BarDisplay, lines_of

READING = Bar(
    name="reading", done=30, total=60, count="30 of 60 files", rate="12/s", left="3 s left"
)
EMBEDDING = Bar(name="embedding", done=1, total=4, count="1 of 4+ passages", rate="9/s")
NOTE = "a search by words finds what is in already; by meaning, once it is embedded"


def test_the_texts_stand_below_each_other() -> None:
    """At a usual width there is a bar, and each column starts at one place."""
    assert lines_of([READING, EMBEDDING], "", 79) == [
        "reading    [################----------------]  30 of 60 files    12/s  3 s left",
        "embedding  [########------------------------]  1 of 4+ passages  9/s",
    ]


def test_a_bar_that_is_not_visible_takes_no_line() -> None:
    """And one whose total nobody knows has its texts alone."""
    hidden = Bar(name="indexing", visible=False)
    assert lines_of([hidden], "", 79) == []
    assert lines_of([Bar(name="reading")], NOTE, 79) == ["reading", NOTE]


@pytest.mark.parametrize("columns", range(1, 140))
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    """At any width, with any text; what is cut says so."""
    lines = lines_of([READING, EMBEDDING], NOTE, columns)
    assert len(lines) == 3
    assert max(map(len, lines)) <= columns
    assert lines[2] == NOTE or lines[2].endswith("…")


def on_own_terminal(columns: int, draw: str) -> str:
    """What a child that draws on a terminal of so many columns sent to it."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        code = f"import sys\nfrom kb_cli.bars import Bar, BarDisplay\n{draw}"
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        os.execve(sys.executable, [sys.executable, "-c", code], environment)
    sent = b""
    while True:
        try:
            block = os.read(fd, 65536)
        except OSError:
            # The child has closed its end.
            break
        sent += block
    os.close(fd)
    os.waitpid(pid, 0)
    return sent.decode()


def screen(sent: str, columns: int) -> list[str]:
    """The lines that a terminal shows in the end, without those that are blank at its end."""
    rows, row, column = [""], 0, 0
    for part in re.findall(r"\033\[\d*[AK]|[^\033]", sent):
        match part:
            case "\033[2K":
                rows[row] = ""
            case "\033[1A":
                row -= 1
            case "\r":
                column = 0
            case "\n":
                row += 1
            case _:
                if column == columns:
                    row, column = row + 1, 0
                rows.extend([""] * (row + 1 - len(rows)))
                rows[row] = rows[row][:column].ljust(column) + part + rows[row][column + 1 :]
                column += 1
        rows.extend([""] * (row + 1 - len(rows)))
    while rows and not rows[-1]:
        rows.pop()
    return rows


DRAW = """
bars = [Bar(name="reading", total=9, count="x" * {long}), Bar(name="embedding", total=9)]
with BarDisplay(bars) as display:
    display.note = "note " * 30
    for done in range(10):
        bars[0].done = bars[1].done = done
        display.draw(now=True)
        if done == 4:
            print("said meanwhile", file=sys.stderr)
print("after")
"""


@pytest.mark.parametrize("columns", [8, 20, 80, 200])
@pytest.mark.parametrize("long", [3, 300])
def test_what_is_drawn_is_gone_at_the_end(columns: int, long: int) -> None:
    """Whatever the width and the texts: what others wrote is there, and no bar."""
    sent = on_own_terminal(columns, DRAW.format(long=long))
    assert "reading"[: columns - 2] in sent
    assert "".join(screen(sent, columns)) == "said meanwhileafter"


def test_an_interrupt_leaves_no_bar() -> None:
    """Ctrl-C between two drawings: the bars go, and what is said then is whole."""
    draw = """
import os, signal
try:
    with BarDisplay([Bar(name="reading", total=9)]) as display:
        os.kill(os.getpid(), {signal})
        display.draw(now=True)
except KeyboardInterrupt:
    print("interrupted")
"""
    sent = on_own_terminal(80, draw.format(signal=int(signal.SIGINT)))
    assert screen(sent, 80) == ["interrupted"]


def test_a_narrower_terminal_breaks_lines_that_are_all_erased(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of 79 that a terminal of 40 shows in two rows goes with both."""
    monkeypatch.setenv("COLUMNS", "80")
    display = BarDisplay([READING])
    display.draw(now=True)
    monkeypatch.setenv("COLUMNS", "40")
    display.clear()
    assert capsys.readouterr().err.endswith("\r\033[2K\033[1A\033[2K")
