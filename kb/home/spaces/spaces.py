"""Several open homes that are asked together."""

import contextlib
import copy
import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from kb.errors import UsageError
from kb.home.app import App
from kb.home.open_home import OpenHome
from kb.home.spaces.each import FAILURES, FailedSpace, ask_each
from kb.home.spaces.guide import LazyHome, guide_of
from kb.home.spaces.homes import SpaceHome
from kb.model.clock import Clock
from kb.model.config import Settings
from kb.model.doc import OPERATOR, Scope
from kb.model.search import SearchRequest, SpaceName
from kb.store.content.layout import HomePaths
from kb.store.store import REACH_S

if TYPE_CHECKING:
    from kb.home.services.models import SharedModels
    from kb.home.spaces.late import LateHomes
    from kb.knowledge.guide import Guide
    from kb.knowledge.topics import Topic


Topics = Callable[[Scope], "tuple[Topic, ...]"]


class Spaces:
    """Homes that answer as one, each with its own caches; operations ask them.

    The first one's copy is answered of what several have. A space that cannot be read is left out
    and named in the warnings. Close it, or use it as a context manager; safe to share by threads.
    """

    def __init__(
        self,
        homes: Sequence[OpenHome],
        *,
        failed: Sequence[FailedSpace] = (),
        apps: Sequence[App] = (),
        resources: contextlib.ExitStack | None = None,
        core: Callable[[], App] | None = None,
        texts: Topics | None = None,
        late: "LateHomes | None" = None,
    ) -> None:
        """`apps` are the homes as they were opened, where they can be worked on, too.

        `core` opens the home of kb's own entries; without it they are not asked. `texts` are topics
        of a folder whose store is not open. `late` are homes that may be there later.
        """
        self.homes = tuple(homes)
        self.failed = tuple(failed)
        self._apps = tuple(apps)
        self._resources = resources or contextlib.ExitStack()
        self._core = core
        self._texts = texts
        self.at_least = ""
        """The token of a transaction that searches must see; empty for any state."""
        self.topics: Topics = self._own_topics
        """What a scope can learn; raises ConfigError where it can be told of none."""
        self.takes_signals = True
        """Whether who asks may leave a signal for a person."""
        self._late = late
        self._joining = threading.Lock()
        self._base = self._joined = self

    @classmethod
    def open(
        cls,
        homes: Sequence[SpaceHome],
        settings_of: Callable[[Path], Settings],
        *,
        clock: Clock | None = None,
        leads: bool = False,
        texts: Topics | None = None,
    ) -> Self:
        """Open the homes that are there; where none is, the first one as an empty one.

        With `leads` the first one is opened in any case, and made where it is not there. A model
        that several of them have is loaded once. Raises the first one's error where every one
        that is there cannot be opened, and with `leads` where the first one cannot.
        """
        apps: dict[SpaceHome, App] = {}
        away: dict[SpaceHome, FailedSpace] = {}
        shared = None
        if len(homes) > 1:
            from kb.home.services.models import SharedModels

            shared = SharedModels()
        with contextlib.ExitStack() as resources:
            opener = _Opener(settings_of, clock, shared, resources)
            if leads:
                apps[homes[0]] = opener.open(homes[0], create=True)
            for space in homes[len(apps) :]:
                app = opener.open_if_there(space)
                if isinstance(app, FailedSpace):
                    away[space] = app
                elif app is not None:
                    apps[space] = app
            if not apps and away:
                raise next(iter(away.values())).error
            if not apps:
                apps[homes[0]] = opener.open(homes[0])
            kept_open = opener.resources = resources.pop_all()

            def own() -> App:
                from kb.home.core import open_core

                return open_core(kept_open, shared, clock)

            # One before those that are open would be the one that wins, and that is written to.
            later = homes[homes.index([*apps][-1]) + 1 :]
            late = None
            if away and all(space in later for space in away):
                from kb.home.spaces.late import LateHomes

                late = LateHomes(opener.open_if_there, away)
            return cls(
                [app.opened(space.name) for space, app in apps.items()],
                failed=tuple(away.values()),
                apps=tuple(apps.values()),
                resources=kept_open,
                core=LazyHome(own),
                texts=texts,
                late=late,
            )

    def current(self) -> "Spaces":
        """The same homes, and those that could not be opened before and can be by now.

        They are open as long as these are. Copies for one caller stay as they are.
        """
        if self._late is None or self is not self._base:
            return self
        apps, away = self._late.look()
        with self._joining:
            if len(away) != len(self._joined.failed):
                self._joined = Spaces(
                    [*self.homes, *(app.opened(space.name) for space, app in apps.items())],
                    failed=tuple(away.values()),
                    apps=[*self._apps, *apps.values()],
                    core=self._core,
                    texts=self._texts,
                )
            return self._joined

    def only(self, name: SpaceName) -> "Spaces | None":
        """One of them by itself, which knows nothing of the others; None where it is not read.

        It is open as long as these are: closing it does nothing.
        """
        places = [place for place, home in enumerate(self.homes) if home.name == name]
        if not places:
            return None
        place = places[0]
        apps = self._apps[place : place + 1]
        return Spaces([self.homes[place]], apps=apps, core=self._core)

    def without_signals(self) -> "Spaces":
        """The same homes, for somebody who may ask and may not leave signals."""
        same = self._copy()
        same.takes_signals = False
        return same

    def since(self, token: str) -> "Spaces":
        """The same homes, searched only in a state that has the transaction of a token."""
        same = self._copy()
        same.at_least = token
        return same

    def reached(self, request: SearchRequest) -> SearchRequest:
        """The request, once the first home has come to the transactions that are asked for.

        Raises StoreBehind, and UsageError for what is no token of that home.
        """
        from kb.store.transactions import Transactions

        legs = self.homes[0].searcher().legs
        read = Transactions(self.homes[0].store).number
        numbers = [read(token) for token in (request.at_least, self.at_least) if token]
        legs.reach(max(numbers), REACH_S, with_vectors=request.mode != "lexical")
        return msgspec.structs.replace(request, at_least=None)

    def with_topics(self, topics: Topics) -> "Spaces":
        """The same homes, with other topics to learn."""
        same = self._copy()
        same.topics = topics
        return same

    def _copy(self) -> "Spaces":
        # The guide keeps what it has computed of each model, so that all of them share one.
        _ = self.guide
        return copy.copy(self)

    @property
    def names(self) -> tuple[SpaceName, ...]:
        """Those that are read, the one that wins first."""
        return tuple(home.name for home in self.homes if home.name is not None)

    @property
    def caller(self) -> Scope:
        """Who asks, unless a server has let another user in.

        Several are asked by the person at the machine alone: in each they are who it takes them
        for, which is a role in a database (`OpenHome.scope`).
        """
        return self.homes[0].caller if len(self.homes) == 1 else OPERATOR

    @property
    def first(self) -> App:
        """The home that wins, and the one that anything new goes to."""
        return self._apps[0]

    @property
    def has_model(self) -> bool:
        """Whether a question may be put to a language model."""
        return any(home.answer_resources().provider is not None for home in self.homes)

    @functools.cached_property
    def guide(self) -> "Guide | None":
        """Where help is to be had: entries of every space and kb's own; signals in the first."""
        return guide_of(self.homes, self._apps[0], self._core) if self._apps else None

    def _own_topics(self, scope: Scope) -> "tuple[Topic, ...]":
        """The topics of all spaces; of one id that two have the earlier space's."""
        failed: list[FailedSpace] = []
        each = ask_each(self.homes, lambda home: home.topics(scope), failed)
        if failed:
            # Imported late: a search that finds its topics logs nothing.
            import logging

            logging.getLogger(__name__).info("the topics of a space cannot be read; left out")
        by_id: dict[str, Topic] = {}
        for topics in (*(topics for _, topics in each), self._texts(scope) if self._texts else ()):
            for topic in topics:
                by_id.setdefault(topic.id, topic)
        return tuple(by_id.values())

    def close(self) -> None:
        """Close every home."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Opener:
    """Opens homes that are asked together; `resources` closes them."""

    def __init__(
        self,
        settings_of: Callable[[Path], Settings],
        clock: Clock | None,
        shared: "SharedModels | None",
        resources: contextlib.ExitStack,
    ) -> None:
        """With `shared` models they are several, which load each model once."""
        self._settings_of = settings_of
        self._clock = clock
        self._shared = shared
        self.resources = resources

    def open(self, space: SpaceHome, *, create: bool = False) -> App:
        """Open a home; without `create` one that is not there is empty. Raises as `App.open`."""
        app = App.open(
            space.home,
            self._settings_of(space.home),
            create=create,
            clock=self._clock,
            shared=self._shared,
            beside=self._shared is not None,
        )
        return self.resources.enter_context(app)

    def open_if_there(self, space: SpaceHome) -> App | FailedSpace | None:
        """Open a home that is there, or say why it cannot be."""
        paths = HomePaths(space.home)
        # Without its driver, or with settings of it that are wrong, a database is away.
        failures = FAILURES if paths.database is None else (*FAILURES, UsageError)
        try:
            paths.check_not_lost()
            if not paths.may_have_store:
                return None
            app = self.open(space)
        except failures as error:
            return FailedSpace(name=space.name, error=error)
        return app if app.is_made else None
