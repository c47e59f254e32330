"""An environment in a database, for tests of what happens to its server."""

from collections.abc import Iterator

import pytest

from kb.store.content.database import DatabaseAddress
from kb.store.postgres.postgres_env import PostgresEnvironment


@pytest.fixture
def env(address: DatabaseAddress) -> Iterator[PostgresEnvironment]:
    made = PostgresEnvironment(address)
    yield made
    made.close()
