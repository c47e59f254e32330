"""The address of a home whose store is in a PostgreSQL database."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from kb.errors import ReadOnlyHome, UsageError
from kb.model.config.places import user_folder
from kb.model.ids import sha256_hex
from kb.store.content.durable import write_temporary
from kb.store.content.layout import ADDRESS_FILE, CACHES_FOLDER

SCHEMA_DEFAULT: Final = "kb"
_SCHEMA: Final = r"[a-z_][a-z0-9_]{0,39}"
_NAME_HEX: Final = 12
_RANDOM_BYTES: Final = 8
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


def database_address(home: str) -> DatabaseAddress:
    """Parse postgresql://USER@HOST:PORT/DATABASE/NAME?SETTING=VALUE, all parts optional.

    NAME is the home's: several homes can share a database; without it the home is called "kb".
    Raises UsageError, which repeats nothing of an address that has a password.
    """
    base, mark, settings = home.partition("?")
    _, _, rest = base.partition("://")
    authority, _, path = rest.partition("/")
    # libpq decodes them, too.
    keys = [unquote(setting.partition("=")[0]).casefold() for setting in settings.split("&")]
    # One in which a slash is not encoded reaches into the path.
    if ":" in rest.rpartition("@")[0] or "password" in keys or "sslpassword" in keys:
        raise UsageError(
            "the address of the home has a password, which others can see in a list of processes; "
            "set PGPASSWORD, or write it to ~/.pgpass or to a service file of libpq"
        )
    if not all(map(_has_port_or_none, authority.rpartition("@")[2].split(","))):
        # It may be a password that has a question mark, so it is not repeated.
        raise UsageError("the address of the home has a port that is not a number")
    refused = [key for key in keys if key in _NOT_IN_ADDRESS]
    if refused:
        raise UsageError(f"the address of a home cannot set {refused[0]}")
    database, _, name = path.partition("/")
    name = name.removesuffix("/") or SCHEMA_DEFAULT
    if not re.fullmatch(_SCHEMA, name) or name.startswith("pg_"):
        raise UsageError(
            f"{name!r} cannot be the name of a home in a database: give at most 40 small letters, "
            "digits and underscores after the database, as in postgresql://host/database/name"
        )
    return DatabaseAddress(dsn=f"postgresql://{authority}/{database}{mark}{settings}", schema=name)


def _has_port_or_none(host: str) -> bool:
    """Whether what follows a host, which may be an IPv6 address in brackets, is a port."""
    _, colon, port = host.rpartition("]")[2].partition(":")
    return not colon or port == "" or (port.isascii() and port.isdigit())


def libpq_settings(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What libpq reads of the environment besides the address, but for passwords, by name.

    Equal settings connect to one database as one role, as long as a service file stays as it is.
    """
    names = sorted(name for name in env if name.startswith("PG") and "PASS" not in name)
    return tuple((name, env[name]) for name in names)


def home_caches() -> Path | None:
    """Where this user's caches of homes in databases lie; None for a user without a home folder."""
    caches = user_folder("cache")
    return caches / CACHES_FOLDER if caches.is_absolute() else None


def local_folder(home: str) -> Path:
    """This machine's folder of a home in a database: its caches, locks and socket; made if missing.

    Whatever lies in it can be made anew. Raises UsageError, and ReadOnlyHome if it cannot be made.
    """
    address = database_address(home)
    caches = home_caches()
    if caches is None:
        raise UsageError("this user has no folder for caches; set XDG_CACHE_HOME")
    # A folder on a disk that machines share is not for both: locks and maps are of one machine.
    node = f"{address.shown}\n{os.uname().nodename}"
    folder = caches / f"{address.schema}-{sha256_hex(node)[:_NAME_HEX]}"
    named = folder / ADDRESS_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not named.is_file():
            write_named(named, address.shown)
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=folder) from error
    return folder


def write_named(path: Path, text: str) -> None:
    """Write a small file of a local folder durably; of several writers any one wins, whole."""
    # What a killed writer leaves there, a compaction removes.
    unfinished = path.parent / "tmp"
    unfinished.mkdir(mode=0o700, exist_ok=True)
    temporary = unfinished / os.urandom(_RANDOM_BYTES).hex()
    os.replace(write_temporary(temporary, text.encode()), path)


def address_in(folder: Path) -> DatabaseAddress | None:
    """The database of the home whose local folder this is; None for a home that lies in its folder.

    Only folders that `local_folder` made count: one that came from elsewhere names no database.
    """
    if folder.parent != home_caches():
        return None
    try:
        text = (folder / ADDRESS_FILE).read_text("utf-8")
    except OSError:
        return None
    return database_address(text.strip())
