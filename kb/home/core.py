"""Where do kb's own entries lie? In the user's home, or else in one of their own, made of them.

The second is a cache: it is made when a guide is first asked, without the network and in about a
second, and may be removed at any time.
"""

import logging
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import kb
from kb.errors import ItemsFailed, ReadOnlyHome, StoreDamaged, StoreFull, StoreMissing
from kb.home.app import App
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import AddOptions
from kb.knowledge.guide.core import core_digest
from kb.knowledge.guide.install import Installed, install
from kb.model.config import Settings
from kb.model.config.places import user_folder
from kb.model.doc import Visibility
from kb.store import meta
from kb.store.content.layout import HomePaths

if TYPE_CHECKING:
    from kb.home.services.models import SharedModels
    from kb.model.clock import Clock

logger = logging.getLogger(__name__)

FOLDER: Final = "kb"
"""In a knowledge folder: where kb's own entries are."""
_WHOLE: Final = "core"
_PREFIX: Final = "guide-"
_DIGEST_HEX: Final = 16


def put_core(app: App, visibility: Visibility | None = None) -> Installed:
    """Bring kb's own entries into a home, and have them findable by whom `visibility` says.

    Raises ReadOnlyHome or StoreFull, and ItemsFailed where one could not be taken in.
    """
    done = install(app.store, app.paths.knowledge / FOLDER)
    if done.to_take_in:
        options = AddOptions(ingest_options=IngestOptions(visibility=visibility))
        with app.parser() as parser:
            report = app.adder(parser, options).add([str(path) for path in done.to_take_in])
        _work(app)
        if report.failed:
            raise ItemsFailed(
                "; ".join(f"{problem.source}: {problem.reason}" for problem in report.problems)
            )
    return done


def open_core(resources: ExitStack, shared: "SharedModels | None", clock: "Clock | None") -> App:
    """A home that holds kb's own entries and nothing else, embedded by the built-in model.

    It lies in the user's cache folder, or in a temporary one where that cannot be used; it is
    closed with `resources`. Raises ModelMissing, and ReadOnlyHome or StoreFull where nothing can
    be written anywhere.
    """
    place = _cached_place()
    if place is not None:
        try:
            return resources.enter_context(_filled(place, shared, clock))
        except (OSError, ReadOnlyHome, StoreDamaged, StoreFull):
            logger.info("the cache folder cannot be used")
    folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="kb-"))
    return resources.enter_context(_filled(Path(folder), shared, clock))


def cache_folder() -> Path | None:
    """The user's folder of what kb can make again; None for a user without a home folder."""
    caches = user_folder("cache")
    return caches if caches.is_absolute() else None


def _cached_place() -> Path | None:
    caches = cache_folder()
    name = f"{_PREFIX}{kb.__version__}-{core_digest()[:_DIGEST_HEX]}"
    return None if caches is None else caches / name


def _filled(place: Path, shared: "SharedModels | None", clock: "Clock | None") -> App:
    settings = Settings()
    if HomePaths(place).has_store:
        with ExitStack() as stack:
            core = App.open(place, settings, create=False, clock=clock, shared=shared)
            stack.callback(core.close)
            if _is_whole(core):
                stack.pop_all()
                return core
    _remove_others(place)
    try:
        HomePaths(place).check_not_lost()
    except StoreMissing:
        # It is a cache: what is left of it is made again.
        shutil.rmtree(place, ignore_errors=True)
    with ExitStack() as stack:
        app = App.open(place, settings, clock=clock, shared=shared)
        stack.callback(app.close)
        put_core(app, "public")
        # Also what a call that was cut short left undone.
        _work(app)
        with app.store.write() as txn:
            meta.set_word(txn, _WHOLE, core_digest())
        stack.pop_all()
    return app


def _is_whole(app: App) -> bool:
    with app.store.read() as txn:
        return meta.get_word(txn, _WHOLE) == core_digest()


def _work(app: App) -> None:
    """Do every job that waits, and bring the caches level."""
    pool = app.pool()
    pool.start()
    try:
        pool.drain()
    finally:
        pool.shutdown()
    app.catch_up()


def _remove_others(place: Path) -> None:
    """Those that other versions of the program made."""
    for other in place.parent.glob(f"{_PREFIX}*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
