"""`kb prompt`: what a system prompt says of topics."""

import click

from kb.operations.topics_here import list_topics, prompt_section
from kb_cli.home import texts_of
from kb_cli.learn import NO_TOPICS, print_text
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
    """Print the section of a system prompt that tells of topics; nothing where there are none."""
    home, settings = texts_of(ctx)
    section = prompt_section(home, settings, patterns)
    if as_json:
        print_json(section)
    else:
        print_text(section.text)
    for warning in section.warnings:
        warn(warning)
    if not (section.text or section.warnings):
        there = list_topics(home, settings, 1).topics
        warn("no topic has a subject to tell of; kb learn lists the topics" if there else NO_TOPICS)
