"""Which docs are asked: the options that every question has in common."""

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kb.operations.search import NOTHING_HERE, Filters
from kb_cli.options import request_options

_F = TypeVar("_F", bound=Callable[..., Any])
_NAMES: Final = Filters.__struct_fields__
NO_DOCS: Final = f"{NOTHING_HERE}; add some with: kb add FOLDER"
"""For an answer from a home without docs."""
METAVARS: Final = {"doc_ids": "ID", "sources": "PLACE"}


def which_docs(command: _F) -> _F:
    """Give a command an option for each filter."""
    return request_options(Filters, *_NAMES, metavars=METAVARS)(command)


def with_places(options: dict[str, Any]) -> dict[str, Any]:
    """A command's options; a path among the sources is taken from here, as `kb add` takes it."""
    if not options["sources"]:
        return options
    from kb.operations.locate import source_named

    return {**options, "sources": tuple(source_named(source) for source in options["sources"])}


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
