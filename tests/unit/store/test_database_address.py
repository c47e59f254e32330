"""How the address of a home in a database is read."""

import pytest

from kb.errors import UsageError
from kb.store.content.database import DatabaseAddress, database_address
from kb.store.content.layout import is_in_database


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://h/db/Large",
        "postgresql://h/db/a/b",
        "postgresql://h/db/a-b",
        "postgresql://h/db/pg_mine",
        "postgresql://h/db/" + "a" * 41,
        "postgresql://h/db?options=-cfoo",
        "postgresql://h/db?%70assword=only-mine",
        "postgresql://h/db?ssl%50assword=only-mine",
        "postgresql://u:only-mine@h/db",
        "postgresql://u:half/only-mine@h/db",
        "postgresql://u:only-mine?x@h/db",
        "postgresql://h:only-mine/db",
    ],
)
def test_addresses_that_cannot_be(bad: str) -> None:
    """They are refused before anything is asked, and no password is told."""
    with pytest.raises(UsageError) as refused:
        database_address(bad)
    assert "only-mine" not in str(refused.value)


@pytest.mark.parametrize(
    "named", ["mysql://u:only-mine@h/db", "postgressql://h/db", "POSTGRESQL://h/db", "file:///x"]
)
def test_an_address_of_another_kind_is_no_folder(named: str) -> None:
    """A mistyped address makes no home on this machine that nobody else sees."""
    with pytest.raises(UsageError, match="another kind") as refused:
        is_in_database(named)
    assert "only-mine" not in str(refused.value)


def test_folders_are_no_addresses() -> None:
    """Whatever has no scheme is a folder."""
    for named in ("notes", "/home/x/notes", "C:\\notes", "postgresql:notes"):
        assert not is_in_database(named)


def test_addresses() -> None:
    """All parts can be left out; the home's name is not the driver's to read."""
    full = database_address("postgres://u@h:1/db/team_1?sslmode=require")
    assert full == DatabaseAddress(dsn="postgresql://u@h:1/db?sslmode=require", schema="team_1")
    assert full.shown == "postgresql://u@h:1/db/team_1?sslmode=require"
    for hosts in ("u@[::1]:5432", "a:1,b:2", "u@[::1],b:2", "u@:5433", "u@a:", "u%40x@h"):
        assert database_address(f"postgresql://{hosts}/db").dsn == f"postgresql://{hosts}/db"
    assert database_address("postgresql://").shown == "postgresql:////kb"
    assert database_address("postgresql:///db?service=x").schema == "kb"
