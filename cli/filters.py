"""Which docs are asked: the options that every question has in common."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, get_args

import click

from cli.words import text
from kb.model.doc import Kind

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--tag", "tags", type=text, multiple=True, help="Only docs with this tag (all of them)."
    ),
    click.option(
        "--kind", "kinds", multiple=True, type=click.Choice(get_args(Kind)), help="Only these."
    ),
    click.option("--doc", "doc_ids", multiple=True, metavar="ID", help="Only these docs."),
    click.option("--pack", "packs", type=text, multiple=True, help="Only docs of these packs."),
)


def which_docs(command: _F) -> _F:
    """Give a command --tag, --kind, --doc and --pack, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
