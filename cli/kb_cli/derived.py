"""A command that is its operation: an option for each field of the request, a table of the result.

For operations that need no words of their own on a terminal.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kb_cli.answering import answer
from kb_cli.filters import METAVARS, from_here
from kb_cli.options import request_of, request_options
from kb_cli.output import cells, clean, print_json, warn

if TYPE_CHECKING:
    from kb.operations.operation import Operation


def command_of(operation: "Operation") -> click.Command:
    """The command of an operation whose request has no field that must be given."""
    fields = operation.request.__struct_fields__

    @click.command(
        name=operation.name,
        help=operation.summary,
        epilog=f"\b\nExample: {operation.example}",
    )
    @request_options(operation.request, *fields, metavars=METAVARS)
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.pass_context
    def command(ctx: click.Context, /, as_json: bool, **options: Any) -> None:
        if "sources" in options:
            options = from_here(options)
        result, _ = answer(ctx, operation, request_of(operation.request, **options))
        document = msgspec.to_builtins(result)
        for warning in document.pop("warnings", ()):
            warn(warning)
        if as_json:
            print_json(result)
            return
        lines = list(lines_of(document))
        for line in lines:
            click.echo(line)
        if not lines:
            warn("there is nothing to list")

    return command


def lines_of(document: dict[str, Any]) -> Iterator[str]:
    """A result for a person: each list of rows under its name, each number beside its name.

    What is empty or none is left out.
    """
    for name, value in document.items():
        title = name.replace("_", " ")
        if isinstance(value, list | tuple) and value:
            yield f"{title}:"
            yield from _table(value)
        elif value:
            yield f"{title}: {_cell(value)}"


def _table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    names = list(rows[0])
    body = [[_cell(row[name]) for name in names] for row in rows]
    head = [name.replace("_", " ") for name in names]
    widths = [max(cells(row[place]) for row in (head, *body)) for place in range(len(names))]
    is_number = [isinstance(rows[0][name], int) for name in names]
    for row in (head, *body):
        columns = (
            " " * (width - cells(text)) + text if right else text + " " * (width - cells(text))
            for text, width, right in zip(row, widths, is_number, strict=True)
        )
        yield f"  {'  '.join(columns)}".rstrip()


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else clean(str(value))
