"""Which docs are asked: the options that every question has in common."""

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from kb.operations.search import NOTHING_HERE, Filters
from kb_cli.options import request_options
from kb_cli.words import text

_F = TypeVar("_F", bound=Callable[..., Any])
_NAMES: Final = Filters.__struct_fields__
NO_DOCS: Final = f"{NOTHING_HERE}; add some with: kb add FOLDER"
"""For an answer from a home without docs."""
_DOCS: Final = ("doc_ids", "linked_to", "links_from")
METAVARS: Final = {
    "sources": "PLACE",
    "site_versions": "VERSION",
    "since": "DATE",
    "until": "DATE",
    "sender": "PERSON",
    "recipient": "PERSON",
    **dict.fromkeys(_DOCS, "ID|PATH"),
}


def which_docs(command: _F) -> _F:
    """Give a command an option for each filter."""
    on = click.option("--on", metavar="DATE", type=text, help="Only docs of this day or period.")
    return request_options(Filters, *_NAMES, metavars=METAVARS)(on(command))


def from_here(options: dict[str, Any]) -> dict[str, Any]:
    """A command's options, with paths taken from here and days counted from today."""
    options = {"on": None, **options}
    if any(options[name] for name in ("since", "until", "on")):
        import datetime as dt

        from kb.operations.days import with_days

        # The day is the person's own.
        options = with_days(options, dt.datetime.now().astimezone().date())
    del options["on"]
    if not any(options[name] for name in ("sources", *_DOCS)):
        return options
    from kb.operations.locate import place_from_here, source_named

    docs = {name: tuple(map(place_from_here, options[name])) for name in _DOCS}
    return {**options, **docs, "sources": tuple(map(source_named, options["sources"]))}


def id_or_path(typed: str) -> tuple[str, int | None]:
    """What names a doc, and the line behind it, as hits are printed; PATH alone has none.

    The path of a file that is there is taken from here.
    """
    from kb.operations.locate import place_from_here

    path, line = _without_line(typed)
    return place_from_here(path), line


def _without_line(typed: str) -> tuple[str, int | None]:
    path, _, line = typed.rpartition(":")
    is_place = path and line.isdecimal() and not os.path.exists(os.path.expanduser(typed))
    return (path, int(line)) if is_place and "://" not in typed else (typed, None)
