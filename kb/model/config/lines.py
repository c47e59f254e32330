"""Which line of a TOML file says it?"""

import tomllib
from collections.abc import Iterator
from typing import Any, Final

# Only on a line with one of these can a value end that began on an earlier one.
_ENDS: Final = ("]", '"""', "'''")


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line, from 1, on which a key or table stands; of several the first.

    `text` is TOML without a fault, `path` the names from the top down. Where nothing stands at
    the whole path, the line of as much of its start as is there; None where not even that.
    """
    line, deepest = None, 0
    for number, statement in _statements(text):
        depth = _depth_of(statement, path)
        if depth > deepest:
            line, deepest = number, depth
    return line


def _statements(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """First line of each statement, and what it says under the header that it stands below."""
    header = held = ""
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if held and not any(end in line for end in _ENDS):
            held += f"{line}\n"
            continue
        if not held:
            start = number
            if line.lstrip().startswith("["):
                header = ""
        held += f"{line}\n"
        try:
            statement = tomllib.loads(header + held)
        except tomllib.TOMLDecodeError:
            continue
        if line.lstrip().startswith("[") and start == number:
            header = held
        held = ""
        yield start, statement


def _depth_of(table: Any, path: tuple[str, ...]) -> int:
    for depth, name in enumerate(path):
        if not isinstance(table, dict) or name not in table:
            return depth
        table = table[name]
    return len(path)
