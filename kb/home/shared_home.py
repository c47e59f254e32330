"""How is a home opened whose store is in a database?"""

import shutil
from typing import Final

from kb.errors import HomeGone, NotFound, ReadOnlyHome
from kb.model.clock import Clock
from kb.store.content.database import DatabaseAddress, write_named
from kb.store.content.layout import HomePaths
from kb.store.content.lock import file_lock
from kb.store.content.machine import machine_name
from kb.store.store import Store

_WAIT_S: Final = 30.0


def open_shared(
    paths: HomePaths,
    address: DatabaseAddress,
    clock: Clock | None,
    *,
    create: bool,
    beside: bool = False,
) -> Store:
    """Open the store of a home whose local folder is `paths`; without `create`, maybe empty.

    Caches of another home at the same address are removed. Raises HomeGone for a home that was
    there and is not in the database any more, and as `Store.open_database`, which says what
    `beside` is.
    """
    was_there = paths.has_store
    try:
        create = create and not was_there
        store = Store.open_database(address, clock, create=create, beside=beside)
    except NotFound as error:
        if was_there:
            raise HomeGone(place=address.shown, folder=paths.root) from error
        return Store.missing(clock)
    try:
        store.is_used_on(machine_name())
        _settle(paths, store.home)
    except BaseException as error:
        store.close()
        if isinstance(error, OSError):
            raise ReadOnlyHome(error.strerror or "", place=paths.root) from error
        raise
    return store


def _settle(paths: HomePaths, home: str) -> None:
    """Make the local folders, and let caches be of this home alone."""
    paths.make()
    if _settled(paths) == home:
        return
    # One at a time: nobody removes caches that another has just begun to make.
    with file_lock(paths.tmp, _WAIT_S):
        if _settled(paths) == home:
            return
        shutil.rmtree(paths.index, ignore_errors=True)
        paths.make()
        write_named(paths.home_id, home)


def _settled(paths: HomePaths) -> str:
    try:
        return paths.home_id.read_text("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
