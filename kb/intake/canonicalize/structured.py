"""What do data files say? JSON as sections and tables; YAML and TOML as they are written."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import structs

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import BLOCK_ROWS, fenced, finish, heading, table
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.exports import split_export
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.records import (
    DatedText,
    describes,
    facts_of,
    note_of,
    talk_blocks,
    talk_of,
    time_of,
    unwrapped,
    without_headings,
)
from kb.intake.canonicalize.title import one_line
from kb.model.file_kinds import file_kind
from kb.model.text import Canonical

JSON_MIME: Final = "application/json"
LINES_MIME: Final = "application/jsonl"
YAML_MIME: Final = "application/yaml"
TOML_MIME: Final = "application/toml"
_DEPTH_MAX: Final = 64
_HEADINGS_MAX: Final = 3
_COLUMNS_MAX: Final = 16
_CELL_CHARS_MAX: Final = 200
# A run of letters without a space that is longer is no text: encoded bytes, keys, hashes.
_NOISE: Final = re.compile(r"[A-Za-z0-9+/=_-]{200,}")
# How an archive of X begins each of its files.
_ASSIGNED: Final = re.compile(r"window\.[\w.]{1,80} = ")
# UTF-8 whose bytes were taken for letters, as the archives of Facebook and Instagram have it.
_TWICE_ENCODED: Final = re.compile(r"\\u00[c-f][0-9a-f]\\u00[89ab]", re.IGNORECASE)
# A longer list that has no more words than this is a series of measurements.
_SERIES_MIN: Final = 1_000
_WORDS_MAX: Final = 64
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
_SEEN_OR_HEARD: Final = ("picture", "video", "audio")
_NUMBER: Final = re.compile(r"[\d.]{10,20}", re.ASCII)
_NAMES: Final = ("title", "name", "label", "subject", "id")


def read_json(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """Objects as sections with a line for each value, lists of records as tables.

    Raises:
        Unparsable: it is not valid JSON, or nested too deeply.
        EmptySource: there is no value in it.
    """
    text, warning = decode_text(data, (charset,) if charset else ())
    text = _ASSIGNED.sub("", text.lstrip("\ufeff \t\r\n"), count=1)
    try:
        value = json.loads(text)
        value = mended(value) if _TWICE_ENCODED.search(text) else value
    except RecursionError:
        raise Unparsable("it is nested too deeply", source=name) from None
    except ValueError as error:
        raise Unparsable(f"it is not valid JSON: {error}", source=name) from None
    warnings = (warning,) if warning else ()
    return _finished(value, name, JSON_MIME, warnings)


def read_lines(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """A list of the values of all lines, as `read_json` has them; what is no JSON stays text.

    Raises:
        EmptySource: there is no value in it.
    """
    text, warning = decode_text(data, (charset,) if charset else ())
    values: list[Any] = []
    for line in text.split("\n"):
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError):
                values.append(line.strip())
    warnings = (warning,) if warning else ()
    return _finished(values, name, LINES_MIME, warnings)


def read_yaml(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The file as it is written, comments too; encoded bytes are left out.

    Raises:
        EmptySource: there is no text in it.
    """
    return _as_written(data, name, charset, "yaml", YAML_MIME)


