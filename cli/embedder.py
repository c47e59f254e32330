"""`kb embedder`: which model embeds passages, and how to change it."""

from functools import partial
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from cli.home import open_app, open_to_read
from cli.output import clean, many, print_json, warn
from cli.words import text
from cli.work import drain, progress_bar, working
from kb.errors import UsageError
from kb.home.app import App
from kb.model.embedder import EmbedderChoice, EmbedderSet, EmbedderSpec
from kb.store.jobs import queue

_BUILTIN: Final = "builtin"
_HASHING: Final = "hashing"
_ONNX: Final = "onnx:"
_ST: Final = "sentence-transformers:"


class Embedders(Struct, frozen=True, kw_only=True):
    """The models of a home, by fingerprint."""

    active: str
    next: str | None
    """Its vectors are being made; searches use it once all are there."""
    docs_left: int
    """Docs that the next model still has to embed."""
    previous: str | None
    """What `kb embedder set --rollback` brings back."""


@click.group(name="embedder", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show which model embeds passages, which is to follow it, and which went before."""
    if ctx.invoked_subcommand is None:
        _show(open_to_read(ctx), as_json=as_json)


@command.command(name="set")
@click.argument("model", required=False, type=text)
@click.option("--query-prefix", type=text, default="", help="What the model wants before a query.")
@click.option(
    "--passage-prefix", type=text, default="", help="What the model wants before a passage."
)
@click.option(
    "--script", "scripts", type=text, multiple=True, help="A script that the model reads; else all."
)
@click.option("--rollback", is_flag=True, help="Stop a change, or undo the last one.")
@click.option("--no-wait", is_flag=True, help="Leave the work to kb worker.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def change(
    ctx: click.Context,
    model: str | None,
    query_prefix: str,
    passage_prefix: str,
    scripts: tuple[str, ...],
    rollback: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Embed everything by another model: builtin, a folder, or a sentence-transformers name.

    Without MODEL, by the one that the settings ask for. Searches go on with the model in use
    until the last passage is embedded. Ctrl-C loses nothing; `kb worker` goes on.
    """
    named = (query_prefix, passage_prefix, scripts) != ("", "", ())
    if rollback and (model is not None or named):
        raise UsageError("--rollback takes no model")
    if named and model is None:
        raise UsageError("prefixes and scripts go with a MODEL")
    app = open_app(ctx, create=True)
    if rollback:
        from kb.intake.worker.embedders import roll_back

        roll_back(app.store)
    else:
        choice = model and _choice(model, query_prefix, passage_prefix, scripts)
        app.models.change_to(choice or None)
    with progress_bar() as progress, working(app, wait=not no_wait) as pool:
        if pool is not None:
            drain(app, pool, progress)
    _show(app, as_json=as_json)


def _choice(
    model: str, query_prefix: str, passage_prefix: str, scripts: tuple[str, ...]
) -> EmbedderChoice:
    """What a person's word for a model means."""
    prefixed = partial(EmbedderChoice, query_prefix=query_prefix, passage_prefix=passage_prefix)
    folder = Path(model.removeprefix(_ONNX)).expanduser()
    if model == _HASHING:
        return EmbedderChoice(kind="hashing")
    if model == _BUILTIN:
        return prefixed(kind="onnx")
    if model.startswith(_ONNX) or (folder / "model.json").is_file():
        return prefixed(kind="onnx", model=str(folder.absolute()))
    name = model.removeprefix(_ST)
    place = Path(name).expanduser()
    if place.is_dir():
        name = str(place.absolute())
    return prefixed(kind="sentence-transformers", model=name, scripts=scripts)


def _show(app: App, *, as_json: bool) -> None:
    known: EmbedderSet = app.models.in_use()
    with app.store.read() as txn:
        left = queue.count_of_kind(txn, "reembed") if known.next else 0
    if as_json:
        shown = Embedders(
            active=known.active.fingerprint,
            next=known.next.fingerprint if known.next else None,
            docs_left=left,
            previous=known.previous.fingerprint if known.previous else None,
        )
        print_json(shown)
        return
    click.echo(_line("in use", known.active))
    if known.next:
        click.echo(f"{_line('next', known.next)}, {many(left, 'doc')} left to embed")
        warn("searches go on with the model in use; kb worker --drain makes the rest")
    if known.previous:
        click.echo(f"{_line('before', known.previous)}; kb embedder set --rollback brings it back")


def _line(word: str, spec: EmbedderSpec) -> str:
    return f"{word:>8}  {clean(spec.fingerprint)}"
