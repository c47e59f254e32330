"""The pages of what commands print with `--json`, from the records that they encode."""

from collections.abc import Iterator
from typing import Any, get_type_hints

from kb_cli.main import SECTIONS

from reference.markdown import flat, meanings, page, part, slug, table, type_name
from reference.shapes import shapes


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
        [f"`{name}`", type_name(hints[name]), texts.get(name, "")]
        for name in record.__struct_encode_fields__
    ]
    return table(("field", "type", "what it says"), rows)


def _hints(record: type[Any]) -> dict[str, Any]:
    """The types of the fields; a class that only type checkers import is known by its name."""
    names: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(record, localns=names, include_extras=True)
        except NameError as error:
            names[error.name] = type(error.name, (), {})
