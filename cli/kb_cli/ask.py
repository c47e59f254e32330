"""`kb ask`: an answer from the passages, every sentence with its citation."""

import sys
from typing import Any

import click

from kb.operations.ask import ASK, SOURCES, Answer, AskRequest, Source
from kb.operations.search import NOTHING_HERE
from kb_cli.answering import answer as answer_of
from kb_cli.filters import NO_DOCS, from_here, which_docs
from kb_cli.options import request_of, request_options
from kb_cli.output import clean, print_json, warn
from kb_cli.words import text

_EXTRACTS = "Extracts from the sources, which no language model has read:"


@click.command(name="ask")
@click.argument("words", nargs=-1, required=True, metavar="QUESTION...", type=text)
@request_options(AskRequest, "k", "max_tokens")
@which_docs
@click.option("--no-model", is_flag=True, help="Quote the sources; ask no language model.")
@click.option("--raw", is_flag=True, help="Print the sources as JSON, and ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    no_model: bool,
    raw: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Answer a question from what is here, each sentence with its sources.

    All words are the question. One that begins with - needs quotes around it all, or -- before.
    """
    request = request_of(
        AskRequest,
        question=" ".join(words),
        **from_here(options),
        with_text=True,
        with_model=not no_model,
    )
    if raw:
        print_json(answer_of(ctx, SOURCES, request)[0])
        return
    parts: list[str] = []
    streams = sys.stdout.isatty() and not as_json

    def hear(part: str) -> None:
        parts.append(part)
        _show(part)

    heard: dict[str, Any] = {"hear": hear} if streams else {}
    answer, _ = answer_of(ctx, ASK, request, **heard)
    if as_json:
        print_json(answer)
        return
    if parts:
        click.echo()
    if answer.kind == "extracts" or not parts:
        _show_whole(answer)
    _show_sources(answer)
    for warning in answer.warnings:
        warn(NO_DOCS if warning == NOTHING_HERE else warning)


def _show_whole(answer: Answer) -> None:
    if answer.kind == "extracts" and answer.found:
        click.echo(click.style(_EXTRACTS, dim=True))
    _show(answer.answer + "\n")


def _show(part: str) -> None:
    """Text as it is, but for what could drive a terminal; at once, for it may be a part."""
    click.echo("\n".join(clean(line) for line in part.split("\n")), nl=False)
    sys.stdout.flush()


def _show_sources(answer: Answer) -> None:
    """Those that are cited."""
    cited = {n for sentence in answer.sentences for n in sentence.citations}
    if cited:
        click.echo()
    for source in answer.sources:
        if source.n in cited:
            click.echo(
                f"[{source.n}] {click.style(clean(source.title), bold=True)}  {_place(source)}"
            )


def _place(source: Source) -> str:
    shown = click.style(clean(source.location), fg="green")
    return f"{shown}  {click.style(source.doc_id[:9], dim=True)}"
