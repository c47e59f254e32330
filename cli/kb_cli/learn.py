"""`kb learn`: what can be learned, and what it says."""

import sys
from typing import Final

import click

from kb.errors import ItemsFailed
from kb.operations.topics_here import TopicList, learn, list_topics, topic_bullet
from kb_cli.home import texts_of
from kb_cli.output import clean, print_json, warn
from kb_cli.words import text

NO_TOPICS: Final = "no topics are set up; a table [kb.topic.ID] in the settings makes one"


@click.command(name="learn")
@click.argument("topic", type=text, required=False)
@click.argument("subjects", metavar="[GLOB]...", type=text, nargs=-1)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=8_000,
    show_default=True,
    help="About how much it may print, at four bytes to a token.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context, topic: str | None, subjects: tuple[str, ...], max_tokens: int, as_json: bool
) -> None:
    """List the topics, the subjects of TOPIC, or print those that a GLOB means."""
    home, settings = texts_of(ctx)
    if topic is None:
        _print_topics(list_topics(home, settings, max_tokens), as_json=as_json)
        return
    learned = learn(home, settings, topic, subjects, max_tokens)
    if as_json:
        print_json(learned)
    else:
        print_text(learned.text)
    for part in learned.left_out:
        warn(f"{part.subject}: {part.reason}")
    for warning in filter(None, (*learned.warnings, learned.truncated)):
        warn(warning)
    if any(part.failed for part in learned.left_out):
        raise ItemsFailed


def print_text(text: str) -> None:
    """Text to standard output, byte for byte unless a terminal shows it."""
    if sys.stdout.isatty():
        text = "".join(f"{clean(line)}\n" for line in text.split("\n")).removesuffix("\n")
    click.echo(text, nl=bool(text) and not text.endswith("\n"))


def _print_topics(topics: TopicList, *, as_json: bool) -> None:
    if as_json:
        print_json(topics)
        return
    for row in topics.topics:
        click.echo(clean(topic_bullet(row)))
    if not topics.topics:
        warn(NO_TOPICS)
