"""`kb learn`: what can be learned, and what it says."""

import sys
from typing import assert_never

import click
from msgspec import Struct

from cli.home import texts_of
from cli.output import clean, print_json, warn
from cli.words import text
from kb.errors import ItemsFailed, KbError, NothingToLearn, UsageError
from kb.home.app import topics_of
from kb.knowledge.topics import LearnLimits, LearnRefusal, TopicRow, answer, topic_rows
from kb.knowledge.topics.records import BYTES_PER_TOKEN
from kb.knowledge.topics.render import topic_bullet
from kb.model.doc import OPERATOR


class Topics(Struct, frozen=True, kw_only=True):
    """What can be learned here."""

    topics: tuple[TopicRow, ...]


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
    topics = topics_of(*texts_of(ctx), OPERATOR)
    limits = LearnLimits(answer_bytes_max=max_tokens * BYTES_PER_TOKEN)
    if topic is None:
        _print_topics(topic_rows(topics, limits.entries_max), as_json=as_json)
        return
    found = answer(topics, topic, subjects or None, limits)
    if isinstance(found, LearnRefusal):
        raise _error(found)
    if as_json:
        print_json(found)
    else:
        print_text(found.text)
    for one in found.left_out:
        warn(f"{one.subject}: {one.reason}")
    for said in filter(None, (*found.warnings, found.truncated)):
        warn(said)
    if any(one.failed for one in found.left_out):
        raise ItemsFailed


def print_text(text: str) -> None:
    """Text to standard output, byte for byte unless a terminal shows it."""
    if sys.stdout.isatty():
        text = "".join(f"{clean(line)}\n" for line in text.split("\n")).removesuffix("\n")
    click.echo(text, nl=bool(text) and not text.endswith("\n"))


def _print_topics(rows: tuple[TopicRow, ...], *, as_json: bool) -> None:
    if as_json:
        print_json(Topics(topics=rows))
        return
    for row in rows:
        click.echo(clean(topic_bullet(row)))
    if not rows:
        warn("no topics are set up; a table [kb.topic.ID] in the settings makes one")


def _error(found: LearnRefusal) -> KbError:
    match found.kind:
        case "unknown_topic" | "no_match":
            return NothingToLearn(found.message, id="")
        case "invalid":
            return UsageError(found.message)
        case "unreadable":
            return KbError(found.message)
        case _:
            assert_never(found.kind)
