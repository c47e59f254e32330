"""`kb guide`: how things are done here, by entries alone."""

import click

from kb.operations.guide import GUIDE, GuideRequest
from kb_cli.answering import answer as answer_of
from kb_cli.output import clean, print_json, warn
from kb_cli.words import text


@click.command(name="guide")
@click.argument("question", type=text)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, question: str, as_json: bool) -> None:
    """Answer a question from entries: yours, the project's, and those that came with kb."""
    answer, _ = answer_of(ctx, GUIDE, GuideRequest(query=question))
    for warning in answer.warnings:
        warn(warning)
    if as_json:
        print_json(answer)
        return
    for chunk in answer.chunks:
        title = click.style(clean(chunk.title), bold=True)
        click.echo(f"{title}  {click.style(chunk.zettel_id, fg='cyan')}  {clean(chunk.source)}")
        for line in chunk.content.strip().splitlines():
            click.echo(f"    {clean(line)}".rstrip())
        click.echo()
    if not answer.found:
        warn(f"{answer.message}; {answer.suggestion}")
