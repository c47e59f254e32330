"""Line numbers of keys in a TOML file."""

import tomllib
from collections.abc import Iterator
from typing import Any, Final

# A value of several lines can end only on a line with one of these.
_ENDS: Final = ("]", '"""', "'''")


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The 1-based line of a key or table; of several the first.

    `text` is valid TOML, `path` the names from the top down. If the path does not exist, the line
    of its longest existing prefix; None if not even its first name exists.
    """
    line, deepest = None, 0
    for number, statement in _statements(text):
        depth = _depth_of(statement, path)
        if depth > deepest:
            line, deepest = number, depth
    return line


def _statements(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first line of each statement, and its parsed value under the table header above it."""
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
            statement = tomllib.loads(header + pending)
        except tomllib.TOMLDecodeError:
            continue
        if line.lstrip().startswith("[") and start == number:
            header = pending
        pending = ""
        yield start, statement


def _depth_of(table: Any, path: tuple[str, ...]) -> int:
    for depth, name in enumerate(path):
        if not isinstance(table, dict) or name not in table:
            return depth
        table = table[name]
    return len(path)
