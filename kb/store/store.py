"""The store of one home: opens its environment and checks its format."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kb.errors import (
    NotFound,
    ReadOnlyHome,
    StoreDamaged,
    StoreTooNew,
    UsageError,
    install_command,
)
from kb.model.clock import Clock, SystemClock
from kb.store.content.layout import is_store
from kb.store.kv import Environment, ReadTxn, WriteTxn
from kb.store.meta import FORMAT, FORMAT_WITHOUT_GENERATIONS, get_word, set_word

if TYPE_CHECKING:
    from kb.store.content.database import DatabaseAddress


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
        cls, address: "DatabaseAddress", clock: Clock | None = None, *, create: bool = True
    ) -> Self:
        """Open the store in a database; it has the server's clock, if none is given.

        Raises NotFound if there is none and `create` is false, StoreUnreachable, StoreDenied,
        StoreTooNew, StoreDamaged, ReadOnlyHome, and UsageError where the driver is not installed.
        """
        try:
            from kb.store.postgres.postgres_env import PostgresEnvironment
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "psycopg":
                raise
            detail = f"a home in a database needs more: {install_command('postgres')}"
            raise UsageError(detail) from error
        env = PostgresEnvironment(address, create=create)
        store = cls(env, clock or env.clock, read_only=not create, place=address.shown)
        store.home = env.home
        try:
            store._check_format()
        except BaseException:
            store.close()
            raise
        return store

    def _check_format(self) -> None:
        with self.read() as txn:
            stored_format = get_word(txn, "format")
            has_docs = not stored_format and txn.count("docs") > 0
        # A store of format 1 is upgraded by the first transaction that needs generations.
        if stored_format in (FORMAT, FORMAT_WITHOUT_GENERATIONS):
            return
        check_not_newer(stored_format, self._place)
        if stored_format or has_docs:
            raise StoreDamaged("its format is unknown", place=self._place)
        if not self.read_only:
            with self.write() as txn:
                set_word(txn, "format", FORMAT)

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

    def tell_of_jobs(self, wake: Callable[[], None]) -> Callable[[], None] | None:
        """As `Environment.tell_of_jobs`."""
        return self._env.tell_of_jobs(wake)

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
