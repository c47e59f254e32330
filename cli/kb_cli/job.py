"""`kb job`: how it stands with work that was handed in."""

from typing import TYPE_CHECKING

import click

from kb.errors import UsageError
from kb.operations import jobs
from kb.operations.jobs import JobList
from kb_cli.answering import server_of
from kb_cli.home import open_app, open_to_read
from kb_cli.output import clean, print_json, warn

if TYPE_CHECKING:
    from kb.client.http_client import ServerClient
    from kb.home.app import App
    from kb.operations.jobs import JobInfo


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
        raise UsageError("give `kb job ID`, `kb job ls` or `kb job retry ID`")
    client = server_of(ctx)
    if client is not None:
        rows = _asked_of_server(client, ident, again, limit)
    else:
        app = open_to_read(ctx) if again is None else open_app(ctx, create=False)
        rows = _asked_of_home(app, ident, again, limit)
    if as_json:
        print_json(JobList(jobs=rows) if ident == "ls" else rows[0])
        return
    for row in rows:
        subject = row.path or row.subject
        job_id = click.style(row.job_id, fg="cyan")
        click.echo(f"{job_id}  {row.kind} {row.status}  {clean(subject)}")
        if row.reason:
            click.echo(f"{'':15}{clean(row.reason)}")
    if not rows:
        warn("no jobs; kb note add TEXT hands in a note")


def _asked_of_server(
    client: "ServerClient", ident: str, again: str | None, limit: int
) -> "list[JobInfo]":
    from kb.client import notebook

    if again is not None:
        return [notebook.tried_again(client, again)]
    return notebook.jobs(client, limit) if ident == "ls" else [notebook.job(client, ident)]


def _asked_of_home(app: "App", ident: str, again: str | None, limit: int) -> "list[JobInfo]":
    if again is not None:
        return [jobs.retry_job(app, again)]
    return jobs.list_jobs(app, limit).jobs if ident == "ls" else [jobs.show_job(app, ident)]
