"""Which homes does a caller mean, do they count, and which settings are in force there?"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kb.errors import ConfigError, HeldBack
from kb.home.opening import (
    HOME_CONFIGS,
    HomePaths,
    ProjectFiles,
    Settings,
    TrustDecision,
    decide_trust,
    is_project_home,
    load,
    trust_list,
    trusting_new_store,
    user_config,
)
from kb.home.spaces.homes import (
    SpaceAsked,
    SpaceHome,
    home_written,
    homes_read,
    project_at,
    user_home,
)

if TYPE_CHECKING:
    from kb.store.trust import TrustList

Confirm = Callable[[Path, "TrustList"], bool]
"""Asks the user whether a home counts from now on; False where they are not asked."""


class HomeChoice:
    """The homes that one caller means; each is judged once.

    What is left out, because it does not count, is said in words, each once.
    """

    def __init__(
        self,
        home: str | None,
        space: SpaceAsked | None = None,
        *,
        overrides: Sequence[str] = (),
        values: Mapping[str, Any] = MappingProxyType({}),
        warn: Callable[[str], None],
        confirm: Confirm = lambda *_: False,
    ) -> None:
        """`overrides` and `values` are settings that win over those of files, as in `load`."""
        self.home = home
        self.space = space
        self._overrides = overrides
        self._values = values
        self._warn = warn
        self._confirm = confirm
        self._decisions: dict[Path, TrustDecision] = {}
        self._warned: set[str] = set()

    @property
    def is_named(self) -> bool:
        """Whether the caller named the home, rather than it being found from the folder."""
        if self.home is not None or self.space in ("user", "project"):
            return True
        return self.space is None and bool(os.environ.get("KB_HOME"))

    def written(self) -> Path:
        """The one home that anything new goes to; it may not count, and need not be there."""
        return home_written(self.home, self.space, working_folder(), os.environ, self._own)

    def users(self) -> Path:
        """The user's home, or the one that stands in for it: `home`, else KB_HOME."""
        named = self.home is not None or os.environ.get("KB_HOME")
        space: SpaceAsked | None = None if named else "user"
        return home_written(self.home, space, working_folder(), os.environ, self._own)

    def meant(self) -> tuple[SpaceHome, ...]:
        """The homes that a reading call means, also those that do not count."""
        return homes_read(self.home, self.space, working_folder(), os.environ, self._own)

    @property
    def own_home(self) -> Path | None:
        """The user's home; None for a user without a home folder."""
        return user_home(self._own)

    @functools.cached_property
    def _own(self) -> str:
        """What the user's own settings call their home; empty for the platform's data folder.

        Nothing of a project or of another home can name it.
        """
        nearest = project_at(working_folder())
        layers = self.layers(nearest or user_config().parent)
        layers["files"] = (user_config(),)
        try:
            return load(**layers, values=self._values).spaces.user
        except ConfigError:
            # Said where the settings of a home are read, which nothing is done without.
            return ""

    def read(self) -> tuple[SpaceHome, ...]:
        """The homes that are read, without those that do not count.

        Raises HeldBack where that leaves none of those the caller named.
        """
        decisions = [(home, self.decision(home.home)) for home in self.meant()]
        trusted = tuple(home for home, decision in decisions if decision.store)
        left_out = [decision.why for _, decision in decisions if not decision.store]
        if left_out and (self.is_named or not trusted):
            raise HeldBack(left_out[0])
        for why in left_out:
            self.tell(f"{why}; until then it is left out")
        return trusted

    def stand_in(self, home: Path) -> Path:
        """The user's own home, for one that does not count. Raises HeldBack if they named that."""
        why = self.decision(home).why
        mine = self.own_home
        if self.is_named or mine is None:
            raise HeldBack(why)
        self.tell(f"{why}; until then it is left out")
        return mine

    def decision(self, home: Path) -> TrustDecision:
        """What may be used of a home."""
        if home not in self._decisions:
            try:
                self._decisions[home] = self._decided(home)
            except OSError:
                # What nobody may look at nobody can open either; that says why.
                self._decisions[home] = TrustDecision()
        return self._decisions[home]

    def _decided(self, home: Path) -> TrustDecision:
        trusted, mine = trust_list(), self.own_home
        decision = decide_trust(home, trusted, mine)
        if decision.can_be_trusted and self._confirm(home, trusted):
            return decide_trust(home, trusted, mine)
        return decision

    def check_counts(self, home: Path) -> None:
        """Raise HeldBack where the store of a home does not count."""
        decision = self.decision(home)
        if not decision.store:
            raise HeldBack(decision.why)

    def tell(self, line: str) -> None:
        """Warn, once."""
        if line not in self._warned:
            self._warned.add(line)
            self._warn(line)

    def settings(self, home: Path) -> Settings:
        """The settings in force in a home. Raises ConfigError."""
        layers = self.layers(home)

        def loaded() -> tuple[Settings, list[str]]:
            left_out: list[str] = []
            return load(**layers, values=self._values, warn=left_out.append), left_out

        settings, left_out = loaded()
        if left_out and self._confirm(home, trust_list()):
            settings, left_out = loaded()
        for line in left_out:
            self.tell(line)
        return settings

    def layers(self, home: Path) -> dict[str, Any]:
        """The files and overrides that `load` reads for a home."""
        mine = user_config()
        nearest = home if is_project_home(home) else project_at(working_folder())
        return {
            # On some systems the user's settings and the user's home lie in one folder.
            "files": tuple(dict.fromkeys((mine, *(home / name for name in HOME_CONFIGS)))),
            "overrides": tuple(self._overrides),
            "load_path": (mine.parent / "config.d", home / "config.d"),
            "project": _project_files(nearest, mine) if nearest else None,
        }

    def server(self, named: str | None, settings: Settings) -> str:
        """The server that is meant: `named`, else KB_SERVER, else `client.server`; empty is none.

        Whoever names a home or a space means this machine.
        """
        if named is not None:
            return named
        if self.home is not None or self.space is not None:
            return ""
        if "client.server" in self._values:
            return settings.client.server
        return os.environ.get("KB_SERVER", "") or settings.client.server


def _project_files(home: Path, mine: Path) -> ProjectFiles:
    root = Path(os.path.realpath(home))
    # Of a `.kb` in the folder of all that the user has, only itself is the project's.
    if not Path(os.path.realpath(mine)).is_relative_to(root.parent):
        root = root.parent
    trusted = trust_list()
    return ProjectFiles(home=home, root=root, accepts=lambda data: trusted.has_settings(home, data))


def working_folder() -> Path:
    """The working directory."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        # The working directory was removed; homes named absolutely can still be used.
        return Path("/")


def make_store(home: Path, settings_of: Callable[[Path], Settings]) -> None:
    """Make a home's store where it is not there; it counts from now on. Raises ReadOnlyHome."""
    if HomePaths(home).has_store:
        return
    from kb.home.app import App

    with trusting_new_store(home, trust_list()):
        App.open(home, settings_of(home)).close()
