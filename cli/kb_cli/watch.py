"""`kb watch`: keep folders current while it runs."""

import signal
import threading

import click

from kb.operations import watch
from kb.operations.watch import WatchListener
from kb_cli.home import open_standing
from kb_cli.output import many, warn
from kb_cli.sync_all import tell


@click.command(name="watch")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep the registered folders current until stopped (Ctrl-C or SIGTERM).

    Every change leads to a full comparison of its folder, so a notice that was lost, or a queue
    that overflowed, loses nothing.
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    listener = WatchListener(on_watch=_tell_count, on_source=tell, on_problem=warn)
    watch.run(open_standing(ctx), stop, listener)


def _tell_count(folders: int) -> None:
    click.echo(f"watching {many(folders, 'folder')}; Ctrl-C ends it", err=True)
