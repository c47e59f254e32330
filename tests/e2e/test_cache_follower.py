"""A server of a home that machines share has its caches follow what others change, unasked."""

import threading
from pathlib import Path

from http_server import serving, until
from nodes import Node
from postgres_server import PostgresServer

from kb.home.app import App
from kb.home.services.cache_follower import CacheFollower
from kb.intake.sync.add import AddOptions
from kb.model.config import EmbedSettings, Settings
from kb.store.content.database import database_address, local_folder
from kb.store.log import last_seq
from kb.store.records import FOLLOWERS
from kb.store.store import Store

SETTINGS = Settings(embed=EmbedSettings(kind="hashing", model="64"))


def test_a_server_follows_unasked(postgres: PostgresServer, tmp_path: Path) -> None:
    """Nobody searches on it, and yet its caches have what another machine adds and removes."""
    ada = Node(tmp_path / "ada", postgres.home(), KB_MACHINE="ada")
    bob = Node(tmp_path / "bob", ada.home, KB_MACHINE="bob")
    (tmp_path / "oak.md").write_text("# Oak\n\nWe plant oaks.\n")
    assert ada.run("add", tmp_path / "oak.md").code == 0
    with serving(bob, "--workers", "0", "--processes", "2", env=dict(bob.env)) as server:

        def is_level() -> bool:
            return bool(server.get("/health/ready").json["behind"] == 0)

        until(is_level)
        manifests = set(bob.local.rglob("manifest.json"))
        assert {path.parts[-3] for path in manifests} == {"lexical", "dense"}
        (tmp_path / "elm.md").write_text("# Elm\n\nWe fell elms.\n")
        assert ada.run("add", tmp_path / "elm.md").code == 0
        with (
            Store.open_database(database_address(ada.home), create=False) as store,
            store.read() as txn,
        ):
            end = last_seq(txn)
        until(is_level)
        assert all(f'"watermark":{end},' in path.read_text() for path in manifests)


def test_it_says_what_they_hold_once_it_is_quiet(postgres: PostgresServer, tmp_path: Path) -> None:
    """So checks of other machines can compare it; while jobs wait, not of the vectors."""
    home = postgres.home()
    ada = Node(tmp_path / "ada", home, KB_MACHINE="ada")
    (tmp_path / "oak.md").write_text("# Oak\n\nWe plant oaks.\n")
    assert ada.run("add", "--no-wait", tmp_path / "oak.md").code == 0
    with App.open(local_folder(home), SETTINGS) as app:

        def told() -> dict[str, int]:
            with app.store.read() as txn:
                rows = [row for _, row in FOLLOWERS.scan(txn)]
            return {
                Path(row.cache).parent.name: row.contents.rows
                for row in rows
                if row.contents is not None
            }

        follower = CacheFollower(
            app.store, lambda: app.lexical, lambda: app.dense, 5.0, quiet_s=0.0
        )
        follower.follow()
        assert "dense" not in told()
        assert ada.run("worker", "--drain").code == 0
        follower.follow()
        assert told() == {"lexical": 1, "dense": 1}
        assert ada.run("check").code == 0


def test_a_home_in_a_folder_has_none(tmp_path: Path) -> None:
    """There a search takes up what is new, and no thread does; how much that is can be asked."""
    (tmp_path / "oak.md").write_text("# Oak\n\nWe plant oaks.\n")
    with App.open(tmp_path / "home", SETTINGS) as app, app.cache_follower.following():
        assert "kb-follower" not in [thread.name for thread in threading.enumerate()]
        with app.parser() as parser:
            app.adder(parser, AddOptions()).add([str(tmp_path / "oak.md")])
        pool = app.pool()
        pool.start()
        pool.drain()
        assert pool.shutdown()
        assert app.behind() == 2
        assert app.catch_up() == []
        assert app.behind() == 0
