"""What does a note say about itself? Title, tags and date above its text."""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.title import one_line
from kb.intake.canonicalize.yaml_tree import NotYaml, yaml_tree

_CHARS_MAX: Final = 1 << 20
# The reader of TOML takes the square of the length of a key.
_TOML_CHARS_MAX: Final = 65_536
_DEPTH_MAX: Final = 32
_TAGS_MAX: Final = 100
_TAG_CHARS_MAX: Final = 100
_ALIASES_MAX: Final = 50
# As the tools that write front matter name them, the surest first.
_DATE_KEYS: Final = {
    "date": ("date", "published", "publishdate", "pubdate"),
    "created": ("created", "date created", "created_at", "creation_date", "creationdate"),
    "modified": (
        *("modified", "updated", "lastmod", "last_modified", "last modified"),
        *("date modified", "modified_at", "updated_at"),
    ),
}
_TOP_CHARS: Final = 2_048
_STATED: Final = re.compile(r"(?:[-*] )?\*{0,2}([^\W\d_][^\n:*#|]{0,39})(::?)\*{0,2}[ \t]+(\S.*)")
_STATED_AS: Final = {
    "created time": "created",
    "last edited time": "modified",
    "last edited": "modified",
    "last updated": "modified",
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})

Fields = dict[str, list[str]]
"""Scalars by lower-case top-level key, as written; a lone scalar is a list of one."""


class FrontMatter(Struct, frozen=True, kw_only=True):
    """What was found above the text."""

    found: bool = False
    title: str = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    date: str | None = None
    """Of the text: when it was written, published, or what day it is about."""
    created: str | None = None
    modified: str | None = None
    warnings: tuple[str, ...] = ()
    left_chars: int = 0
    """Length of a block that was not understood and still heads the text."""


