"""The address of a home whose store is in a PostgreSQL database."""

import re
from typing import Final

from msgspec import Struct

from kb.errors import UsageError

SCHEMES: Final = ("postgresql://", "postgres://")
SCHEMA_DEFAULT: Final = "kb"
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,39}")
# A setting of libpq that would be a secret in a list of processes, or that kb sets itself.
_NOT_IN_ADDRESS: Final = ("password", "passfile", "sslpassword", "options", "application_name")


class DatabaseAddress(Struct, frozen=True, kw_only=True):
    """A database that libpq can connect to, and the schema in it that is the home."""

    dsn: str
    """The address as libpq reads it. It never has a password."""
    schema: str = SCHEMA_DEFAULT

    @property
    def shown(self) -> str:
        """The whole address as people type it."""
        base, mark, settings = self.dsn.partition("?")
        return f"{base}/{self.schema}{mark}{settings}"


def is_database(home: str) -> bool:
    """Whether the text after --home names a database, not a folder."""
    return home.startswith(SCHEMES)


def database_address(home: str) -> DatabaseAddress:
    """Parse postgresql://USER@HOST:PORT/DATABASE/NAME?SETTING=VALUE, all parts optional.

    NAME is the home's: several homes can share a database; without it the home is called "kb".
    Raises UsageError, which repeats nothing of an address that has a password.
    """
    base, mark, settings = home.partition("?")
    scheme, _, rest = base.partition("://")
    authority, _, path = rest.partition("/")
    keys = [setting.partition("=")[0].casefold() for setting in settings.split("&")]
    if ":" in authority.rpartition("@")[0] or "password" in keys or "sslpassword" in keys:
        raise UsageError(
            "the address of the home has a password, which others can see in a list of processes; "
            "set PGPASSWORD, or write it to ~/.pgpass or to a service file of libpq"
        )
    refused = [key for key in keys if key in _NOT_IN_ADDRESS]
    if refused:
        raise UsageError(f"the address of a home cannot set {refused[0]}")
    database, _, name = path.partition("/")
    name = name.removesuffix("/") or SCHEMA_DEFAULT
    if not _SCHEMA.fullmatch(name) or name.startswith("pg_"):
        raise UsageError(
            f"{name!r} cannot be the name of a home in a database: give at most 40 small letters, "
            "digits and underscores after the database, as in postgresql://host/database/name"
        )
    if scheme != "postgresql":
        scheme = "postgresql"
    return DatabaseAddress(dsn=f"{scheme}://{authority}/{database}{mark}{settings}", schema=name)
