"""`kb worker`: work on what is still to do."""

import signal
import threading

import click

from cli.home import open_app
from cli.output import many, warn
from cli.work import HURRY_S
from kb.jobs import queue


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
            pool.serve(stop)
    except BaseException:
        pool.shutdown(wait_s=HURRY_S)
        raise
    if not pool.shutdown():
        warn("a worker was still busy; its job is done again by the next one")
    for problem in app.catch_up():
        warn(problem)
    with app.store.read() as txn:
        left = queue.counts(txn)
    click.echo(f"{many(left.ready + left.running, 'job')} left, {left.failed:,} failed")
