"""`kb serve`: the home over HTTP, with its workers."""

import logging
import os
import signal
import sys

import click
import msgspec

from kb.operations.tokens import local_token
from kb.serve.access_log import LogFormat
from kb_cli.home import open_spaces
from kb_cli.output import warn


@click.command(name="serve")
@click.option("--host", help="Where to listen, instead of serve.host.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Instead of serve.port; 0 takes a free one."
)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    help="How many processes answer, instead of serve.processes.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, 64),
    help="How many threads work on jobs, instead of work.threads; 0 leaves that to `kb worker`.",
)
@click.option(
    "--log",
    "form",
    type=click.Choice(["json", "text"]),
    default="text",
    show_default=True,
    help="The form of the line that each request gets on standard error.",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="Want no token: whoever is on this machine, any user and any program, then reads and "
    "writes as you, until `kb token add` has made one.",
)
@click.option("--child", type=int, hidden=True)
@click.pass_context
def command(
    ctx: click.Context,
    host: str | None,
    port: int | None,
    processes: int | None,
    workers: int | None,
    form: LogFormat,
    no_token: bool,
    child: int | None,
) -> None:
    """Answer over HTTP and work on what is still to do, until stopped (Ctrl-C or SIGTERM)."""
    from kb.serve.serving import serve

    # Its own threads would wait for each other where many ask at once; read when numpy loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    spaces = open_spaces(ctx, leads=True)
    app = spaces.first
    if workers is not None:
        work = msgspec.structs.replace(app.settings.work, threads=workers)
        app.settings = msgspec.structs.replace(app.settings, work=work)
    serve_settings = app.settings.serve
    serve_settings = msgspec.structs.replace(
        serve_settings,
        host=serve_settings.host if host is None else host,
        port=serve_settings.port if port is None else port,
        processes=serve_settings.processes if processes is None else processes,
    )
    _tell_faults(form)
    ended = serve(
        spaces,
        serve_settings,
        stream=sys.stderr,
        form=form,
        on_ready=_say,
        own=None if no_token else local_token(),
        again=("kb_cli", *sys.argv[1:]),
        child=child,
    )
    if not ended.is_heard:
        os._exit(130 if ended.by == signal.SIGINT else 0)
    if not ended.is_quiet:
        warn("a request or a worker was still busy; a job is done again by the next worker")
        # Its thread uses the store, so that this is not closed under it, and nobody waits for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130 if ended.by == signal.SIGINT else 0)
    if ended.by == signal.SIGINT:
        raise KeyboardInterrupt


def _say(address: str, link: str | None) -> None:
    """The address on standard output, at once, for whoever started this waits for it.

    A link goes to a person alone: what is no terminal may be a log that others read.
    """
    click.echo(f"kb answers at {address}")
    if link is not None and sys.stdout.isatty():
        click.echo(f"its page opens by {address}{link}, once")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        row = {"level": record.levelname, "logger": record.name, "message": record.getMessage()}
        return msgspec.json.encode(row).decode()


def _tell_faults(form: LogFormat) -> None:
    """Have the warnings of the workers in the form of the other lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        _JsonFormatter() if form == "json" else logging.Formatter("%(name)s: %(message)s")
    )
    logging.getLogger("kb").addHandler(handler)
