"""Machines that share a home compact it one at a time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer

from kb.errors import StoreBusy
from kb.home.app import App
from kb.model.config import EmbedSettings, Settings
from kb.store.content.database import DatabaseAddress, local_folder
from kb.store.postgres.postgres_env import PostgresEnvironment
from kb.upkeep.compactor import compactor

HOLDER = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"


@pytest.fixture
def app(address: DatabaseAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = Settings(embed=EmbedSettings(kind="hashing", model="64"))
    with App.open(local_folder(address.shown), settings) as opened:
        yield opened


def test_one_machine_at_a_time(
    postgres: PostgresServer, address: DatabaseAddress, app: App
) -> None:
    """Another is refused while one compacts, and no more once that has died."""
    other = PostgresEnvironment(address)
    with other.exclusive("compaction", 0):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(compactor, "_WAIT_S", 0.0)
            with pytest.raises(StoreBusy):
                app.compactor.run()
        assert app.compactor.run(dry_run=True).dry_run
        assert postgres.run_sql(HOLDER) == [(True,)]
        app.compactor.run()
    other.close()
