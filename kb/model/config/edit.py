"""Changes one setting in the text of a TOML file; comments, order and line ends stay. Pure."""

import re
from collections.abc import Callable
from typing import Any, Final

from kb.model.config.lines import Statement, statements

_Path = tuple[str, ...]
# The key of a statement, up to where its value starts.
_KEY: Final = re.compile(
    r"""\s*(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*'))*\s*=\s*"""
)


class TextTooComplex(Exception):
    """The file sets it in a form that only a person may change."""


def with_value(text: str, path: _Path, value: Any) -> str:
    """The text in which a setting has a value. `text` is valid TOML. Raises TextTooComplex."""
    lines = text.split("\n")
    line_end = "\r" if "\r\n" in text else ""
    parsed = tuple(statements(text))
    statement = _statement_of(parsed, path)
    if statement is not None:
        lines[statement.start - 1 : statement.end] = [_changed(lines, statement, value)]
    else:
        _insert(lines, parsed, path, f"{path[-1]} = {literal(value)}", line_end)
    return _checked(text, "\n".join(lines), lambda table: _put(table, path, value))


def without_value(text: str, path: _Path) -> str:
    """The text without a setting that it has. Raises TextTooComplex."""
    lines = text.split("\n")
    statement = _statement_of(tuple(statements(text)), path)
    if statement is None:
        raise TextTooComplex
    del lines[statement.start - 1 : statement.end]
    return _checked(text, "\n".join(lines), lambda table: _remove(table, path))


def literal(value: Any) -> str:
    """A value in TOML: a text, a number, a truth value, or a list of these."""
    import json

    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    # JSON escapes everything that TOML requires, except DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def value_at(table: dict[str, Any], path: _Path) -> Any:
    """The value of a setting in a table; None if the table does not set it."""
    value: Any = table
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _statement_of(parsed: tuple[Statement, ...], path: _Path) -> Statement | None:
    """The statement that sets this one key, and nothing else."""
    for statement in parsed:
        table: Any = statement.table
        names = []
        while isinstance(table, dict) and len(table) == 1:
            ((name, table),) = table.items()
            names.append(name)
        if not statement.is_header and tuple(names) == path:
            return statement
    return None


def _changed(lines: list[str], statement: Statement, value: Any) -> str:
    """The statement with another value, on one line; the comment after it stays."""
    import tomllib

    key = _KEY.match(lines[statement.start - 1])
    if key is None:
        raise TextTooComplex
    last = lines[statement.end - 1]
    before = lines[statement.start - 1 : statement.end - 1]
    tail = "\r" if last.endswith("\r") else ""
    for mark in re.finditer(r"\s*#", last):
        try:
            table = tomllib.loads(
                statement.header + "\n".join((*before, last[: mark.start()])).replace("\r", "")
            )
        except tomllib.TOMLDecodeError:
            continue
        if table == statement.table:
            tail = last[mark.start() :]
            break
    return f"{key[0]}{literal(value)}{tail}"


def _insert(
    lines: list[str], parsed: tuple[Statement, ...], path: _Path, line: str, line_end: str
) -> None:
    """Insert a line after the last one of its table; a missing table goes to the end."""
    last = 0
    is_inside = False
    for statement in parsed:
        if statement.is_header:
            is_inside = _names(statement.table) == path[:-1]
        if is_inside:
            last = statement.end
    if last:
        if lines[last - 1].endswith("\r") or last < len(lines):
            lines.insert(last, f"{line}{line_end}")
        else:
            lines[last - 1] += line_end
            lines.append(line)
        return
    while lines and not lines[-1].strip():
        lines.pop()
    head = [line_end] if lines else []
    if lines and line_end and not lines[-1].endswith(line_end):
        lines[-1] += line_end
    lines += [*head, f"[{'.'.join(path[:-1])}]{line_end}", f"{line}{line_end}", ""]


def _names(table: Any) -> _Path:
    names = []
    while isinstance(table, dict) and len(table) == 1:
        ((name, table),) = table.items()
        names.append(name)
    return tuple(names) if table == {} else ()


def _checked(before: str, after: str, change: Callable[[dict[str, Any]], None]) -> str:
    """The new text, if it differs from the old one only by the change."""
    import tomllib

    expected = tomllib.loads(before)
    change(expected)
    try:
        actual = tomllib.loads(after)
    except tomllib.TOMLDecodeError as error:
        raise TextTooComplex from error
    if _pruned(actual) != _pruned(expected):
        raise TextTooComplex
    return after


def _put(table: dict[str, Any], path: _Path, value: Any) -> None:
    for name in path[:-1]:
        table = table.setdefault(name, {})
    table[path[-1]] = list(value) if isinstance(value, tuple) else value


def _remove(table: dict[str, Any], path: _Path) -> None:
    for name in path[:-1]:
        table = table[name]
    del table[path[-1]]


def _pruned(table: Any) -> Any:
    """A table without its empty tables, which set nothing."""
    if not isinstance(table, dict):
        return table
    pruned = {name: _pruned(value) for name, value in table.items()}
    return {name: value for name, value in pruned.items() if value != {}}
