"""`kb watch`: keep folders current while it runs."""

import os
import signal
import threading
from pathlib import Path
from typing import Any, Final

import click

from cli.home import open_app
from cli.output import many, warn
from cli.sync_all import tell
from kb.app import App
from kb.errors import NotFound
from kb.model.origin import Origin
from kb.sync.current import SyncOptions
from kb.sync.origins import listed

# A burst of changes is over when nothing has changed for so long.
_QUIET_MS: Final = 400
# Whatever the system's notices missed is found by a full look at least this often.
_FULL_LOOK_MS: Final = 300_000


@click.command(name="watch")
@click.option("--once", is_flag=True, hidden=True, help="End after the first change.")
@click.pass_context
def command(ctx: click.Context, once: bool) -> None:
    """Keep the registered folders current until stopped (Ctrl-C or SIGTERM).

    Every change leads to a full comparison of its folder, so a notice that was lost, or a queue
    that overflowed, loses nothing.
    """
    from watchfiles import watch

    app = open_app(ctx, create=True)
    with app.store.read() as txn:
        folders = [origin for origin in listed(txn) if origin.kind == "folder"]
    present = [origin for origin in folders if Path(origin.location).is_dir()]
    if not present:
        raise NotFound(id="folder to watch")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with app.parser() as parser:
        pool = app.pool()
        pool.start()
        try:
            for origin in present:
                _sync(app, parser, origin)
            click.echo(f"watching {many(len(present), 'folder')}; Ctrl-C ends it", err=True)
            for changes in watch(
                *(origin.location for origin in present),
                debounce=_QUIET_MS,
                rust_timeout=_FULL_LOOK_MS,
                yield_on_timeout=True,
                stop_event=stop,
                raise_interrupt=True,
            ):
                for origin in _touched(present, changes):
                    _sync(app, parser, origin)
                pool.drain()
                for problem in app.catch_up():
                    warn(problem)
                if once and changes:
                    return
        finally:
            pool.shutdown(wait_s=5.0)


def _touched(origins: list[Origin], changes: Any) -> list[Origin]:
    """The folders that changed; all of them after a quiet while."""
    paths = [Path(path) for _, path in changes]
    return [
        origin
        for origin in origins
        if not paths or any(path.is_relative_to(origin.location) for path in paths)
    ]


def _sync(app: App, parser: Any, origin: Origin) -> None:
    options = SyncOptions(
        only=origin.origin_id,
        home=Path(os.path.realpath(app.paths.root)),
        file_bytes_max=app.settings.ingest.file_bytes_max,
    )
    for line in app.syncer(parser, options).run().sources:
        if line.outcome != "synced" or line.added + line.updated + line.moved + line.removed:
            tell(line)
