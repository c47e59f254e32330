"""`kb open`: the source of a doc or a passage, in the editor or the browser."""

import os
import shlex

import click
import msgspec

from kb.operations import source_place
from kb.operations.show import ShowRequest
from kb_cli.editor import command_for, run_program
from kb_cli.filters import id_or_path
from kb_cli.home import open_spaces
from kb_cli.output import clean, warn


@click.command(name="open")
@click.argument("ident", metavar="ID|PATH")
@click.option("--print", "only_print", is_flag=True, help="Print the command, and run nothing.")
@click.pass_context
def command(ctx: click.Context, ident: str, only_print: bool) -> None:
    """Open the file of a doc or a passage in your editor, at the line; a page in the browser.

    A part of the file's path will do where no other doc has it, and :LINE may follow it. The editor
    is VISUAL, else EDITOR. Without one, and for what is no text, the program that your desktop has.
    """
    named, line = id_or_path(ident)
    spaces = open_spaces(ctx)
    place = source_place.run(spaces, ShowRequest(id=named), spaces.caller)
    if line is not None and place.line is None:
        place = msgspec.structs.replace(place, line=line)
    for warning in place.warnings:
        warn(warning)
    if place.line is not None and place.freshness == "changed":
        warn("the file has changed since kb read it, so that the line may be another")
    argv = command_for(place, os.environ)
    if only_print:
        click.echo(clean(shlex.join(argv)))
        return
    run_program(argv)
