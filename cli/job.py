"""`kb job`: how it stands with work that was handed in."""

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from cli.answering import server_of
from cli.home import open_app, open_to_read
from cli.output import clean, print_json, warn
from kb.errors import UsageError
from kb.home.app import App
from kb.knowledge.notebook import JobReport, report, reports, retry

if TYPE_CHECKING:
    from kb.client.wire import Wire


class Jobs(Struct, frozen=True, kw_only=True):
    """Jobs that are not done, and the newest notes that are."""

    jobs: list[JobReport]


@click.command(name="job")
@click.argument("ident", metavar="ID|ls|retry ID")
@click.argument("again", required=False, metavar="")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most so many, with ls.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, again: str | None, limit: int, as_json: bool) -> None:
    """Say how it stands with a job, or list jobs: those that are not done, and notes that are.

    With retry, have one that failed for good tried once more.
    """
    if (again is not None) != (ident == "retry"):
        raise UsageError("say `kb job ID`, `kb job ls` or `kb job retry ID`")
    wire = server_of(ctx)
    if wire is not None:
        found = _found_there(wire, ident, again, limit)
    else:
        app = open_to_read(ctx) if again is None else open_app(ctx, create=False)
        found = _found(app, ident, again, limit)
    if as_json:
        print_json(Jobs(jobs=found) if ident == "ls" else found[0])
        return
    for one in found:
        said = one.path or one.subject
        click.echo(f"{click.style(one.job_id, fg='cyan')}  {one.kind} {one.status}  {clean(said)}")
        if one.reason:
            click.echo(f"{'':15}{clean(one.reason)}")
    if not found:
        warn("no jobs; kb note add TEXT hands in a note")


def _found_there(wire: "Wire", ident: str, again: str | None, limit: int) -> list[JobReport]:
    from kb.client.notebook import job, jobs, tried_again

    if again is not None:
        return [tried_again(wire, again)]
    return jobs(wire, limit) if ident == "ls" else [job(wire, ident)]


def _found(app: App, ident: str, again: str | None, limit: int) -> list[JobReport]:
    if again is not None:
        with app.store.write() as writing:
            return [retry(writing, again)]
    with app.store.read() as txn:
        return reports(txn, limit) if ident == "ls" else [report(txn, ident)]
