"""`kb migrate`: a whole home, from a folder into a database or back."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from kb.errors import ItemsFailed
from kb.operations import migrate
from kb.operations.migrate import MigrateRequest
from kb_cli.home import home_named
from kb_cli.output import clean, many, print_json, warn

if TYPE_CHECKING:
    from kb.operations.migrate import MigrateProgress, MigrateResult

_LINES_MAX: Final = 20
_SHOWN_EVERY_S: Final = 0.2


@click.command(name="migrate")
@click.option("--from", "source", required=True, metavar="HOME", help="The home that is copied.")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="HOME",
    help="A new or empty folder, or postgresql://USER@HOST/DATABASE/NAME.",
)
@click.option("--dry-run", is_flag=True, help="Read all of it, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, source: str, target: str, dry_run: bool, as_json: bool) -> None:
    """Copy a whole home into a database, or back into a folder.

    All comes along as it is, and nothing is embedded anew. The source stays as it is. Exit 3 where
    something of it could not be read.
    """
    os.umask(0o077)
    request = MigrateRequest(source=home_named(ctx, source), target=target, dry_run=dry_run)
    with _shown() as tell:
        done = migrate.run(request, tell)
    if as_json:
        print_json(done)
    else:
        click.echo(clean(_line(done)))
    for problem in done.copied.problems[:_LINES_MAX]:
        warn(problem)
    if len(done.copied.problems) > _LINES_MAX:
        warn(f"... and {len(done.copied.problems) - _LINES_MAX:,} more")
    if done.commits_missed:
        changes = many(done.commits_missed, "change")
        warn(f"{done.source} was written to meanwhile; the copy is without {changes}")
    if done.copied.problems:
        lacking = many(len(done.copied.problems), "finding")
        raise ItemsFailed(f"{lacking} in {done.source}; `kb check` there says what is wrong")


def _line(done: "MigrateResult") -> str:
    copied = done.copied
    parts = (
        many(copied.docs, "doc"),
        many(copied.passages, "passage"),
        many(copied.files, "file"),
        many(copied.records, "record"),
    )
    verb = "would be copied" if done.dry_run else "copied"
    return f"{done.target}: {', '.join(parts)} {verb} from {done.source}"


@contextmanager
def _shown() -> "Iterator[Callable[[MigrateProgress], None]]":
    """Shows on standard error how far it is, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    shown_s = 0.0

    def tell(progress: "MigrateProgress") -> None:
        nonlocal shown_s
        now_s = time.monotonic()
        if now_s - shown_s >= _SHOWN_EVERY_S:
            shown_s = now_s
            of = f" of {progress.total:,}" if progress.total is not None else ""
            click.echo(f"\r\x1b[K{progress.stage}: {progress.done:,}{of}", err=True, nl=False)

    try:
        yield tell
    finally:
        if shown_s:
            click.echo("\r\x1b[K", err=True, nl=False)
