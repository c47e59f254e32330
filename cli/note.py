"""`kb note`: the notebook, as a group of commands."""

import datetime as dt
import os
import sys
from typing import TYPE_CHECKING

import click

from cli.answering import server_of
from cli.home import open_app, open_to_read
from cli.output import clean, many, print_json, warn
from cli.pushes import said_of
from cli.tidiness import Untidy, findings_of, print_tidy
from cli.words import text as as_text
from cli.work import drain, progress_bar, working
from kb.errors import HeldBack, KbError, NotPushed
from kb.home.app import App
from kb.knowledge.notebook import JobReport, PushReport, read_note, report
from kb.knowledge.notebook.notes import TEXT_BYTES_MAX

if TYPE_CHECKING:
    from kb.client.wire import Wire

_LOG_MAX = 10_000


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
    data = sys.stdin.buffer.read(TEXT_BYTES_MAX + 1) if text == "-" else os.fsencode(text)
    wire = server_of(ctx)
    if wire is not None:
        found = _handed_in_there(wire, data, hint, tags, wait=wait)
    else:
        found = _handed_in(open_app(ctx, create=True), data, hint, tags, wait=wait)
    if as_json:
        print_json(found)
    else:
        click.echo(clean(found.path or found.job_id))
    if wait:
        _judge(found)


def _handed_in_there(
    wire: "Wire", data: bytes, hint: str | None, tags: tuple[str, ...], *, wait: bool
) -> JobReport:
    from kb.client.notebook import hand_in, job
    from kb.client.waiting import job_done

    handed_in = hand_in(wire, data, hint, tags)
    return job_done(wire, handed_in) if wait else job(wire, handed_in)


def _handed_in(
    app: App, data: bytes, hint: str | None, tags: tuple[str, ...], *, wait: bool
) -> JobReport:
    job = app.notebook.hand_in(data, hint, tags)
    if wait:
        with progress_bar() as progress, working(app, wait=True) as pool:
            assert pool is not None
            drain(app, pool, progress)
    with app.store.read() as txn:
        return report(txn, job)


@command.command(name="get")
@click.argument("path")
@click.pass_context
def get(ctx: click.Context, path: str) -> None:
    """Print a note, by its path in the notebook."""
    wire = server_of(ctx)
    if wire is not None:
        from kb.client.notebook import note

        data = note(wire, path)
    else:
        data = read_note(open_to_read(ctx).notebook.root, path)
    if sys.stdout.isatty():
        from cli.learn import print_text

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
    pushed: PushReport | None = None
    wire = server_of(ctx)
    if wire is not None:
        from kb.client.notebook import commits_of

        commits = commits_of(wire, limit)
    else:
        app = open_to_read(ctx)
        commits, pushed = app.notebook.commits(limit), app.notebook.push_report()
    for one in commits:
        when = dt.datetime.fromtimestamp(one.committed_s).astimezone().isoformat(" ", "minutes")
        click.echo(f"{click.style(one.commit[:10], fg='cyan')}  {when}  {clean(one.subject)}")
    if not commits:
        warn("no notes yet; kb note add TEXT makes the first")
    if pushed is not None:
        warn(clean(said_of(pushed)))


@command.command(name="push")
@click.option("-y", "--yes", is_flag=True, help="Push to a project's remote without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def push(ctx: click.Context, yes: bool, as_json: bool) -> None:
    """Push the notebook's branch to its remote `origin`, now. Never forced.

    With the setting notebook.push `kb worker` and `kb serve` do it after commits. The remote of a
    project's notebook may have come with the project: the first push there asks.
    """
    app = open_app(ctx, create=True)
    strange = None if yes else app.notebook.strange_remote()
    if strange is not None:
        told = clean(f"{strange} may have come with the project")
        if not sys.stdin.isatty():
            raise HeldBack(f"{told}; if you mean it, say --yes")
        if not click.confirm(f"{told}. Push the notes there?", err=True):
            raise HeldBack("nothing was pushed")
    found = app.notebook.push()
    if as_json:
        print_json(found)
    if found.state != "pushed":
        raise NotPushed(f"{found.state}: {found.last_error}", place=found.remote)
    if not as_json:
        click.echo(clean(said_of(found)))


@command.command(name="undo")
@click.argument("job")
@click.pass_context
def undo(ctx: click.Context, job: str) -> None:
    """Take a note back, by the id of the job that placed it: a commit that reverts its own.

    So is `kb note tidy` taken back, by the id that it prints.

    Nothing is changed where later commits or edits stand on what it did.
    """
    app = open_app(ctx, create=True)
    undone = app.notebook.undo(job)
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
    app = open_app(ctx, create=apply)
    found = app.notebook.tidy(apply=apply)
    if found.commit is not None:
        _catch_up(app)
    if as_json:
        print_json(found)
    else:
        print_tidy(found, applied=apply)
    count = findings_of(found)
    if count and not apply:
        raise Untidy(f"{many(count, 'finding')}; `kb note tidy --apply` mends what it can")


def _catch_up(app: App) -> None:
    for problem in app.catch_up():
        warn(problem)


def _judge(found: JobReport) -> None:
    if found.status != "done":
        why = found.reason or "another process has it"
        detail = f"the note of {found.job_id} is not placed yet: {why}"
        raise KbError(f"{detail}; `kb job {found.job_id}` says how it stands")
    if found.reason:
        warn(found.reason)
