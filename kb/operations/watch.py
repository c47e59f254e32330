"""Registered folders, kept current as long as this runs."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import NotFound
from kb.model.origin import FOLDERS, Origin

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.intake.canonicalize import Parser
    from kb.operations.sync import SourceResult

# A burst of changes is over when nothing has changed for so long.
_QUIET_MS: Final = 400
# How often the register is looked at for folders that came or went.
_TICK_MS: Final = 1_000
# Whatever the system's notices missed is found by a full look at least this often.
_FULL_LOOK_S: Final = 300.0
_STOP_S: Final = 5.0
_WATCHED: Final = (*FOLDERS, "entries")


class NothingToWatch(NotFound):
    """No folder is registered, or none of them is there."""

    template = "there is no registered folder to watch; `kb add FOLDER` registers one"


class WatchListener(Struct, frozen=True, kw_only=True):
    """Who hears how a watch goes."""

    on_watch: Callable[[int], None]
    """So many folders are watched from now on."""
    on_source: "Callable[[SourceResult], None]"
    """A folder has changed, or could not be brought level."""
    on_problem: Callable[[str], None]
    """What keeps the caches from coming level with the store, in words."""


class _Stopped(Exception):
    """The watch is to end while jobs are waited for."""


def run(app: "App", stop: threading.Event, listener: WatchListener) -> None:
    """Keep the registered folders current, and work on what that brings, until `stop` is set.

    Every change leads to a full comparison of its folder, so a notice that was lost, or a queue
    that overflowed, loses nothing. Raises NothingToWatch where no folder is there at the start,
    and what stopped a worker for good: a full disk, a damaged store.
    """
    if not _folders(app):
        raise NothingToWatch
    with app.parser() as parser:
        pool = app.pool()
        pool.start()

        def work() -> None:
            pool.drain(on_tick=lambda: _raise_if(stop))
            for problem in app.catch_up():
                listener.on_problem(problem)

        watch = _Watch(app, parser, listener, work)
        try:
            while not stop.is_set():
                watch.run(stop)
        except _Stopped:
            return
        finally:
            pool.shutdown(wait_s=_STOP_S)


class _Watch:
    """One watch of the folders that are there."""

    def __init__(
        self, app: "App", parser: "Parser", listener: WatchListener, work: Callable[[], None]
    ) -> None:
        self._app = app
        self._parser = parser
        self._listener = listener
        self._work = work

    def run(self, stop: threading.Event) -> None:
        """Watch the folders that are there now, until others are, or it is to stop."""
        from watchfiles import watch

        origins = _folders(self._app)
        if not origins:
            stop.wait(_TICK_MS / 1000)
            return
        self._listener.on_watch(len(origins))
        home = os.path.realpath(self._app.paths.root)
        looked_s = float("-inf")
        due: list[Origin] = []
        # The first full look comes after the watch has begun: nothing falls between them.
        for changes in watch(
            *(_folder_of(origin) for origin in origins),
            watch_filter=lambda _, path: concerns(path, origins, home),
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
                due = [origin for origin in due if not self._sync(origin)]
                self._work()
            now = _folders(self._app)
            if [origin.origin_id for origin in now] != [origin.origin_id for origin in origins]:
                return

    def _sync(self, origin: Origin) -> bool:
        """Compare a folder with its docs; returns False where another process is doing so."""
        from kb.intake.sync.origins import UnknownSource
        from kb.intake.sync.sync_all import SyncOptions

        options = SyncOptions(
            only=origin.origin_id,
            home=Path(os.path.realpath(self._app.paths.root)),
            file_bytes_max=self._app.settings.ingest.file_bytes_max,
        )
        try:
            (line,) = self._app.syncer(self._parser, options).run().sources
        except UnknownSource:
            return True
        if line.outcome != "busy" and _is_news(line):
            self._listener.on_source(line)
        return line.outcome != "busy"


def _folders(app: "App") -> list[Origin]:
    """Registered folders that are there."""
    from kb.intake.sync.origins import is_own, origins_here

    with app.store.read() as txn:
        origins = [o for o in origins_here(txn, app.store.machine) if is_own(o, app.caller)]
    return [
        origin
        for origin in origins
        if origin.kind in _WATCHED and os.path.isdir(_folder_of(origin))
    ]


def _folder_of(origin: Origin) -> Path:
    from kb.intake.sync.origins import origin_folder

    return origin_folder(origin)


def concerns(path: str, origins: Iterable[Origin], home: str) -> bool:
    """Whether a walk could see the change: not behind a dot, nor in kb's own home.

    A folder that lies in the home, as the notebook and the entries do, is watched there.
    """
    is_ours = Path(path).is_relative_to(home)
    folders = (_folder_of(origin) for origin in origins)
    return any(
        _is_seen(Path(path), folder)
        for folder in folders
        if folder.is_relative_to(home) or not is_ours
    )


def _is_seen(path: Path, root: Path) -> bool:
    from kb.intake.sync.ignoring import IGNORE_FILES

    if not path.is_relative_to(root):
        return False
    parts = path.relative_to(root).parts
    return not any(part.startswith(".") for part in parts if part not in IGNORE_FILES)


def _touched(origins: Iterable[Origin], paths: Iterable[Path]) -> list[Origin]:
    return [
        origin
        for origin in origins
        if any(path.is_relative_to(_folder_of(origin)) for path in paths)
    ]


def _is_news(line: "SourceResult") -> bool:
    changed = line.added + line.updated + line.resurrected + line.moved + line.removed
    return line.outcome != "synced" or bool(changed)


def _raise_if(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped
