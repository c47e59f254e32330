"""What goes to standard output, and how it looks."""

import os
import sys
import unicodedata
from typing import Any, Final

import click
import msgspec

from kb.errors import HeldBack

# Turn the direction of what follows on a line, or end the line.
_TURNING: Final = frozenset("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_WITHOUT_CELL: Final = ("Mn", "Me", "Cf")


def print_json(value: Any) -> None:
    """One JSON document on a line, indented where a person reads it."""
    raw = msgspec.json.encode(value)
    if sys.stdout.isatty():
        raw = msgspec.json.format(raw, indent=2)
    sys.stdout.buffer.write(raw + b"\n")
    sys.stdout.buffer.flush()


def warn(text: str) -> None:
    """A line on standard error."""
    click.echo(f"kb: {clean(text)}", err=True)


def confirm(question: str, *, unasked: str, declined: str, preface: str = "") -> None:
    """Ask before something is done; `preface` is a line in front of the question.

    Raises HeldBack: with `unasked` where there is no terminal to ask on, with `declined` where the
    answer is no.
    """
    if not sys.stdin.isatty():
        raise HeldBack(unasked)
    if preface:
        click.echo(preface, err=True)
    if not click.confirm(question, err=True):
        raise HeldBack(declined)


def clean(text: str) -> str:
    """One line for a terminal: what could drive it, end the line or turn it, made visible."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) if _is_driving(char) else char for char in text)


def _is_driving(char: str) -> bool:
    return char in _TURNING or unicodedata.category(char) in ("Cc", "Cs")


def _visible(char: str) -> str:
    if char == "\t":
        return " "
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cells(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(char: str) -> int:
    # Marks stand on the letter before them; a joiner and a soft hyphen are formats, and the latter
    # is shown.
    if unicodedata.category(char) in _WITHOUT_CELL and char != "\xad":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fitted(text: str, width: int) -> str:
    """The text in exactly `width` columns, cut with an ellipsis or filled with spaces."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown))


def cut(text: str, width: int) -> str:
    """The start of the text in at most `width` columns, before an ellipsis where it is cut."""
    if cells(text) <= width:
        return text
    shown, used = "", 0
    for char in text:
        if used + _cell(char) > width - 1:
            break
        shown += char
        used += _cell(char)
    return f"{shown}…"


def fitted_end(text: str, width: int) -> str:
    """The end of the text in at most `width` columns, behind an ellipsis where it is cut."""
    if cells(text) <= width:
        return text
    shown, used = "", 0
    for char in reversed(text):
        if used + _cell(char) > width - 1:
            break
        shown = char + shown
        used += _cell(char)
    return f"…{shown}"


def link(target: str, shown: str) -> str:
    """`shown`, clickable where standard output is a terminal that knows how (OSC 8)."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return shown
    return f"\033]8;;{target}\033\\{shown}\033]8;;\033\\"


def size(count: int) -> str:
    """Bytes as people say them."""
    number = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"


def many(count: int, noun: str) -> str:
    """`1 source`, `2 sources`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
