"""A home in a database that a history is done to, as `InProcess` is one in a folder."""

import os
import shutil
from pathlib import Path
from typing import ClassVar

from histories import BackUp, LoseIndex, MoveHome, OnWhole, Restore
from histories_home import InProcess
from postgres_server import PostgresServer

from kb.store.content.database import database_address, local_folder

# What makes a home what it is; a dump has all of it.
_TABLES = ("records", "counter", "commits")


class OnPostgres(InProcess):
    """Moving goes to another machine, and a backup is what a dump of the database has."""

    server: ClassVar[PostgresServer]

    def __init__(self) -> None:
        self._address = self.server.home()
        self._schema = database_address(self._address).schema
        self._has_dump = False
        super().__init__()

    def close(self) -> None:
        super().close()
        self.server.drop(self._schema)

    def _next_home(self) -> Path:
        self._homes += 1
        os.environ["XDG_CACHE_HOME"] = str(self._root / f"machine-{self._homes}")
        return local_folder(self._address)

    def _do_folder(self, op: OnWhole) -> None:
        match op:
            case LoseIndex():
                super()._do_folder(op)
            case BackUp():
                self._dump()
            case Restore() if self._has_dump:
                self.app.close()
                for table in _TABLES:
                    self._run(f"TRUNCATE {{0}}.{table}")
                    self._run(f"INSERT INTO {{0}}.{table} SELECT * FROM {{0}}.kept_{table}")
                self._open()
            case MoveHome():
                self.app.close()
                before, self._home = self._home, self._next_home()
                shutil.rmtree(before)
                self._open()
            case _:
                pass

    def _dump(self) -> None:
        for table in _TABLES:
            self._run(f"DROP TABLE IF EXISTS {{0}}.kept_{table}")
            self._run(f"CREATE TABLE {{0}}.kept_{table} AS TABLE {{0}}.{table}")
        self._has_dump = True

    def _run(self, text: str) -> None:
        self.server.run_sql(text.format(self._schema))
