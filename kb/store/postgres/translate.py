"""Errors of the driver as errors of kb: one line, without what could be a secret."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors

from kb.errors import (
    KbError,
    ReadOnlyHome,
    StoreBusy,
    StoreDamaged,
    StoreDenied,
    StoreFull,
    StoreUnreachable,
    UsageError,
)

_DETAIL_CHARS_MAX: Final = 300
# What psycopg says where libpq cannot begin.
_BAD_SETTINGS: Final = "connection is bad: "
# The first two letters of an SQLSTATE are its class.
_LOST_CLASSES: Final = ("08", "57P")
_ENDS_A_CONNECTION: Final = ("FATAL", "PANIC")
_DENIED_CLASSES: Final = ("28", "3D")
# While connecting libpq gives no SQLSTATE, and the server's words are in its own language; these
# are those of libpq itself and of an English server.
_UNPROVEN_WORDS: Final = ("authentication failed", "no password supplied")
_DENIED_WORDS: Final = (
    *("no pg_hba.conf entry", "is not permitted to log in", "permission denied for database"),
    *("not currently accepting connections", "certificate", "does not support SSL"),
)
_WHO_GRANTS: Final = "the owner of the home gives the right to read it by GRANT"
_WHAT_KB_GIVES: Final = "kb gives the password that libpq finds (PGPASSWORD, ~/.pgpass)"


@contextmanager
def translated_errors(place: str) -> Iterator[None]:
    """Raise the KbError of a driver's error."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, place) from error


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, rather than a statement refused."""
    state = error.sqlstate or ""
    if state.startswith(_LOST_CLASSES) or error.diag.severity_nonlocalized in _ENDS_A_CONNECTION:
        return True
    return isinstance(error, psycopg.OperationalError) and not state


def denied_reading(error: errors.InsufficientPrivilege, place: str) -> StoreDenied:
    """The error for a role that may not even read."""
    return StoreDenied(f"{_first_line(error)}; {_WHO_GRANTS}", place=place)


def translated(error: psycopg.Error, place: str) -> KbError:
    """The KbError for an error of the driver."""
    detail = _first_line(error)
    match error:
        case errors.DiskFull() | errors.OutOfMemory():
            return StoreFull(detail, place=place)
        case errors.LockNotAvailable():
            return StoreBusy(place=place)
        case errors.QueryCanceled():
            return StoreUnreachable("the database took too long to answer", place=place)
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return ReadOnlyHome(detail, place=place)
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreDamaged(detail, place=place)
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            return StoreDamaged(f"a table of the home is missing ({detail})", place=place)
        case errors.TooManyConnections():
            return StoreUnreachable("the database has no connection left", place=place)
    return _translated_by_words(error, detail, place)


def _translated_by_words(error: psycopg.Error, detail: str, place: str) -> KbError:
    """As `translated`, for errors that have no class of their own, as all have while connecting."""
    state = error.sqlstate or ""
    if _is_of_settings(error, detail):
        return UsageError(f"{place}: {detail}")
    if any(words in detail for words in _UNPROVEN_WORDS):
        return StoreDenied(f"{detail}; {_WHAT_KB_GIVES}", place=place)
    is_missing = "FATAL" in detail and "does not exist" in detail
    is_denied = is_missing or any(words in detail for words in _DENIED_WORDS)
    if is_denied or state.startswith(_DENIED_CLASSES):
        return StoreDenied(detail, place=place)
    if is_lost(error) or state.startswith(("40", "53")):
        return StoreUnreachable(detail, place=place)
    return StoreDamaged(f"the database refused a statement ({detail})", place=place)


def _is_of_settings(error: psycopg.Error, detail: str) -> bool:
    """Whether libpq could not read the address, a variable or a service file, and asked nobody."""
    if error.sqlstate is not None or "connection to server" in detail:
        return False
    return type(error) is psycopg.ProgrammingError or detail.startswith(_BAD_SETTINGS)


def _first_line(error: psycopg.Error) -> str:
    # Only the first line: the next ones may quote values.
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line[:_DETAIL_CHARS_MAX]
