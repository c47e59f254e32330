"""`kb embedder`: which model embeds passages, and how to change it."""

from typing import TYPE_CHECKING

import click

from kb.errors import UsageError
from kb.operations import embedder
from kb.operations.embedder import ChangeEmbedderRequest
from kb.operations.work import workers_if
from kb_cli.home import open_app, open_to_read
from kb_cli.output import clean, many, print_json, warn
from kb_cli.words import text
from kb_cli.work import drain, progress_bar

if TYPE_CHECKING:
    from kb.home.app import App


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
    """Embed everything by another model: builtin, multilingual, a folder, or a name.

    A name is that of a sentence-transformers model, or ollama:NAME or openai:NAME of a server.
    An extra installs multilingual.
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
        embedder.roll_back(app)
    else:
        request = ChangeEmbedderRequest(
            model=model,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
            scripts=scripts,
        )
        embedder.change_embedder(app, request)
    with progress_bar(reads=False) as progress, workers_if(app, wanted=not no_wait) as workers:
        if workers is not None:
            drain(workers, progress)
    _show(app, as_json=as_json)


def _show(app: "App", *, as_json: bool) -> None:
    models = embedder.list_embedders(app)
    if as_json:
        print_json(models)
        return
    click.echo(_line("in use", models.active))
    if models.next:
        left = many(models.docs_left, "doc")
        click.echo(f"{_line('next', models.next)}, {left} left to embed")
        warn("searches go on with the model in use; kb worker --drain makes the rest")
    if models.previous:
        line = _line("before", models.previous)
        click.echo(f"{line}; kb embedder set --rollback brings it back")


def _line(word: str, fingerprint: str) -> str:
    return f"{word:>8}  {clean(fingerprint)}"
