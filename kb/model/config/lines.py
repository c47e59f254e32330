"""Line numbers of keys in a TOML file."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

# A value of several lines can end only on a line with one of these.
_ENDS: Final = ("]", '"""', "'''")


class Statement(Struct, frozen=True, kw_only=True):
    """A statement of a TOML file: a table header, or a key with its value."""

    start: int
    """1-based line; a value of several lines ends at `end`."""
    end: int
    header: str
    """The table header above it, or itself if `is_header`; empty at the top of the file."""
    is_header: bool
    table: dict[str, Any]
    """Its value, under the tables that it lies in."""


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The 1-based line of a key or table; of several the first.

    `text` is valid TOML, `path` the names from the top down. If the path does not exist, the line
    of its longest existing prefix; None if not even its first name exists.
    """
    line, deepest = None, 0
    for statement in statements(text):
        depth = _depth_of(statement.table, path)
        if depth > deepest:
            line, deepest = statement.start, depth
    return line


def statements(text: str) -> Iterator[Statement]:
    """The statements of valid TOML, in order."""
    import tomllib

    header = pending = ""
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if pending and not any(end in line for end in _ENDS):
            pending += f"{line}\n"
            continue
        if not pending:
            start = number
            if line.lstrip().startswith("["):
                header = ""
        pending += f"{line}\n"
        try:
            table = tomllib.loads(header + pending)
        except tomllib.TOMLDecodeError:
            continue
        is_header = line.lstrip().startswith("[") and start == number
        if is_header:
            header = pending
        is_blank = not pending.strip() or pending.lstrip().startswith("#")
        pending = ""
        if not is_blank:
            yield Statement(
                start=start, end=number, header=header, is_header=is_header, table=table
            )


def _depth_of(table: Any, path: tuple[str, ...]) -> int:
    for depth, name in enumerate(path):
        if not isinstance(table, dict) or name not in table:
            return depth
        table = table[name]
    return len(path)
