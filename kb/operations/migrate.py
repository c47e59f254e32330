"""A whole home, copied into a database or out of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import NotFound, UsageError
from kb.store.content.layout import HomePaths, is_in_database
from kb.store.content.lock import file_lock
from kb.store.content.machine import machine_name
from kb.store.meta import MACHINE, get_word
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.store.content.database import DatabaseAddress
    from kb.upkeep.transfer import TransferCounts, TransferProgress, TransferTarget

    MigrateProgress = TransferProgress
    """How far a copy is in one of its stages."""

_LOCK_WAIT_S: Final = 30.0


class MigrateRequest(Struct, frozen=True, kw_only=True):
    """Which home goes where."""

    source: Path
    """The folder of the home; of one in a database this machine's for it."""
    target: str
    """A new or empty folder, or the address of a database in which the home is not."""
    dry_run: bool = False


class MigrateResult(Struct, frozen=True, kw_only=True):
    """What was copied."""

    source: str
    target: str
    dry_run: bool
    went_on: bool
    """Whether an earlier copy had been cut short, and this one went on with it."""
    copied: "TransferCounts"
    commits_missed: int
    """How often the source was written to while it was copied; none of that is in the target."""
    files_on: str
    """The machine whose files a home that comes out of a database names; empty if it is this."""


def run(
    request: MigrateRequest, tell: "Callable[[MigrateProgress], None]" = lambda _: None
) -> MigrateResult:
    """Copy a home as it is at one moment, with every id, vector and job; the source stays.

    Nothing counts as the new home before all of it is there. In a database a copy that was cut
    short goes on when it is run again. Raises UsageError for a target that is not empty, StoreBusy,
    StoreUnreachable, StoreDenied, StoreFull, StoreDamaged, ReadOnlyHome.
    """
    from kb.upkeep.transfer import count, holdings_of, transfer

    paths = HomePaths(request.source)
    address = _address(request.target)
    shown = address.shown if address else str(Path(request.target).expanduser().absolute())
    if shown == paths.shown:
        raise UsageError("source and target are one home")
    with _opened(paths) as store:
        with ExitStack() as stack:
            if not store.is_shared:
                # No compaction removes content meanwhile.
                stack.enter_context(file_lock(paths.compact_lock, _LOCK_WAIT_S))
            txn = stack.enter_context(store.read())
            holdings = holdings_of(store, txn, paths)
            if request.dry_run:
                _check_target(address, request.target, paths)
                copied, went_on = count(holdings), False
            else:
                target, went_on = stack.enter_context(_target(address, request.target, paths))
                copied = transfer(holdings, target, tell)
            number, made_on = txn.last_txn(), get_word(txn, MACHINE)
        missed = store.last_txn() - number
    return MigrateResult(
        source=paths.shown,
        target=shown,
        dry_run=request.dry_run,
        went_on=went_on,
        copied=copied,
        commits_missed=missed,
        files_on="" if address or made_on in ("", machine_name()) else made_on,
    )


def _address(target: str) -> "DatabaseAddress | None":
    if not is_in_database(target):
        if not target:
            raise UsageError("--to is empty")
        return None
    from kb.store.content.database import database_address

    return database_address(target)


@contextmanager
def _opened(paths: HomePaths) -> Iterator[Store]:
    """The store of a home, to be read. Raises UsageError where there is none."""
    paths.check_not_lost()
    try:
        if paths.database is not None:
            store = Store.open_database(paths.database, create=False)
        else:
            store = Store.open(paths.store, create=False, read_only=True)
    except NotFound as error:
        raise UsageError(f"there is no home at {paths.shown}") from error
    with store:
        yield store


@contextmanager
def _target(
    address: "DatabaseAddress | None", named: str, source: HomePaths
) -> "Iterator[tuple[TransferTarget, bool]]":
    """The target, and whether an earlier copy had begun to fill it."""
    from kb.upkeep.transfer import TransferDatabase, TransferFolder

    if address is not None:
        with Store.open_database(address, fills=True) as store:
            target = TransferDatabase(store, address.shown)
            yield target, target.goes_on
        return
    from kb.store.trust import trust_list
    from kb.upkeep.transfer.staging import staged_folder

    folder = _folder(named, source)
    with staged_folder(folder) as part:
        yield TransferFolder(part), False
    trust_list().put_store(folder, "made")


def _check_target(address: "DatabaseAddress | None", named: str, source: HomePaths) -> None:
    """Raise UsageError for a target that is not empty; nothing is made."""
    from kb.upkeep.transfer.filling import check_empty
    from kb.upkeep.transfer.staging import check_empty_folder

    if address is None:
        check_empty_folder(_folder(named, source))
        return
    try:
        store = Store.open_database(address, create=False, fills=True)
    except NotFound:
        return
    with store, store.read() as txn:
        check_empty(txn, address.shown)


def _folder(named: str, source: HomePaths) -> Path:
    """The real path of a target folder. Raises UsageError for one inside the source."""
    folder = Path(os.path.realpath(Path(named).expanduser()))
    if source.database is None and folder.is_relative_to(os.path.realpath(source.root)):
        raise UsageError(f"{named} is inside the home {source.root}; name a folder outside")
    return folder