class _BadFrontMatter(Exception):
    """Front matter that is not one, in words for a warning."""


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Front matter of a clean `text`, and the text below it.

    A block that cannot be read stays part of the text, with a warning; a first line that merely
    draws a rule is no front matter.
    """
    text = text.removeprefix("\ufeff")
    fence = text[:3]
    if fence not in {"---", "+++"} or text.partition("\n")[0].rstrip() != fence:
        return FrontMatter(), text
    closings = ("---", "...") if fence == "---" else ("+++",)
    span = _block(text, closings)
    if span is None:
        chars_max = _chars_max(fence)
        is_long = any(text.find(f"\n{closing}\n", chars_max) >= 0 for closing in closings)
        warning = f"front matter left as text: it is over {chars_max:,} characters"
        return FrontMatter(warnings=(warning,) if is_long else ()), text
    block, body = span
    read: Callable[[str], Fields | None] = _read_yaml if fence == "---" else _read_toml
    try:
        fields = read(block)
    except _BadFrontMatter as refusal:
        warning = f"front matter left as text: {refusal}"
        return FrontMatter(warnings=(warning,), left_chars=len(text) - len(body)), text
    if fields is None:
        return FrontMatter(), text
    return _front_matter(fields), body.lstrip("\n")


def stated_at_the_top(text: str) -> FrontMatter:
    """The dates and tags in lines as `Date: 2026-03-01`, below a title that opens the text or none.

    So pages that Notion exports begin, and with two colons pages of Logseq, which state their title
    and aliases, too. All lines up to the first blank one must be of this kind.
    """
    lines = text[:_TOP_CHARS].lstrip("\ufeff\n").split("\n")
    if lines[0].startswith("# "):
        lines = lines[1:]
    while lines and not lines[0].strip():
        lines = lines[1:]
    fields: Fields = {}
    for line in lines:
        match = _STATED.fullmatch(line.rstrip())
        if match is None:
            if line.strip() and not line.startswith("- "):
                return FrontMatter()
            break
        key, value, is_page = match[1].strip().lower(), match[3], match[2] == "::"
        if key in ("tags", "keywords") and ("#" not in value or is_page):
            fields[key] = [value]
        elif (is_page and key in ("title", "alias")) or iso_date(value):
            fields[_STATED_AS.get(key, key)] = [value]
    return _front_matter(fields) if fields else FrontMatter()


def front_tree(text: str) -> dict[str, Any]:
    """Every field of the front matter that heads `text`, by its key as written.

    Scalars are texts, YAML's as written; lists and mappings stay what they are. Empty where there
    is no front matter, or none that can be read.
    """
    fence = text[:3]
    span = _block(text, ("---", "...") if fence == "---" else ("+++",))
    if not split_front_matter(text)[0].found or span is None:
        return {}
    if fence == "+++":
        import tomllib

        return {key: _as_written(value) for key, value in tomllib.loads(span[0]).items()}
    try:
        tree = yaml_tree(span[0])
    except NotYaml:
        return {}
    return tree if isinstance(tree, dict) else {}


def yaml_block(text: str) -> str | None:
    """What stands between the `---` lines that head `text`, YAML or not; None where none do."""
    if text[:3] != "---" or text.partition("\n")[0].rstrip() != "---":
        return None
    span = _block(text, ("---", "..."))
    return span[0] if span else None


def _as_written(value: object) -> Any:
    match value:
        case dict():
            return {key: _as_written(inner) for key, inner in value.items()}
        case list():
            return [_as_written(inner) for inner in value]
        case dt.date() | dt.datetime():
            return value.isoformat()
        case _:
            return str(value)


def _block(text: str, closings: tuple[str, ...]) -> tuple[str, str] | None:
    """Lines between the first and the closing fence, and the text after it."""
    start = at = text.find("\n") + 1
    if not start:
        return None
    chars_max = min(len(text), _chars_max(text[:3]))
    while at < chars_max:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at : at + 3] in closings and text[at:end].rstrip() in closings:
            return text[start:at], text[end + 1 :]
        at = end + 1
    return None


def _chars_max(fence: str) -> int:
    return _TOML_CHARS_MAX if fence == "+++" else _CHARS_MAX


def _front_matter(fields: Fields) -> FrontMatter:
    tags: dict[str, None] = {}
    for key in ("tags", "tag", "keywords"):
        for tag in _tags(fields.get(key, [])):
            tags.setdefault(tag)
    warnings: list[str] = []
    if len(tags) > _TAGS_MAX:
        warnings.append(f"only the first {_TAGS_MAX} of {len(tags)} tags were kept")
    dates = {
        name: next(
            (value.strip() for key in keys for value in fields.get(key, [])[:1] if value.strip()),
            "",
        )
        for name, keys in _DATE_KEYS.items()
    }
    read = {name: iso_date(written) for name, written in dates.items() if written}
    warnings += [
        f"its date is not one kb can read: {one_line(dates[name], chars_max=40)}"
        for name, date in read.items()
        if date is None
    ]
    aliases = [alias for key in ("aliases", "alias") for alias in fields.get(key, [])]
    return FrontMatter(
        found=True,
        title=one_line(next(iter(fields.get("title", [])), "")),
        tags=tuple(tags)[:_TAGS_MAX],
        aliases=tuple(dict.fromkeys(filter(None, map(one_line, aliases))))[:_ALIASES_MAX],
        date=read.get("date") or read.get("created"),
        created=read.get("created"),
        modified=read.get("modified"),
        warnings=tuple(warnings),
    )


def _tags(values: Iterable[str]) -> Iterable[str]:
    for value in values:
        for part in value.split(","):
            tag = one_line(part.strip().lstrip("#"), chars_max=_TAG_CHARS_MAX)
            if tag:
                yield tag


def _read_yaml(block: str) -> Fields | None:
    """Top-level scalars and lists of scalars of a YAML mapping; None where it is no mapping.

    Works on the event stream and builds no objects, so that neither an alias bomb nor deep
    nesting costs more than reading the block once; aliases are refused all the same.
    """
    import yaml

    if not block.strip():
        return {}
    events = yaml.parse(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        return _top_fields(events)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _BadFrontMatter("it is not valid YAML") from error


def _top_fields(events: Iterable[object]) -> Fields | None:
    import yaml

    top = _TopLevelReader()
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise _BadFrontMatter("it uses YAML aliases")
        if top.depth == 0 and isinstance(event, yaml.ScalarEvent | yaml.SequenceStartEvent):
            return None
        if isinstance(event, yaml.CollectionStartEvent):
            top.enter(is_list=isinstance(event, yaml.SequenceStartEvent))
        elif isinstance(event, yaml.CollectionEndEvent):
            top.leave()
        elif isinstance(event, yaml.ScalarEvent):
            top.scalar(event.value, is_null=bool(event.implicit[0]) and event.value in _NULLS)
    return top.fields


class _TopLevelReader:
    """Where the events are: at a key, at its value, or at an item of the value."""

    def __init__(self) -> None:
        self.fields: Fields = {}
        self.depth = 0
        self._key: str | None = None  # None while a key is due
        self._list_of = ""  # key of the list that is open at depth 2

    def enter(self, *, is_list: bool) -> None:
        if self.depth == 1:
            self._list_of = self._key if self._key and is_list else ""
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise _BadFrontMatter("it is nested too deeply")

    def leave(self) -> None:
        self.depth -= 1
        if self.depth == 1:
            # A collection was the value, or, oddly, the key.
            self._key = "" if self._key is None else None

    def scalar(self, value: str, *, is_null: bool) -> None:
        if self.depth == 1 and self._key is None:
            self._key = value.strip().lower()
            return
        key = self._key if self.depth == 1 else self._list_of if self.depth == 2 else ""
        if key and not is_null:
            self.fields.setdefault(key, []).append(value)
        if self.depth == 1:
            self._key = None


def _read_toml(block: str) -> Fields | None:
    import tomllib

    try:
        table = tomllib.loads(block)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise _BadFrontMatter("it is not valid TOML") from error
    return {key.lower(): _scalars(value) for key, value in table.items()}


def _scalars(value: object) -> list[str]:
    match value:
        case list():
            return [str(item) for item in value if isinstance(item, str | int | float)]
        case str() | int() | float():
            return [str(value)]
        case dt.date() | dt.datetime():
            return [value.isoformat()]
        case _:
            return []
