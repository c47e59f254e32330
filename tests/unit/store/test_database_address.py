"""How the address of a home in a database is read."""

import pytest

from kb.errors import UsageError
from kb.store.content.database import DatabaseAddress, database_address


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://h/db/Large",
        "postgresql://h/db/a/b",
        "postgresql://h/db/a-b",
        "postgresql://h/db/pg_mine",
        "postgresql://h/db/" + "a" * 41,
        "postgresql://h/db?options=-cfoo",
    ],
)
def test_addresses_that_cannot_be(bad: str) -> None:
    """They are refused before anything is asked."""
    with pytest.raises(UsageError):
        database_address(bad)


def test_addresses() -> None:
    """All parts can be left out; the home's name is not the driver's to read."""
    full = database_address("postgres://u@h:1/db/team_1?sslmode=require")
    assert full == DatabaseAddress(dsn="postgresql://u@h:1/db?sslmode=require", schema="team_1")
    assert full.shown == "postgresql://u@h:1/db/team_1?sslmode=require"
    assert database_address("postgresql://").shown == "postgresql:////kb"
    assert database_address("postgresql:///db?service=x").schema == "kb"
