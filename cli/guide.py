"""`kb guide`: how things are done here, by entries alone."""

import click

from cli.home import open_spaces
from cli.output import clean, print_json, warn
from cli.words import text
from kb.model.doc import OPERATOR


@click.command(name="guide")
@click.argument("question", type=text)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, question: str, as_json: bool) -> None:
    """Answer a question from entries: yours, the project's, and those that came with kb."""
    said = open_spaces(ctx).guide.guidance(question, OPERATOR)
    for warning in said.warnings:
        warn(warning)
    if as_json:
        print_json(said)
        return
    for chunk in said.chunks:
        title = click.style(clean(chunk.title), bold=True)
        click.echo(f"{title}  {click.style(chunk.zettel_id, fg='cyan')}  {clean(chunk.source)}")
        for line in chunk.content.strip().splitlines():
            click.echo(f"    {clean(line)}".rstrip())
        click.echo()
    if not said.found:
        warn(f"{said.message}; {said.suggestion}")
