"""Every environment that there is, for the tests of what they all promise."""

from pathlib import Path

import pytest
from postgres_server import PostgresServer

from kb.store.kv import Environment
from kb.store.lmdb_env import LmdbEnvironment
from kb.store.memory import MemoryEnvironment
from kb.store.postgres.postgres_env import PostgresEnvironment

ENGINES = ("lmdb", "memory", "postgres")


def environment_of(engine: str, request: pytest.FixtureRequest, folder: Path) -> Environment:
    """A new environment of an engine; the caller closes it."""
    if engine == "memory":
        return MemoryEnvironment()
    if engine == "lmdb":
        return LmdbEnvironment(folder)
    server: PostgresServer = request.getfixturevalue("postgres")
    return PostgresEnvironment(server.new_address())


def new_environment(request: pytest.FixtureRequest, folder: Path) -> Environment:
    """The environment of a test that runs once for each of ENGINES."""
    return environment_of(request.param, request, folder)
