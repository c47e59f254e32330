"""`kb worker`: work on what is still to do."""

import signal
import threading

import click

from cli.home import open_app
from cli.output import clean, many, warn
from cli.pushes import said_of
from cli.work import HURRY_S
from kb.errors import NotebookUnfit
from kb.home.app import App
from kb.store.jobs import queue


@click.command(name="worker")
@click.option("--drain", is_flag=True, help="End when there is nothing left to do now.")
@click.option("--retry-failed", is_flag=True, help="Try the jobs that failed for good once more.")
@click.pass_context
def command(ctx: click.Context, drain: bool, retry_failed: bool) -> None:
    """Work on jobs until stopped (Ctrl-C or SIGTERM), or until none is left."""
    app = open_app(ctx, create=True)
    if retry_failed:
        with app.store.write() as txn:
            count = queue.retry_failed(txn)
        click.echo(f"{many(count, 'job')} will be tried again")
    pool = app.pool()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    pool.start()
    if not drain:
        warn("at work; Ctrl-C stops it")
    try:
        if drain:
            pool.drain()
        else:
            with app.notebook.pushing():
                pool.serve(stop)
    except BaseException:
        pool.shutdown(wait_s=HURRY_S)
        raise
    if not pool.shutdown():
        warn("a worker was still busy; its job is done again by the next one")
    for problem in app.catch_up():
        warn(problem)
    if drain:
        _push(app)
    with app.store.read() as txn:
        left = queue.counts(txn)
    click.echo(f"{many(left.ready + left.running, 'job')} left, {left.failed:,} failed")


def _push(app: App) -> None:
    """Push the notebook if that is due; the work is done, however it goes."""
    try:
        report = app.notebook.push_if_due()
    except NotebookUnfit as error:
        warn(str(error))
        return
    if report is not None and report.state != "pushed":
        warn(clean(said_of(report)))
