"""A home in a database beside one in a folder, when the network hangs."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from cutting_proxy import CuttingProxy, proxy_before
from http_server import until
from postgres_server import PostgresServer

from kb.errors import StoreUnreachable
from kb.home.app import App
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.intake.sync.add import AddOptions
from kb.model.config import Settings, load
from kb.operations.search import ShownSearch, run
from kb.store.content.database import DatabaseAddress, local_folder
from kb.store.postgres.connections import Connections


def settings() -> Settings:
    made = load([], [])
    return msgspec.structs.replace(
        made, embed=msgspec.structs.replace(made.embed, kind="hashing", model="64")
    )


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CuttingProxy]:
    with proxy_before(str(postgres.folder / f".s.PGSQL.{postgres.port}")) as made:
        yield made


@pytest.fixture
def spaces(
    postgres: PostgresServer, proxy: CuttingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Spaces]:
    """A project in a folder, and a user's home in a database, with one doc each."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    schema = postgres.new_address().schema
    shared = f"postgresql://kb@127.0.0.1:{proxy.port}/postgres/{schema}?sslmode=disable"
    homes = [
        SpaceHome(name="project", home=tmp_path / ".kb"),
        SpaceHome(name="user", home=local_folder(shared)),
    ]
    for space in homes:
        (tmp_path / f"{space.name}.md").write_text(f"# {space.name}\n\nThe harbour.\n")
        with App.open(space.home, settings()) as app, app.parser() as parser:
            app.adder(parser, AddOptions()).add([str(tmp_path / f"{space.name}.md")])
            pool = app.pool()
            pool.start()
            pool.drain()
            pool.shutdown()
    with Spaces.open(homes, lambda _: settings()) as opened:
        yield opened


def found(spaces: Spaces) -> set[str | None]:
    result = run(spaces, ShownSearch(query="harbour"), spaces.caller)
    return {hit.source_space for hit in result.hits}


def test_a_network_that_hangs_is_waited_for_once(
    spaces: Spaces, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also amid a connection; the next ones are answered at once, and later both homes answer."""
    monkeypatch.setattr("kb.store.postgres.connections._BESIDE_ANSWER_S", 0.5)
    monkeypatch.setattr("kb.model.resting._MAX_S", 3.0)
    assert found(spaces) == {"project", "user"}
    reads = [home.store.read() for home in spaces.homes[1:] * 8]
    with contextlib.ExitStack() as stack:
        for read in reads:
            stack.enter_context(read)
    proxy.hangs = True
    start_s = time.monotonic()
    assert found(spaces) == {"project"}
    # Half a second or five for the connection that there was, two for a new one.
    assert time.monotonic() - start_s < 12
    tries = proxy.taken
    for _ in range(20):
        assert found(spaces) == {"project"}
    assert proxy.taken - tries <= 1
    proxy.hangs = False
    until(lambda: found(spaces) == {"project", "user"})


def test_a_server_that_is_away_is_tried_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each failure nobody tries for ten times as long as it took, a minute at most."""
    now_s, tried_s = 1000.0, []

    def connect(*_: object) -> None:
        nonlocal now_s
        tried_s.append(now_s)
        now_s += 2.0
        raise StoreUnreachable("no answer", place="there")

    monkeypatch.setattr(Connections, "_connect", connect)
    monkeypatch.setattr("kb.store.postgres.connections.time.monotonic", lambda: now_s)
    connections = Connections(DatabaseAddress(dsn="postgresql://nowhere/db"), beside=True)
    for _ in range(60):
        with pytest.raises(StoreUnreachable, match="no answer"):
            connections.take(lambda _: None)
        now_s += 1.0
    assert tried_s == [1000.0, 1022.0, 1044.0]
