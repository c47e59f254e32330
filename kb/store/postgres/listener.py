"""Hears that jobs were made ready, or that the log grew: on a connection of its own, by notices."""

import threading
from collections.abc import Callable
from typing import Final

import psycopg

from kb.store.content.database import DatabaseAddress
from kb.store.postgres.connections import connect

_LOOK_S: Final = 0.5
_PAUSE_S: Final = 1.0
_STANDBY_PAUSE_S: Final = 30.0


class Listener:
    """A thread that calls `wake` at each notice, and once it listens again after a loss."""

    def __init__(self, address: DatabaseAddress, listen: bytes, wake: Callable[[], None]) -> None:
        self._address = address
        self._listen = listen
        self._wake = wake
        self._stop = threading.Event()
        threading.Thread(target=self._run, name="kb-listener", daemon=True).start()

    def stop(self) -> None:
        """End it; its connection is closed within half a second."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._hear()
            except psycopg.errors.ReadOnlySqlTransaction:
                # A standby tells nobody. It may be the primary later.
                self._stop.wait(_STANDBY_PAUSE_S)
            except psycopg.Error:
                # Who rests looks for itself from time to time, so nothing is missed.
                self._stop.wait(_PAUSE_S)

    def _hear(self) -> None:
        with connect(self._address) as connection:
            connection.execute(self._listen)
            self._wake()
            while not self._stop.is_set():
                if list(connection.notifies(timeout=_LOOK_S, stop_after=1)):
                    self._wake()
