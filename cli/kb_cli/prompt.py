"""`kb prompt`: what a system prompt says of topics."""

import click

from kb.operations.topics_here import prompt_section
from kb_cli.home import texts_of
from kb_cli.learn import print_text
from kb_cli.output import print_json, warn
from kb_cli.words import text


@click.command(name="prompt")
@click.option(
    "-k",
    "--knowledge",
    "patterns",
    metavar="TOPIC/GLOB",
    type=text,
    multiple=True,
    help="Have these subjects learned from the start, too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, patterns: tuple[str, ...], as_json: bool) -> None:
    """Print the section of a system prompt that tells of topics; nothing where there is none."""
    section = prompt_section(*texts_of(ctx), patterns)
    if as_json:
        print_json(section)
    else:
        print_text(section.text)
    for warning in section.warnings:
        warn(warning)
