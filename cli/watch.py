"""`kb watch`: keep folders current while it runs."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cli.home import open_app
from cli.output import many, warn
from cli.sync_all import tell
from kb.errors import NotFound
from kb.home.app import App
from kb.intake.sync.current import SourceLine, SyncOptions
from kb.intake.sync.origins import UnknownSource, folder_of, listed
from kb.intake.sync.walk import IGNORE_FILE
from kb.model.origin import FOLDERS, Origin

if TYPE_CHECKING:
    from kb.intake.canonicalize import Parser

# A burst of changes is over when nothing has changed for so long.
_QUIET_MS: Final = 400
# How often the register is looked at for folders that came or went.
_TICK_MS: Final = 1_000
# Whatever the system's notices missed is found by a full look at least this often.
_FULL_LOOK_S: Final = 300.0
_WATCHED: Final = (*FOLDERS, "entries")


class NothingToWatch(NotFound):
    """No folder is registered, or none of them is there."""

    template = "no registered folder is there to watch; kb add --recursive FOLDER registers one"


class _Stopped(Exception):
    """SIGTERM came while jobs were waited for."""


@click.command(name="watch")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep the registered folders current until stopped (Ctrl-C or SIGTERM).

    Every change leads to a full comparison of its folder, so a notice that was lost, or a queue
    that overflowed, loses nothing.
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    app = open_app(ctx, create=True)
    if not _folders(app):
        raise NothingToWatch
    with app.parser() as parser:
        pool = app.pool()
        pool.start()

        def work() -> None:
            pool.drain(on_tick=lambda: _raise_if(stop))
            for problem in app.catch_up():
                warn(problem)

        try:
            while not stop.is_set():
                _watch(app, parser, stop, work)
        except _Stopped:
            return
        finally:
            pool.shutdown(wait_s=5.0)


def _watch(app: App, parser: "Parser", stop: threading.Event, work: Callable[[], None]) -> None:
    """Watch the folders that are there now, until others are, or it is to stop."""
    from watchfiles import watch

    origins = _folders(app)
    if not origins:
        stop.wait(_TICK_MS / 1000)
        return
    click.echo(f"watching {many(len(origins), 'folder')}; Ctrl-C ends it", err=True)
    home = os.path.realpath(app.paths.root)
    looked_s = float("-inf")
    due: list[Origin] = []
    # The first full look comes after the watch has begun, so that nothing falls between them.
    for changes in watch(
        *(folder_of(origin) for origin in origins),
        watch_filter=lambda _, path: _concerns(path, origins, home),
        debounce=_QUIET_MS,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=True,
    ):
        touched = _touched(origins, [Path(path) for _, path in changes])
        if time.monotonic() - looked_s >= _FULL_LOOK_S:
            looked_s = time.monotonic()
            touched = origins
        due += [origin for origin in touched if origin not in due]
        if due:
            # One that another process has in hand stays due.
            due = [origin for origin in due if not _sync(app, parser, origin)]
            work()
        if [one.origin_id for one in _folders(app)] != [one.origin_id for one in origins]:
            return


def _folders(app: App) -> list[Origin]:
    """Registered folders that are there."""
    with app.store.read() as txn:
        origins = listed(txn)
    return [one for one in origins if one.kind in _WATCHED and os.path.isdir(folder_of(one))]


def _concerns(path: str, origins: list[Origin], home: str) -> bool:
    """Whether a walk could see the change: not behind a dot, nor in kb's own home.

    A folder that lies in the home, as the notebook and the entries do, is watched there.
    """
    is_ours = Path(path).is_relative_to(home)
    folders = (folder_of(origin) for origin in origins)
    return any(
        _is_seen(Path(path), folder)
        for folder in folders
        if folder.is_relative_to(home) or not is_ours
    )


def _is_seen(path: Path, root: Path) -> bool:
    if not path.is_relative_to(root):
        return False
    parts = path.relative_to(root).parts
    return not any(part.startswith(".") for part in parts if part != IGNORE_FILE)


def _touched(origins: list[Origin], paths: Iterable[Path]) -> list[Origin]:
    return [
        origin
        for origin in origins
        if any(path.is_relative_to(folder_of(origin)) for path in paths)
    ]


def _sync(app: App, parser: "Parser", origin: Origin) -> bool:
    """Compare a folder with its docs; returns False where another process is doing so."""
    options = SyncOptions(
        only=origin.origin_id,
        home=Path(os.path.realpath(app.paths.root)),
        file_bytes_max=app.settings.ingest.file_bytes_max,
    )
    try:
        (line,) = app.syncer(parser, options).run().sources
    except UnknownSource:
        return True
    if line.outcome != "busy" and _is_news(line):
        tell(line)
    return line.outcome != "busy"


def _is_news(line: SourceLine) -> bool:
    changed = line.added + line.updated + line.resurrected + line.moved + line.removed
    return line.outcome != "synced" or bool(changed)


def _raise_if(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped
