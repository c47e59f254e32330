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
    for number, said in _statements(text):
        depth = _depth(said, path)
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
            said = tomllib.loads(header + held)
        except tomllib.TOMLDecodeError:
            continue
        if line.lstrip().startswith("[") and start == number:
            header = held
        held = ""
        yield start, said


def _depth(said: Any, path: tuple[str, ...]) -> int:
    for depth, name in enumerate(path):
        if not isinstance(said, dict) or name not in said:
            return depth
        said = said[name]
    return len(path)
