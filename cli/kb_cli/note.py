"""`kb note`: the notebook, as a group of commands."""

import datetime as dt
import os
import sys
from typing import TYPE_CHECKING

import click

from kb.errors import KbError, NotPushed
from kb.operations import jobs, notes
from kb.operations.notes import NOTE_BYTES_MAX, AddNoteRequest
from kb.operations.work import Workers
from kb_cli.answering import server_of
from kb_cli.home import open_app, open_standing, open_to_read
from kb_cli.output import clean, confirm, many, print_json, warn
from kb_cli.pushes import push_line
from kb_cli.tidiness import Untidy, findings_of, print_tidy
from kb_cli.words import text as as_text
from kb_cli.work import drain, progress_bar

if TYPE_CHECKING:
    from kb.client.http_client import ServerClient
    from kb.home.app import App
    from kb.operations.jobs import JobInfo
    from kb.operations.notes import PushResult

_LOG_MAX = 10_000
NO_NOTES = "no notes yet; kb note add TEXT makes the first"


@click.group(name="note")
def command() -> None:
    """Keep notes in a git repository of markdown, which can be searched as everything else."""


@command.command(name="add")
@click.argument("text", metavar="[TEXT|-]", default="-")
@click.option("--hint", type=as_text, help="Where it belongs: a folder, or words that name one.")
@click.option("--tag", "tags", type=as_text, multiple=True, metavar="T", help="A tag.")
@click.option("--wait", is_flag=True, help="Place it now, and print its path.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def add(
    ctx: click.Context,
    text: str,
    hint: str | None,
    tags: tuple[str, ...],
    wait: bool,
    as_json: bool,
) -> None:
    """Hand in a note, from the command line or standard input, and print the id of its job.

    `kb worker` places it, or whatever works next.
    """
    data = sys.stdin.buffer.read(NOTE_BYTES_MAX + 1) if text == "-" else os.fsencode(text)
    client = server_of(ctx)
    if client is not None:
        job = _add_by_server(client, data, hint, tags, wait=wait)
    else:
        request = AddNoteRequest(data=data, hint=hint, tags=tags)
        job = _add_here(open_app(ctx, create=True), request, wait=wait)
    if as_json:
        print_json(job)
    else:
        click.echo(clean(job.path or job.job_id))
    if wait:
        _check_placed(job)


def _add_by_server(
    client: "ServerClient", data: bytes, hint: str | None, tags: tuple[str, ...], *, wait: bool
) -> "JobInfo":
    from kb.client.notebook import hand_in, job
    from kb.client.waiting import job_done

    job_id = hand_in(client, data, hint, tags)
    return job_done(client, job_id) if wait else job(client, job_id)


def _add_here(app: "App", request: AddNoteRequest, *, wait: bool) -> "JobInfo":
    job_id = notes.add_note(app, request)
    if wait:
        with progress_bar(reads=False) as progress, Workers(app) as workers:
            drain(workers, progress)
    return jobs.show_job(app, job_id)


