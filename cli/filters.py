"""Which docs are asked: the options that every question has in common."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import click

from cli.words import text
from kb.model.doc import Kind
from kb.model.source import display_name

_F = TypeVar("_F", bound=Callable[..., Any])


def _place(said: str) -> str:
    """What a doc's source begins with: a path is taken from here, as `kb add` takes it."""
    if "://" in said:
        return said
    return display_name(Path(os.path.realpath(os.path.expanduser(said))))


source_option: Final = click.option(
    "--source",
    "sources",
    type=text,
    multiple=True,
    metavar="PLACE",
    callback=lambda _, __, places: tuple(map(_place, places)),
    help="Only docs from this file, folder or address, or from below it.",
)
_OPTIONS: Final = (
    click.option(
        "--tag", "tags", type=text, multiple=True, help="Only docs with this tag (all of them)."
    ),
    click.option(
        "--kind", "kinds", multiple=True, type=click.Choice(get_args(Kind)), help="Only these."
    ),
    click.option("--doc", "doc_ids", multiple=True, metavar="ID", help="Only these docs."),
    click.option("--pack", "packs", type=text, multiple=True, help="Only docs of these packs."),
    source_option,
)


def which_docs(command: _F) -> _F:
    """Give a command --tag, --kind, --doc, --pack and --source, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
