"""`kb worker`: work on what is still to do."""

import signal
import threading
from typing import TYPE_CHECKING, Final

import click

from kb.errors import ItemsFailed, NotebookUnfit, UsageError
from kb.operations import jobs, notes
from kb.operations.work import Workers, use_device
from kb_cli.home import open_standing
from kb_cli.output import clean, many, warn
from kb_cli.pushes import push_line
from kb_cli.work import progress_bar

if TYPE_CHECKING:
    from kb.home.app import App

_JOBS_MAX: Final = 10_000


@click.command(name="worker")
@click.option("--drain", is_flag=True, help="End when no job is ready.")
@click.option("--retry-failed", is_flag=True, help="Try the jobs again that failed for good.")
@click.option("--device", metavar="NAME", help="Embed on it: cpu, or a GPU such as cuda or cuda:1.")
@click.pass_context
def command(ctx: click.Context, drain: bool, retry_failed: bool, device: str | None) -> None:
    """Work on jobs until stopped (Ctrl-C or SIGTERM), or until none is left.

    With --drain the exit code is 3 where jobs failed for good meanwhile; each is named.
    """
    app = open_standing(ctx)
    if not app.is_made and not drain:
        raise UsageError("a worker that stays needs a home; `kb init` makes one")
    if device is not None:
        use_device(app, device)
    if retry_failed:
        click.echo(f"{many(jobs.retry_failed(app), 'job')} will be tried again")
    before = _failed(app) if drain else {}
    workers = Workers(app, reads_files=True, stay=not drain)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with workers:
        if drain:
            _drain(workers)
        else:
            warn("at work; Ctrl-C stops it")
            workers.serve(stop)
    if not workers.are_idle:
        warn("a worker was still busy; its job is done again by the next one")
    for problem in workers.catch_up().problems:
        warn(problem)
    if drain:
        _push(app)
    left = jobs.count_jobs(app)
    click.echo(f"{many(left.ready + left.running, 'job')} left, {left.failed:,} failed")
    if drain:
        _expect_done({ident: said for ident, said in _failed(app).items() if ident not in before})


def _failed(app: "App") -> dict[str, str]:
    """What is to be said of each job that failed for good, by its id."""
    rows = jobs.list_jobs(app, _JOBS_MAX).jobs
    return {
        row.job_id: f"{row.kind} job of {row.path or row.subject}: {row.reason}"
        for row in rows
        if row.status == "failed"
    }


def _expect_done(failed: dict[str, str]) -> None:
    """Name what failed in this run. Raises ItemsFailed where anything did."""
    for said in failed.values():
        warn(f"failed: {clean(said)}")
    if failed:
        raise ItemsFailed(f"{many(len(failed), 'job')} failed; --retry-failed tries them again")


def _drain(workers: Workers) -> None:
    with progress_bar(reads=False) as progress:
        if progress is not None:
            progress.follow(workers.left)
        workers.drain(progress.working if progress else None)


def _push(app: "App") -> None:
    """Push the notebook if that is due; the work is done, however it goes."""
    try:
        report = notes.push_if_due(app)
    except NotebookUnfit as error:
        warn(str(error))
        return
    if report is not None and report.state != "pushed":
        warn(clean(push_line(report)))
