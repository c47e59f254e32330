"""The homes that a program opened; those that are made later are opened then."""

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kb.errors import UsageError
from kb.home.app import App
from kb.home.opening import HomePaths, Settings
from kb.home.spaces.choice import HomeChoice, make_store
from kb.home.spaces.spaces import Spaces


class OpenedHomes:
    """The homes that are read together, and the one that anything new goes to.

    They are chosen once: neither another working directory nor another environment changes them.
    Close it; safe to share by threads.
    """

    def __init__(
        self, named: str | None, settings: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Open the homes that are there. Raises what keeps the first of them from being opened."""
        warnings: list[str] = []
        self._choice = HomeChoice(named, values=settings, warn=warnings.append)
        self._homes = self._choice.read()
        self.path = self._choice.written()
        """The home that anything new goes to; it need not be there."""
        homes = dict.fromkeys((self.path, *(space.home for space in self._homes)))
        counting = [home for home in homes if self._choice.decision(home).folder]
        self._settings = {home: self._choice.settings(home) for home in counting}
        self._check_here()
        self.warnings = tuple(warnings)
        """What was left out when they were opened, in words."""
        self._lock = threading.RLock()
        self._is_laid_out = False
        self._resources = contextlib.ExitStack()
        self._spaces, self._absent = self._opened()

    def _check_here(self) -> None:
        first = self._settings[self._homes[0].home]
        if self._choice.server(None, first):
            raise UsageError(
                "a server is named, and kb.open works on homes at this machine; give it a path, "
                "or set client.server to '' in its settings"
            )

    def _opened(self) -> tuple[Spaces, tuple[Path, ...]]:
        """The homes as they are there now, and those that are not."""
        absent = tuple(home.home for home in self._homes if not HomePaths(home.home).has_store)
        spaces = Spaces.open(self._homes, self._settings_of)
        self._resources.callback(spaces.close)
        return spaces, absent

    def _settings_of(self, home: Path) -> Settings:
        return self._settings[home]

    def spaces(self) -> Spaces:
        """The homes to be asked, also those whose stores were made since they were opened."""
        if any(HomePaths(home).has_store for home in self._absent):
            with self._lock:
                made = [home for home in self._absent if HomePaths(home).has_store]
                for home in made:
                    HomeChoice(str(home), warn=lambda _: None).check_counts(home)
                if made:
                    # Who asks the ones before is answered by them; the same file is shared.
                    self._spaces, self._absent = self._opened()
        return self._spaces.current()

    def app(self, *, create: bool = False) -> App:
        """The home that anything new goes to; made with `create`, else empty where it is not there.

        Raises HeldBack where it does not count, and what keeps it from being opened.
        """
        self._choice.check_counts(self.path)
        with self._lock:
            if create:
                make_store(self.path, self._settings_of)
                if not self._is_laid_out:
                    HomePaths(self.path).make()
                    self._is_laid_out = True
            spaces = self.spaces()
            if spaces.first.paths.root == self.path:
                return spaces.first
            for failed in spaces.failed:
                if failed.name == self._homes[0].name:
                    raise failed.error
            return App.open(self.path, self._settings_of(self.path), create=False)

    def close(self) -> None:
        """Close them all."""
        self._resources.close()