@command.command(name="ls")
@click.option("--tag", "tags", type=as_text, multiple=True, metavar="T", help="Only with this tag.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    help="How many are wanted; 0 for all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def list_(ctx: click.Context, tags: tuple[str, ...], limit: int, as_json: bool) -> None:
    """List notes by their paths in the notebook, the newest change first."""
    client = server_of(ctx)
    if client is not None:
        from kb.client.notebook import notes as notes_of

        page = notes_of(client, tags, limit)
    else:
        app = open_to_read(ctx)
        page = notes.list_notes(app, tags, limit, app.caller)
    if as_json:
        print_json(page)
        return
    for row in page.notes:
        shown = "".join(f" #{clean(tag)}" for tag in row.tags)
        title = f"{clean(row.title)}{click.style(f' {shown}', dim=True) if shown else ''}"
        click.echo(f"{click.style(clean(row.path), fg='cyan')}  {title}")
    if len(page.notes) < page.total:
        warn(f"{many(page.total - len(page.notes), 'more note')}; --limit 0 lists all")
    if not page.notes:
        warn("no notes match" if tags else NO_NOTES)


@command.command(name="get")
@click.argument("path")
@click.pass_context
def get(ctx: click.Context, path: str) -> None:
    """Print a note, by its path in the notebook."""
    client = server_of(ctx)
    if client is not None:
        from kb.client.notebook import note

        data = note(client, path)
    else:
        app = open_to_read(ctx)
        data = notes.read_note(app, path, app.caller)
    if sys.stdout.isatty():
        from kb_cli.learn import print_text

        print_text(data.decode("utf-8", "replace"))
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@command.command(name="log")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(1, _LOG_MAX),
    default=20,
    show_default=True,
    help="How many commits.",
)
@click.pass_context
def show_log(ctx: click.Context, limit: int) -> None:
    """List what was done in the notebook, the newest first."""
    pushed: PushResult | None = None
    client = server_of(ctx)
    if client is not None:
        from kb.client.notebook import commits_of

        commits = commits_of(client, limit)
    else:
        app = open_to_read(ctx)
        commits = notes.list_commits(app, limit, app.caller)
        pushed = notes.push_report(app) if app.caller.operator else None
    for commit in commits:
        when = dt.datetime.fromtimestamp(commit.committed_s).astimezone().isoformat(" ", "minutes")
        short = click.style(commit.commit[:10], fg="cyan")
        click.echo(f"{short}  {when}  {clean(commit.subject)}")
    if not commits:
        warn(NO_NOTES)
    if pushed is not None:
        warn(clean(push_line(pushed)))


@command.command(name="push")
@click.option("-y", "--yes", is_flag=True, help="Push to a project's remote without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def push(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Push the notebook's branch to its remote `origin`, now. Never forced.

    With the setting notebook.push `kb worker` and `kb serve` do it after commits. The remote of a
    project's notebook may have come with the project: the first push there asks.
    """
    app = open_standing(ctx)
    remote = None if yes else notes.unconfirmed_remote(app)
    if remote is not None:
        what = clean(f"{remote} may have come with the project")
        confirm(
            f"{what}. Push the notes there?",
            unasked=f"{what}; if that is right, add --yes",
            declined="nothing was pushed",
        )
    report = notes.push(app)
    if as_json:
        print_json(report)
    if report.state != "pushed":
        raise NotPushed(f"{report.state}: {report.last_error}", place=report.remote)
    if not as_json:
        click.echo(clean(push_line(report)))


@command.command(name="undo")
@click.argument("job")
@click.pass_context
def undo(ctx: click.Context, job: str) -> None:
    """Take a note back, by the id of the job that placed it: a commit that reverts its own.

    So is `kb note tidy` taken back, by the id that it prints.

    Nothing is changed where later commits or edits stand on what it did.
    """
    app = open_standing(ctx)
    undone = notes.undo(app, job)
    _catch_up(app)
    click.echo(clean(f"{undone.path}: taken back by {undone.commit[:10]}"))


@command.command(name="tidy")
@click.option("--apply", is_flag=True, help="Put it in order, by one commit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def tidy(ctx: click.Context, apply: bool, as_json: bool) -> None:
    """List what is out of order in the notebook; exit 3 where something is, without --apply.

    What is committed counts. --apply leads links and entries on to files that have moved, lists
    notes, strikes entries without a file, and merges notes that say nearly the same.
    """
    app = open_standing(ctx) if apply else open_app(ctx, create=False)
    report = notes.tidy(app, apply=apply)
    if report.commit is not None:
        _catch_up(app)
    if as_json:
        print_json(report)
    else:
        print_tidy(report, applied=apply)
    count = findings_of(report)
    if count and not apply:
        raise Untidy(f"{many(count, 'finding')}; `kb note tidy --apply` fixes what it can")


def _catch_up(app: "App") -> None:
    for problem in app.catch_up():
        warn(problem)


def _check_placed(job: "JobInfo") -> None:
    """Raise KbError where the note is not placed."""
    if job.status != "done":
        why = job.reason or "another process has it"
        detail = f"the note of {job.job_id} is not placed yet: {why}"
        raise KbError(f"{detail}; `kb job {job.job_id}` says how it stands")
    if job.reason:
        warn(job.reason)
