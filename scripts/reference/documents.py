"""The pages of what commands print with `--json`, from the records that they encode."""

import re
from collections.abc import Iterator
from typing import Any, Final, get_type_hints

from kb_cli.main import SECTIONS

from reference.markdown import flat, meanings, page, part, slug, table, type_name
from reference.shapes import shapes

# Fields that mean the same in every document, for records that do not say it.
_EVERYWHERE: Final = {
    "warnings": "What the answer lacks or what to know about it, a sentence each.",
    "reason": "Why, as a sentence.",
    "doc_id": "The doc's id.",
    "chunk_id": "The passage's id.",
    "pack_id": "The pack's id.",
    "job_id": "The job's id.",
    "origin_id": "The id of the folder or page that is kept current.",
    "zettel_id": "The entry's own id.",
    "title": "What it is called.",
    "tags": "Its tags.",
    "source": "Where it lies now: a path or an address.",
    "location": "A path or an address.",
    "visibility": "Who may see it: `public`, `shared` or `private`.",
    "owner": "Whose it is; `local` is the user of this machine.",
    "added_ms": "When it was added.",
    "attempts": "How often it was tried.",
    "outcome": "How it ended.",
    "problem": "What is wrong.",
    "problems": "What went wrong, one by one.",
    "scanned": "How many were looked at.",
    "added": "How many are new.",
    "updated": "How many have changed.",
    "unchanged": "How many are as they were.",
    "resurrected": "How many were removed, and are back.",
    "skipped": "How many were left out on purpose.",
    "failed": "How many could not be taken in.",
    "removed": "What was removed, or how many.",
    "page": "The page, from 1; null if there are none.",
    "line": "The line, from 1.",
    "query": "What was asked.",
    "content_hash": "The hash of all that it holds.",
}


def pages() -> Iterator[tuple[str, str]]:
    """What holds for all, and a page for each section of commands."""
    records = shapes()
    rows = []
    for title, commands in SECTIONS.items():
        at = f"json-{slug(title)}.md"
        names = [name for name in commands if name in records]
        links = {name: f"[`kb {name} --json`]({at}#kb-{name}---json)" for name in names}
        rows += [[link, commands[name]] for name, link in links.items()]
        yield (
            at,
            page(f"JSON: {title.lower()}", *(_document(name, records[name]) for name in names)),
        )
    yield "json.md", page("JSON", part("json"), table(("document", "of the command that"), rows))


def _document(name: str, records: list[tuple[str, Any]]) -> str:
    tables = []
    for where, record in records:
        place = f"`{where}`: " if where else ""
        tables += [f"{place}{flat(record.__doc__)}", _fields(record)]
    return "\n\n".join([f"## `kb {name} --json`", part(f"json/{name}"), *tables])


def _fields(record: type[Any]) -> str:
    hints, texts = _hints(record), meanings(record)
    rows = [
        [
            f"`{name}`",
            type_name(hints[name]),
            _in_json(texts.get(name) or _EVERYWHERE.get(name, "")),
        ]
        for name in record.__struct_encode_fields__
    ]
    return table(("field", "type", "what it says"), rows)


def _in_json(text: str) -> str:
    return re.sub(r"\bNone\b", "null", text)


def _hints(record: type[Any]) -> dict[str, Any]:
    """The types of the fields; a class that only type checkers import is known by its name."""
    names: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(record, localns=names, include_extras=True)
        except NameError as error:
            names[error.name] = type(error.name, (), {})
