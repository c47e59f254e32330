"""Help from several stores: their entries and kb's own answer, the first store keeps signals."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kb.home.app import App
from kb.home.open_home import OpenHome
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.knowledge.guide import Guide
    from kb.search.engine import Searcher


class LazyHome:
    """A home that is opened when it is first needed, by one of the threads that need it."""

    def __init__(self, opened: Callable[[], App]) -> None:
        self._opened = opened
        self._app: App | None = None
        self._lock = threading.Lock()

    def __call__(self) -> App:
        """The home. Raises what opening it raises, and tries again at the next call."""
        with self._lock:
            if self._app is None:
                self._app = self._opened()
            return self._app


def guide_of(homes: Sequence[OpenHome], first: App, core: Callable[[], App] | None) -> "Guide":
    """A guide over homes in the order of precedence, kb's own entries after them.

    Signals and backups go to the first.
    """
    from kb.knowledge.guide import EntryCatalog, Guide

    catalogs = [
        EntryCatalog(name=home.name or "home", store=_store(home.store), searcher=home.searcher)
        for home in homes
    ]
    if core is not None:

        def own_searcher() -> "Searcher":
            return core().opened().searcher()

        catalogs.append(EntryCatalog(name="kb", store=lambda: core().store, searcher=own_searcher))
    return Guide(
        catalogs,
        first.store if first.is_made else None,
        lambda reason: first.backups.create(reason).backup.name,
    )


def _store(store: Store) -> Callable[[], Store]:
    return lambda: store
