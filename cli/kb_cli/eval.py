"""`kb eval`: measure how well questions are answered whose docs are known."""

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import click
import msgspec

from kb.errors import ItemsFailed, UsageError
from kb.operations import evaluate
from kb.operations.evaluate import EvalReport, Question
from kb_cli.home import open_app, open_to_read
from kb_cli.output import clean, many, print_json, warn
from kb_cli.words import text

_CHANGED_SHOWN = 10


@click.command(name="eval")
@click.argument("file", type=click.Path(), required=False)
@click.option(
    "--try",
    "tried",
    multiple=True,
    metavar="KEY=VALUE,…",
    type=text,
    help="Also with these settings of `search`; rerank=true reranks.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    type=text,
    help="Also with this model, named as for kb embedder set.",
)
@click.option("--gathered", is_flag=True, help="Print the questions of the page, as FILE has them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    file: str | None,
    tried: tuple[str, ...],
    models: tuple[str, ...],
    gathered: bool,
    as_json: bool,
) -> None:
    """Measure how well a home answers questions whose docs you know.

    FILE has a question a line, with ids or paths of the docs that answer it, as in
    {"query": "when may I keep a cat?", "docs": ["papers/lease.md"]}; - for stdin.
    Without FILE they are those that were answered on the page, by "This was the one".
    Another model embeds every passage first, which may take long; Ctrl-C loses nothing.
    """
    app = open_app(ctx, create=False) if models else open_to_read(ctx)
    if gathered:
        for question in evaluate.gathered(app):
            click.echo(msgspec.json.encode(question).decode())
        return
    variants = evaluate.variants_of(app.settings, tried, models)
    with contextlib.ExitStack() as stack:
        questions: Iterable[Question | str] = evaluate.gathered(app) if file is None else ()
        if file is not None:
            lines = sys.stdin if file == "-" else stack.enter_context(_opened(file))
            questions = evaluate.questions_of(lines)
        elif not questions:
            raise UsageError('nobody has said "This was the one" on the page; give a FILE')
        for model in models:
            warn(f"{clean(model)} embeds every passage first; what it made is kept")
        report = evaluate.run(app, questions, variants)
    if as_json:
        print_json(report)
    else:
        _print(report)
    for problem in report.problems:
        warn(clean(problem))
    if report.problems:
        raise ItemsFailed(f"{many(len(report.problems), 'problem')} with the questions")


def _opened(name: str) -> TextIO:
    try:
        return Path(name).open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from error


def _print(report: EvalReport) -> None:
    click.echo(many(report.questions, "question"))
    width = max(len(row.variant) for row in report.rows)
    head = f"{'':{width}}  nDCG@10  recall@100  MRR@10  better  worse      ms"
    click.echo(head)
    for row in report.rows:
        click.echo(
            f"{clean(row.variant):{width}}  {row.ndcg_at_10:7.3f}  {row.recall_at_100:10.3f}"
            f"  {row.mrr_at_10:6.3f}  {row.better:6}  {row.worse:5}  {row.query_ms_p50:6.1f}"
        )
    for change in report.changed[:_CHANGED_SHOWN]:
        places = " to ".join(str(place or "-") for place in (change.before, change.after))
        click.echo(f"{places:>10}  {clean(change.variant)}: {clean(change.query)}")