def read_toml(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """As `read_yaml`."""
    return _as_written(data, name, charset, "toml", TOML_MIME)


def _as_written(data: bytes, name: str, charset: str | None, language: str, mime: str) -> Canonical:
    text, warning = decode_text(data, (charset,) if charset else ())
    text = _NOISE.sub(_counted, clean_text(text))
    blocks = [fenced(text, language)] if text.strip() else []
    warnings = (warning,) if warning else ()
    return finish(blocks, name, mime, warnings=warnings, is_titled=False)


def _finished(value: Any, name: str, mime: str, warnings: tuple[str, ...]) -> Canonical:
    """The value as one source, with the title, the days and the tags that it states."""
    title = next(iter(_names(value)), "")
    facts = facts_of(value) if title or note_of(value) else facts_of(None)
    canonical = finish(
        _bounded(_sections(value, 0)), name, mime, title=title, warnings=warnings, is_titled=False
    )
    lists = (value, *(value.values() if isinstance(value, dict) else ()))
    items = [facts_of(unwrapped(item)) for part in lists for item in _items(part)]
    newest = max((item.modified or item.created for item in items), default="")
    export = split_export(value, lambda part: _columns(part) is not None)
    rest = "\n\n".join(_sections(export.rest, 0)).strip() if export.records else ""
    return structs.replace(
        canonical,
        attachments=tuple(export.records),
        rest=rest,
        date=facts.created or facts.modified or newest or None,
        created=facts.created or None,
        modified=facts.modified or None,
        tags=facts.tags,
        by_name=_is_sidecar(name) and not describes(value),
    )


def _is_sidecar(name: str) -> bool:
    """Whether a file says something of another one that is no text, as `IMG_1.jpg.json` does."""
    return any(file_kind(part.lower()) in _SEEN_OR_HEARD for part in name.split(".")[1:-1])


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bounded(blocks: Iterator[str]) -> Iterator[str]:
    chars = 0
    for block in blocks:
        chars += len(block)
        if chars > TEXT_CHARS_MAX:
            raise TextTooLong
        yield block


def _sections(value: Any, depth: int) -> Iterator[str]:
    """Blocks of markdown for a value."""
    if isinstance(value, dict | list) and depth >= _DEPTH_MAX:
        yield one_line(json.dumps(value, ensure_ascii=False)[:1_000])
    elif (entries := _talk(value)) is not None:
        yield from talk_blocks(entries, depth)
    elif isinstance(value, dict):
        note = note_of(value)
        if note is not None:
            yield from filter(None, (without_headings(note.text), note.who, note.when))
        talks = [key for key, item in value.items() if _talk(item)]
        if note is None and talks and (title := facts_of(value).title):
            # Of what is said in a conversation, its ids and days are no part.
            note = DatedText(text="", when="", title=title)
        flat = {key: item for key, item in value.items() if _is_flat(item)}
        lines = [
            f"- {_said(key)}: {_stated(key, item)}"
            for key, item in flat.items()
            if note is None or note.adds(key, item)
        ]
        yield "\n".join(line for line in lines if not line.endswith(": "))
        for key, item in value.items():
            if not _is_flat(item) and (note is None or note.adds(key, item)):
                # What is the only thing in it needs no name.
                is_all = talks == [key]
                yield "" if is_all else _headed(str(key), depth)
                yield from _sections(item, depth if is_all else depth + 1)
    elif isinstance(value, list):
        yield from _list(value, depth)
    else:
        yield _said(value)


def _talk(value: Any) -> list[DatedText] | None:
    """The messages or notes in a list, or in an object that has one at each key."""
    if isinstance(value, dict):
        return talk_of(list(value.values()), is_tabular=False)
    if isinstance(value, list):
        return talk_of(value, is_tabular=_columns(value) is not None)
    return None


def _list(values: list[Any], depth: int) -> Iterator[str]:
    if len(values) > _SERIES_MIN and (series := _series(values)):
        yield series
    elif all(_is_flat(value) for value in values):
        yield "\n".join(f"- {said}" for said in map(_said, values) if said)
    elif (columns := _columns(values)) is not None:
        rows = [[_stated(column, row.get(column)) for column in columns] for row in values]
        yield table([columns, *rows], block_rows=BLOCK_ROWS)
    else:
        for value in values:
            named = next(iter(_names(value)), "")
            if named:
                yield _headed(named, depth)
            yield from _sections(value, depth + 1)


def _stated(key: object, value: object) -> str:
    """A flat value; an instant as people write it."""
    is_number = value is not True and _NUMBER.fullmatch(str(value)) is not None
    return (time_of(str(key), value) if is_number else "") or _said(value)


def mended(value: Any) -> Any:
    """A value whose strings are read as the UTF-8 that they are."""
    match value:
        case str() if not value.isascii():
            try:
                return value.encode("latin-1").decode("utf-8")
            except UnicodeError:
                return value
        case list():
            return [mended(item) for item in value]
        case dict():
            return {mended(key): mended(item) for key, item in value.items()}
        case _:
            return value


def _series(values: list[Any]) -> str:
    """What a long list measures, if it has hardly a word; empty for any other list."""
    words: dict[str, None] = {}
    fields: dict[str, None] = {}
    first = last = ""
    for value in values:
        for key, leaf in _leaves(value, "", 0):
            fields.setdefault(key)
            when = time_of(key, leaf)
            first, last = first or when, when or last
            if isinstance(leaf, str) and not when and _LETTERS.search(leaf):
                words.setdefault(one_line(leaf))
        if len(words) > _WORDS_MAX or len(fields) > _WORDS_MAX:
            return ""
    span = f" from {first} to {last}" if first else ""
    names = ", ".join(filter(None, fields))
    return "\n\n".join(
        filter(
            None, (f"{len(values):,} values{span}: {names}".removesuffix(": "), ", ".join(words))
        )
    )


def _leaves(value: Any, key: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth < _DEPTH_MAX:
        for name, item in value.items():
            yield from _leaves(item, str(name), depth + 1)
    elif isinstance(value, list) and depth < _DEPTH_MAX:
        for item in value:
            yield from _leaves(item, key, depth + 1)
    else:
        yield key, value


def _columns(values: list[Any]) -> list[str] | None:
    """The keys of records that a table can hold; None for others."""
    columns: dict[str, None] = {}
    for value in values:
        if not isinstance(value, dict):
            return None
        columns.update(dict.fromkeys(map(str, value)))
        is_row = all(_is_flat(v) and len(_said(v)) <= _CELL_CHARS_MAX for v in value.values())
        if not is_row or len(columns) > _COLUMNS_MAX:
            return None
    return list(columns) if len(values) > 1 else None


def _headed(text: str, depth: int) -> str:
    """A heading for what is near the top, and a line for what is deeper."""
    return heading(depth + 2, one_line(text)) if depth < _HEADINGS_MAX else f"{one_line(text)}:"


def _is_flat(value: object) -> bool:
    return not isinstance(value, dict | list) or not value


def _said(value: object) -> str:
    match value:
        case None | {} | []:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return _NOISE.sub(_counted, value.strip())
        case _:
            return str(value)


def _counted(run: re.Match[str]) -> str:
    return f"[{len(run[0])} characters]"


def _names(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key in _NAMES:
            named = value.get(key)
            if isinstance(named, str) and named.strip() and len(named) <= _CELL_CHARS_MAX:
                yield one_line(named)
