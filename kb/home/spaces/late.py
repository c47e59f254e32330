"""Homes that could not be opened at first: tried again as long as they are asked for."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kb.home.spaces.each import FailedSpace
from kb.model.resting import rest_s

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.spaces.homes import SpaceHome


class LateHomes:
    """Those of several homes that could not be opened, and by now perhaps can be."""

    def __init__(
        self,
        open_if_there: "Callable[[SpaceHome], App | FailedSpace | None]",
        away: "dict[SpaceHome, FailedSpace]",
    ) -> None:
        self._open_if_there = open_if_there
        self._away = away
        self._opened: dict[SpaceHome, App] = {}
        self._trying = threading.Lock()
        self._next_s = time.monotonic() + rest_s(0)

    def look(self) -> "tuple[dict[SpaceHome, App], dict[SpaceHome, FailedSpace]]":
        """Those that could be opened by now, and those that are still away."""
        if self._away and time.monotonic() > self._next_s and self._trying.acquire(blocking=False):
            try:
                self._try()
            finally:
                self._trying.release()
        return self._opened, self._away

    def _try(self) -> None:
        start_s = time.monotonic()
        opened, away = dict(self._opened), dict(self._away)
        for space in self._away:
            done = self._open_if_there(space)
            if isinstance(done, FailedSpace):
                away[space] = done
                continue
            del away[space]
            if done is not None:
                opened[space] = done
        # Replaced, and not changed: others may be looking.
        self._opened, self._away = opened, away
        end_s = time.monotonic()
        self._next_s = end_s + rest_s(end_s - start_s)
