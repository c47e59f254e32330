"""Which docs are asked: the options that every question has in common."""

import os
from collections.abc import Callable
from pathlib import Path
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
    return {**options, "sources": tuple(_place(source) for source in options["sources"])}


def id_or_path(typed: str) -> str:
    """What names a doc; the path of a file that is there is taken from here."""
    is_path = "/" in typed or "." in typed or typed.startswith("~")
    if is_path and os.path.exists(os.path.expanduser(typed)):
        return _place(typed)
    return typed


def _place(source: str) -> str:
    if "://" in source:
        return source
    from kb.operations.search import display_name

    return display_name(Path(os.path.realpath(os.path.expanduser(source))))
