"""Parses the text of a file into an entry, or into faults with their lines."""

import datetime as dt
import re
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from kb.intake.canonicalize.frontmatter import yaml_block
from kb.intake.canonicalize.title import one_line
from kb.intake.canonicalize.yaml_tree import NotYaml, yaml_lines, yaml_tree
from kb.knowledge.entries.versions import is_version
from kb.model.entry import EntryMeta

_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_NO_ID: Final = "is not an id (a to z, 0 to 9, '.', '_' and '-', at most 128 characters)"
_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_FAULTS_MAX: Final = 20
_TAGS_MAX: Final = 100
_REFERENCES_MAX: Final = 256
_WORD_CHARS_MAX: Final = 100
_SHOWN_CHARS_MAX: Final = 40
# The first line of the front matter is the file's second.
_FENCE_LINES: Final = 1

_Path = tuple[str, ...]


class Entry(Struct, frozen=True, kw_only=True):
    """An entry as its file writes it."""

    meta: EntryMeta
    title: str
    """One line."""
    tags: tuple[str, ...] = ()


class EntryFault(Struct, frozen=True, kw_only=True):
    """Why a file is not an entry, and the line of the file, from 1, with the fault."""

    line: int
    detail: str


def parse(text: str) -> Entry | tuple[EntryFault, ...]:
    """The entry in a clean `text`, or at most 20 faults in the order of their lines.

    Scalars are texts, as YAML writes them. Unknown keys are ignored. `embedding` is checked but not
    stored.
    """
    block = yaml_block(text)
    if block is None:
        detail = "there is no front matter; an entry begins with one between lines of ---"
        return (EntryFault(line=1, detail=detail),)
    try:
        tree = yaml_tree(block)
    except NotYaml as error:
        return (EntryFault(line=(error.line or 0) + _FENCE_LINES, detail=error.detail),)
    if not isinstance(tree, dict):
        tree = {}
    reader = _Reader(tree)
    entry = _entry(reader)
    if not reader.faults:
        return entry
    lines = yaml_lines(block)
    faults = [
        EntryFault(line=lines.get(path, 0) + _FENCE_LINES, detail=detail)
        for path, detail in reader.faults
    ]
    return tuple(sorted(faults, key=lambda fault: fault.line)[:_FAULTS_MAX])


def is_id(text: str) -> bool:
    """Whether an entry may have this id."""
    return _ID.fullmatch(text) is not None


def id_line(text: str) -> int:
    """The line, from 1, on which an entry's text says its id."""
    return yaml_lines(yaml_block(text) or "")["zettel_id",] + _FENCE_LINES


def _entry(reader: "_Reader") -> Entry:
    _check_embedding(reader)
    return Entry(
        meta=EntryMeta(
            zettel_id=reader.word("zettel_id", _ID.fullmatch, _NO_ID, needed=True) or "",
            entry_type=reader.word("entry_type") or "note",
            version=reader.word("version", is_version, "is not a semantic version, such as 1.0.0")
            or "1.0.0",
            author=reader.word("author"),
            references=reader.words("references", _REFERENCES_MAX, _ID.fullmatch, _NO_ID),
        ),
        title=one_line(reader.text("title", needed=True)),
        tags=reader.words("tags", _TAGS_MAX),
    )


def _check_embedding(reader: "_Reader") -> None:
    inner = reader.tree.get("embedding")
    if inner is None:
        return
    if not isinstance(inner, dict):
        reader.fault(("embedding",), "is not a mapping")
        return
    rules: dict[str, tuple[Callable[[str], object], str]] = {
        "model": (str.strip, "is not the name of a model"),
        "dimensions": (_is_positive, "is not a whole number above 0"),
        "chunks": (_COUNT.fullmatch, "is not a whole number from 0"),
        "last_computed": (_is_date, "is not an ISO 8601 date"),
    }
    for key, (is_right, wrong) in rules.items():
        value = inner.get(key)
        if value is not None and not (isinstance(value, str) and is_right(value)):
            reader.fault(("embedding", key), f"{wrong}{_shown(value)}")


class _Reader:
    """Reads fields by their keys, and notes each fault with its path."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self.tree = tree
        self.faults: list[tuple[_Path, str]] = []

    def fault(self, path: _Path, detail: str) -> None:
        self.faults.append((path, f"{'.'.join(path)} {detail}"))

    def text(self, key: str, *, needed: bool = False) -> str:
        """A scalar without white space at its ends; empty if there is none."""
        value = self.tree.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if value is not None:
            self.fault((key,), "is not a text" if value else "is empty")
        elif needed:
            self.fault((key,), "is missing")
        return ""

    def word(
        self,
        key: str,
        is_right: Callable[[str], object] | None = None,
        wrong: str = "",
        *,
        needed: bool = False,
    ) -> str | None:
        """A short scalar; None if it is missing or not valid."""
        value = self.text(key, needed=needed)
        if not value:
            return None
        return value if self._is_word((key,), value, is_right, wrong) else None

    def words(
        self,
        key: str,
        count_max: int,
        is_right: Callable[[str], object] | None = None,
        wrong: str = "",
    ) -> tuple[str, ...]:
        """A list of short scalars, none twice."""
        value = self.tree.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.fault((key,), f"is not a list{_shown(value)}")
            return ()
        if len(value) > count_max:
            self.fault((key,), f"has {len(value):,} items, over {count_max}")
            return ()
        unique: dict[str, None] = {}
        for place, item in enumerate(value):
            path = (key, str(place))
            if not isinstance(item, str) or not item.strip():
                self.fault(path, "is not a text")
            elif self._is_word(path, item.strip(), is_right, wrong):
                unique.setdefault(item.strip())
        return tuple(unique)

    def _is_word(
        self, path: _Path, value: str, is_right: Callable[[str], object] | None, wrong: str
    ) -> bool:
        if is_right is not None:
            if not is_right(value):
                self.fault(path, f"{wrong}{_shown(value)}")
                return False
            return True
        if one_line(value, chars_max=_WORD_CHARS_MAX) != value:
            self.fault(path, f"is not one line of at most {_WORD_CHARS_MAX} characters")
            return False
        return True


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return f": {one_line(value, chars_max=_SHOWN_CHARS_MAX)!r}"


def _is_positive(value: str) -> bool:
    return _COUNT.fullmatch(value) is not None and value != "0"


def _is_date(value: str) -> bool:
    try:
        dt.datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
