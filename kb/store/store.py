"""The store of one home: opens its environment and checks its format."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kb.errors import (
    HomeUnfinished,
    NotFound,
    ReadOnlyHome,
    StoreBehind,
    StoreDamaged,
    StoreTooNew,
    UsageError,
    install_command,
)
from kb.model.clock import Clock, SystemClock
from kb.model.doc import LOCAL_USER, OPERATOR, Scope
from kb.model.ids import Lsid
from kb.model.source import files_of, owned_lsid
from kb.store.content.layout import is_store
from kb.store.kv import Environment, ReadTxn, ToldTable, WriteTxn
from kb.store.meta import (
    FORMAT,
    FORMAT_UNFINISHED,
    FORMAT_WITHOUT_GENERATIONS,
    MACHINE,
    get_word,
    set_word,
    word_key,
)

if TYPE_CHECKING:
    from kb.store.content.database import DatabaseAddress
    from kb.store.server_state import ServerState

REACH_S: Final = 5.0
"""How long a reader waits for a transaction that it asks for."""
_LOOK_S: Final = 0.02


def check_not_newer(stored_format: str, place: Path | str) -> None:
    """Raise StoreTooNew if a stored format is later than the one this program reads."""
    if stored_format.isdecimal() and int(stored_format) > int(FORMAT):
        raise StoreTooNew(f"format {stored_format}; this one reads format {FORMAT}", place=place)


class Store:
    """Transactions over one environment. Close it, or use it as a context manager."""

    def __init__(
        self,
        env: Environment,
        clock: Clock,
        *,
        read_only: bool = False,
        place: Path | str | None = None,
    ) -> None:
        self._env = env
        self._place = place or "store"
        self.clock = clock
        self.read_only = read_only
        self.home = ""
        """The id of a home in a database."""
        self.server_state: Callable[[], ServerState] | None = None
        """How it stands with the server of a home in a database."""
        self.caller = OPERATOR
        """Who opened it: the operator, or of a home in a database the user whose role connects."""
        self.machine = ""
        """This machine in the places of files: empty for a home in a folder, and on the machine
        that made a home in a database, whose docs so have the ids that they have in a folder. For
        another caller than the operator it names them, too: `alice@bob`."""
        self._made_on = ""
        self.node = ""
        """This machine's name, on a home in a database."""
        self.is_made = True
        """Whether it is kept anywhere: what stands in for a missing store is not."""
        self._lock: Callable[[str, float], AbstractContextManager[None]] | None = None

    @classmethod
    def missing(cls, clock: Clock | None = None) -> Self:
        """What stands in for the store of a home that is not there: empty, and in memory."""
        from kb.store.memory import MemoryEnvironment

        store = cls(MemoryEnvironment(), clock or SystemClock())
        store.is_made = False
        return store

    @classmethod
    def open(
        cls,
        folder: Path,
        clock: Clock | None = None,
        *,
        create: bool = True,
        read_only: bool = False,
        locked: bool = True,
    ) -> Self:
        """Open the LMDB store in `folder`; without `locked`, nobody may write to it.

        Raises NotFound if there is none and `create` is false, StoreTooNew or StoreDamaged if its
        format is unknown, and ReadOnlyHome if it has to be created but cannot be.
        """
        from kb.store.lmdb_env import LmdbEnvironment

        exists = is_store(folder / "data.mdb")
        if not exists and (not create or read_only):
            raise NotFound(id=str(folder))
        if not exists:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ReadOnlyHome(error.strerror or "", place=folder) from error
        store = cls(
            LmdbEnvironment(folder, read_only=read_only, locked=locked),
            clock or SystemClock(),
            read_only=read_only,
            place=folder,
        )
        try:
            store._check_format()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_database(
        cls,
        address: "DatabaseAddress",
        clock: Clock | None = None,
        *,
        create: bool = True,
        beside: bool = False,
        fills: bool = False,
    ) -> Self:
        """Open the store in a database; it has the server's clock, if none is given.

        One that is asked `beside` another home keeps nobody waiting for a server that is away.
        Only who `fills` it opens one that is still being copied there; a new one gets no format.
        Raises NotFound if there is none and `create` is false, StoreUnreachable, StoreDenied,
        StoreTooNew, StoreDamaged, ReadOnlyHome, and UsageError where the driver is not installed,
        or the role of the connection can be no user.
        """
        try:
            from kb.store.postgres.postgres_env import PostgresEnvironment
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "psycopg":
                raise
            detail = f"a home in a database needs more: {install_command('postgres')}"
            raise UsageError(detail) from error
        env = PostgresEnvironment(address, create=create, beside=beside)
        store = cls(env, clock or env.clock, read_only=not create, place=address.shown)
        store.home, store.server_state, store._lock = env.home, env.server_state, env.exclusive
        try:
            store.caller = _caller_of(env.role)
            if not fills:
                store._check_format()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def is_shared(self) -> bool:
        """Whether it is in a database, which several machines may use."""
        return bool(self.home)

    def _check_format(self) -> None:
        with self.read() as txn:
            txn.expect("meta", map(word_key, ("format", MACHINE)))
            stored_format = get_word(txn, "format")
            self._made_on = get_word(txn, MACHINE) if self.home else ""
            has_docs = not stored_format and txn.count("docs") > 0
        # A store of format 1 is upgraded by the first transaction that needs generations.
        if stored_format in (FORMAT, FORMAT_WITHOUT_GENERATIONS):
            return
        if stored_format == FORMAT_UNFINISHED:
            raise HomeUnfinished(place=self._place)
        check_not_newer(stored_format, self._place)
        if stored_format or has_docs:
            raise StoreDamaged("its format is unknown", place=self._place)
        if not self.read_only:
            with self.write() as txn:
                # Another process may have begun to fill it since.
                is_new = not get_word(txn, "format")
                if is_new:
                    set_word(txn, "format", FORMAT)
            if not is_new:
                self._check_format()

    def is_used_on(self, node: str) -> None:
        """Say which machine this is; the first one that writes to a home in a database made it.

        Raises HomeUnfinished for a home that another process has begun to fill since.
        """
        if not self._made_on:
            # Who may only read made nothing.
            with suppress(ReadOnlyHome), self.write() as txn:
                stored_format = get_word(txn, "format")
                if stored_format == FORMAT_UNFINISHED:
                    raise HomeUnfinished(place=self._place)
                self._made_on = get_word(txn, MACHINE) or node
                if stored_format:
                    set_word(txn, MACHINE, self._made_on)
        self.node = node
        own = self.caller.own_name
        self.machine = files_of(own, node) if own else "" if node == self._made_on else node

    def local_place(self, place: Lsid) -> Lsid:
        """What a home in a folder on this machine calls a source: without its user and machine."""
        own_file, own_text = f"file://{self.machine}/", owned_lsid(self.caller.own_name, "")
        if self.machine and place.startswith(own_file):
            return Lsid(f"file:///{place.removeprefix(own_file)}")
        return Lsid(place.removeprefix(own_text))

    def read(self) -> AbstractContextManager[ReadTxn]:
        """A read transaction: a consistent snapshot."""
        return self._env.read()

    def write(self) -> AbstractContextManager[WriteTxn]:
        """The write transaction: durable when its block ends, rolled back by an exception."""
        return self._env.write()

    def size_bytes(self) -> int:
        """Bytes in use."""
        return self._env.size_bytes()

    def last_txn(self) -> int:
        """The number of the newest commit of any process; it only grows. Costs no look-up."""
        return self._env.last_txn()

    def seen_txn(self) -> int:
        """The number of the newest commit that this process has seen or made; costs no look-up."""
        return self._env.seen_txn()

    def reach(self, at_least: int, wait_s: float) -> None:
        """Wait until the store has come to a transaction. Raises StoreBehind after `wait_s`."""
        deadline = time.monotonic() + wait_s
        while self.last_txn() < at_least:
            if time.monotonic() > deadline:
                raise StoreBehind(place=self._place)
            time.sleep(_LOOK_S)

    def exclusive(self, name: str, wait_s: float) -> AbstractContextManager[None]:
        """Hold the lock of that name on all machines that share the home; in a folder do nothing.

        It ends with its holder. Raises StoreBusy after `wait_s` seconds.
        """
        return self._lock(name, wait_s) if self._lock else nullcontext()

    def tell_of(self, table: ToldTable, wake: Callable[[], None]) -> Callable[[], None] | None:
        """As `Environment.tell_of`."""
        return self._env.tell_of(table, wake)

    def reap_readers(self) -> int:
        """Free the reader slots of dead processes; returns how many."""
        return self._env.reap_readers()

    def copy_to(self, folder: Path) -> None:
        """Write a snapshot durably into the empty `folder`, as a store."""
        self._env.copy_to(folder)

    def close(self) -> None:
        """Close the environment; a second call does nothing."""
        self._env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _caller_of(role: str) -> Scope:
    """Who a role of a database is to a home there; the empty one owns it. Raises UsageError."""
    if role == LOCAL_USER:
        raise UsageError(
            f"the role {role} can be no user of a home, because the owner's docs are called so; "
            "connect as another one"
        )
    return Scope(user=role) if role else OPERATOR
