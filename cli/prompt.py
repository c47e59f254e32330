"""`kb prompt`: what a system prompt says of topics."""

import click

from cli.home import texts_of
from cli.learn import print_text
from cli.output import print_json, warn
from cli.words import text
from kb.home.app import topics_of
from kb.knowledge.topics import knowledge_section, with_learned
from kb.model.doc import OPERATOR


@click.command(name="prompt")
@click.option(
    "-k",
    "--knowledge",
    "wishes",
    metavar="TOPIC/GLOB",
    type=text,
    multiple=True,
    help="Have these subjects learned from the start, too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, wishes: tuple[str, ...], as_json: bool) -> None:
    """Print the section of a system prompt that tells of topics; nothing where there is none."""
    found = knowledge_section(with_learned(topics_of(*texts_of(ctx), OPERATOR), wishes))
    if as_json:
        print_json(found)
    else:
        print_text(found.text)
    for said in found.warnings:
        warn(said)
