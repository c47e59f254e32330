"""What several machines' caches hold is compared, and the one that differs is named."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from nodes import Node
from postgres_server import PostgresServer

from kb.model.node import FOLLOWER_TTL_MS, Follower
from kb.search.index.lexical import LexicalIndex
from kb.search.index.log_follower import LogPosition
from kb.store import log
from kb.store.codec import u64
from kb.store.content.database import database_address
from kb.store.records import CHUNKS, FOLLOWERS
from kb.store.store import Store


@pytest.fixture
def ada(postgres: PostgresServer, tmp_path: Path) -> Node:
    """The machine that makes the home, with two docs in it."""
    node = Node(tmp_path / "ada", postgres.home(), KB_MACHINE="ada")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "oak.md").write_text("# Oak\n\nWe plant oaks.\n")
    (folder / "elm.md").write_text("# Elm\n\nWe fell elms.\n")
    assert node.run("add", folder).code == 0
    return node


@pytest.fixture
def bob(ada: Node, tmp_path: Path) -> Node:
    return Node(tmp_path / "bob", ada.home, KB_MACHINE="bob")


def lose_a_passage(node: Node) -> None:
    """Take a chunk from the words of a machine, as an error of kb might: its files stay sound."""
    with Store.open_database(database_address(node.home), create=False) as store:
        with store.read() as txn:
            end = log.last_seq(txn)
        index = LexicalIndex(node.local / "index" / "lexical", "private:local")
        position = index.refresh()
        assert position is not None
        lost = min(index.rows())
        with contextlib.closing(index), hidden(store, lost):
            index.apply(store, [lost], LogPosition(watermark=end, tail=position.tail))


@contextlib.contextmanager
def hidden(store: Store, no: int) -> Iterator[None]:
    """Let a chunk be gone for as long as the block."""
    with store.write() as txn:
        chunk = CHUNKS.get(txn, u64(no))
        assert chunk is not None
        CHUNKS.delete(txn, u64(no))
    try:
        yield
    finally:
        with store.write() as txn:
            CHUNKS.put(txn, u64(no), chunk)


def test_equal_caches_are_well(ada: Node, bob: Node) -> None:
    """Two machines that hold the same are level, and no check has anything to say."""
    for node in (ada, bob, ada):
        checked = node.run("check", "--json")
        assert (checked.code, checked.json["findings"]) == (0, []), checked.out
    caches = bob.run("stats", "--json").json["caches"]
    assert [(row["node"], row["behind"], row["problems"]) for row in caches] == [
        ("ada", 0, []),
        ("bob", 0, []),
    ]
    assert "bob: level" in ada.run("stats").out


def test_the_one_that_differs_is_named(ada: Node, bob: Node) -> None:
    """By every machine's check and doctor and in stats, until it is mended where it is."""
    assert len(bob.hits("oaks")) == 2
    lose_a_passage(bob)
    own = bob.run("check", "--json")
    assert (own.code, own.json["sound"]) == (5, False)
    checked = ada.run("check", "--json")
    (finding,) = checked.json["findings"]
    assert (checked.code, finding["place"]) == (5, "caches of bob")
    assert finding["mend"] == "run `kb check --repair` on bob"
    assert "caches of bob" in ada.run("doctor").out
    assert "run `kb check --repair` there" in ada.run("stats").out
    assert bob.run("check", "--repair").code == 0
    assert ada.run("check").code == 0
    assert [row["problems"] for row in ada.run("stats", "--json").json["caches"]] == [[], []]


def test_a_count_alone_does_not_pass(ada: Node, bob: Node) -> None:
    """What differs from the store in which passages it holds is found, and so is other's answer."""
    assert bob.run("check").code == 0
    with (
        Store.open_database(database_address(ada.home), create=False) as store,
        store.write() as txn,
    ):
        for key, row in list(FOLLOWERS.scan(txn)):
            if row.node == "bob" and "lexical" in row.cache:
                assert row.contents is not None
                contents = msgspec.structs.replace(row.contents, answers="0" * 16, is_checked=False)
                FOLLOWERS.put(txn, key, msgspec.structs.replace(row, contents=contents))
    (finding,) = ada.run("check", "--json").json["findings"]
    assert "differs" in finding["problem"]


def test_a_cache_made_anew_is_not_blamed(ada: Node, bob: Node) -> None:
    """What was wrong with files that are gone is forgotten with them."""
    assert len(bob.hits("oaks")) == 2
    lose_a_passage(bob)
    assert bob.run("check").code == 5
    for manifest in bob.local.rglob("manifest.json"):
        manifest.unlink()
    assert len(bob.hits("oaks")) == 2
    assert ada.run("check").code == 0


def test_a_machine_that_was_away_is_named(ada: Node, bob: Node) -> None:
    """The doctor says for whom the log is kept, and stats how far behind its caches are."""
    assert len(bob.hits("oaks")) == 2
    with (
        Store.open_database(database_address(ada.home), create=False) as store,
        store.write() as txn,
    ):
        for key, row in list(FOLLOWERS.scan(txn)):
            if row.node == "bob":
                seen_ms = row.seen_ms - FOLLOWER_TTL_MS // 2
                FOLLOWERS.put(txn, key, msgspec.structs.replace(row, seen_ms=seen_ms))
        for number in range(1, 10_002):
            log.append(txn, [number], words=True)
    assert "not used for 3 days, and the log is kept for 10,0" in ada.run("doctor").out
    assert len(bob.hits("oaks")) == 2


def test_what_an_older_kb_registered_is_read(ada: Node) -> None:
    """A row without what its cache holds counts as before, and is not compared."""
    with (
        Store.open_database(database_address(ada.home), create=False) as store,
        store.write() as txn,
    ):
        now_ms = store.clock.now_ms()
        row = Follower(node="old", cache="/var/index/dense/1", log_seq=1, seen_ms=now_ms)
        FOLLOWERS.put(txn, b"0" * 32, row)
    assert ada.run("check").code == 0
    names = [row["node"] for row in ada.run("stats", "--json").json["caches"]]
    assert names == ["ada", "old"]
