"""Machines that share a home in a database: each has files of its own, also of equal names."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from nodes import Node
from postgres_server import PostgresServer

from kb.model.node import FOLLOWER_TTL_MS, Follower
from kb.store import log
from kb.store.content.database import database_address
from kb.store.records import FOLLOWERS
from kb.store.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that both machines have under the same name, with other files in it."""
    return tmp_path / "docs"


@pytest.fixture
def ada(postgres: PostgresServer, tmp_path: Path) -> Node:
    """The machine that makes the home."""
    return Node(tmp_path / "ada", postgres.home(), KB_MACHINE="ada")


@pytest.fixture
def bob(ada: Node, tmp_path: Path) -> Node:
    return Node(tmp_path / "bob", ada.home, KB_MACHINE="bob")


def fill(folder: Path, **texts: str) -> None:
    """Let the folder have these files and no others, as the next machine sees it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)


def followers(store: Store) -> list[Follower]:
    """The caches that are registered."""
    with store.read() as txn:
        return [row for _, row in FOLLOWERS.scan(txn)]


def rows_of(node: Node, *args: object) -> dict[str, str]:
    """The ids of docs by their sources."""
    return {row["source"]: row["doc_id"] for row in node.run("ls", *args, "--json").json["docs"]}


def test_equal_places_are_of_two_machines(ada: Node, bob: Node, folder: Path) -> None:
    """Two machines add a folder of one name: no ids are shared, and no sync touches the other's."""
    fill(folder, plan="# Plan\n\nWe plant oaks.\n", old="# Old\n\nBirches.\n")
    assert ada.run("add", folder, "--json").json["added"] == 2
    fill(folder, plan="# Plan\n\nWe plant beeches.\n")
    assert bob.run("add", folder, "--json").json["added"] == 1
    rows = rows_of(ada)
    assert sorted(rows) == [f"{folder}/old.md", f"{folder}/plan.md", f"bob:{folder}/plan.md"]
    assert len(set(rows.values())) == 3
    line, *more = bob.run("sync-all", "--interval-min", 0, "--json").json["sources"]
    assert (line["location"], line["outcome"], line["removed"], more) == (
        *(f"bob:{folder}", "synced", 0, []),
    )
    assert rows_of(bob) == rows
    assert bob.run("add", folder, "--json").json["unchanged"] == 1
    # What a machine names it means of its own files, and of others' where it has none.
    for node, text in ((ada, "oaks"), (bob, "beeches")):
        shown = node.run("show", f"{folder}/plan.md").out
        assert text in shown
    assert "Birches" in bob.run("show", f"{folder}/old.md").out
    assert "beeches" in ada.run("show", f"bob:{folder}/plan.md").out
    assert rows_of(bob, "--source", folder) == {
        f"bob:{folder}/plan.md": rows[f"bob:{folder}/plan.md"]
    }
    found = bob.run("search", "plant", "--source", folder, "--json").json["hits"]
    assert [hit["source"] for hit in found] == [f"bob:{folder}/plan.md"]


def test_freshness_is_unknown_of_another_machine(ada: Node, bob: Node, folder: Path) -> None:
    """A file of the same name on this machine says nothing about that of another."""
    fill(folder, plan="# Plan\n\nWe plant oaks.\n")
    assert ada.run("add", folder).code == 0
    assert [hit["freshness"] for hit in ada.hits("oaks")] == ["fresh"]
    assert [hit["freshness"] for hit in bob.hits("oaks")] == ["unknown"]
    opened = bob.run("open", f"{folder}/plan.md", "--print")
    assert opened.code != 0


def test_moves_and_removals_stay_on_their_machine(ada: Node, bob: Node, folder: Path) -> None:
    """A file that moves on one machine leaves the other's; what `kb rm` hides stays hidden."""
    fill(folder, plan="# Plan\n\nWe plant oaks.\n")
    assert ada.run("add", folder).code == 0
    assert bob.run("add", folder).code == 0
    before = rows_of(ada)
    fill(folder, renamed="# Plan\n\nWe plant oaks.\n")
    line, *_ = bob.run("sync-all", "--interval-min", 0, "--json").json["sources"]
    assert (line["moved"], line["removed"]) == (1, 0)
    rows = rows_of(ada)
    assert rows[f"bob:{folder}/renamed.md"] == before[f"bob:{folder}/plan.md"]
    assert rows[f"{folder}/plan.md"] == before[f"{folder}/plan.md"]
    assert bob.run("rm", rows[f"{folder}/plan.md"], "--yes").code == 0
    fill(folder, plan="# Plan\n\nWe plant oaks.\n")
    assert ada.run("sync-all", "--interval-min", 0, "--json").json["resurrected"] == 0
    assert [source for source in rows_of(ada) if not source.startswith("bob:")] == []
    assert ada.run("check").code == 0


def test_a_topic_is_of_the_machine_whose_settings_name_it(
    ada: Node, bob: Node, folder: Path
) -> None:
    """A machine without the topic, or with another of its name, leaves its docs alone."""
    fill(folder, oaks="# Oaks\n\nThey grow slowly.\n")
    setting = ("--cfg", f"kb.topic.trees.subjects={folder}", "--cfg", "kb.topic.trees.index=true")
    assert ada.run("init").code == 0
    assert ada.run(*setting, "sync-all", "--interval-min", 0).code == 0
    assert bob.run("sync-all", "--interval-min", 0).code == 0
    assert list(rows_of(bob, "--kind", "topic")) == [f"{folder}/oaks.md"]
    fill(folder, elms="# Elms\n\nThey grow fast.\n")
    assert bob.run(*setting, "sync-all", "--interval-min", 0).code == 0
    assert len({*rows_of(ada, "--kind", "topic").values()}) == 2


def test_sources_are_named_with_their_machine(ada: Node, bob: Node, folder: Path) -> None:
    """`kb sources` tells two folders of one name apart, and `sources rm` takes one's own."""
    fill(folder, plan="# Plan\n\nWe plant oaks.\n")
    assert ada.run("add", folder).code == 0
    assert bob.run("add", folder).code == 0
    out = ada.run("sources").out
    assert f"bob:{folder}" in out
    only = ada.run("sync-all", "--source", f"bob:{folder}", "--json")
    assert "its files are on bob" in only.json["sources"][0]["reason"]
    assert bob.run("sources", "rm", folder).code == 0
    (left,) = ada.run("sources", "--json").json["sources"]
    assert left["machine"] == ""


def test_a_machine_keeps_its_name(ada: Node, bob: Node, folder: Path, tmp_path: Path) -> None:
    """Without KB_MACHINE a name is made once and kept, and a wrong KB_MACHINE is refused."""
    fill(folder, plan="# Plan\n\nWe plant oaks.\n")
    assert ada.run("add", folder).code == 0
    node = Node(tmp_path / "cara", ada.home)
    assert node.run("add", folder).code == 0
    (kept,) = (node.folder / "data" / "kb" / "machines").iterdir()
    assert f"{kept.read_text()}:{folder}/plan.md" in rows_of(ada)
    kept.write_text("other")
    assert node.run("add", folder, "--json").json["added"] == 1
    wrong = Node(tmp_path / "wrong", ada.home, KB_MACHINE="a/b")
    ran = wrong.run("ls")
    assert (ran.code, "KB_MACHINE" in ran.err) == (2, True)


def test_compaction_waits_for_the_caches_of_others(ada: Node, bob: Node, folder: Path) -> None:
    """The log is cut behind the slowest machine, whose caches then follow on."""
    fill(folder, plan="# Plan\n\nWe plant oaks.\n")
    assert ada.run("add", folder).code == 0
    assert len(bob.hits("oaks")) == 1
    for number in range(3):
        fill(folder, plan=f"# Plan\n\nWe plant {number} elms.\n")
        assert ada.run("add", folder).code == 0
    compacted = ada.run("compact", "--json")
    assert compacted.code == 0, compacted.err
    address = database_address(ada.home)
    with Store.open_database(address, create=False) as store, store.read() as txn:
        rows = [row for _, row in FOLLOWERS.scan(txn)]
        first, last = log.first_seq(txn), log.last_seq(txn)
    read = min(row.log_seq for row in rows if row.node == "bob")
    assert first <= read + 1 <= last
    assert len(bob.hits("elms")) == 1
    checked = bob.run("check", "--json")
    assert (checked.code, checked.json["sound"]) == (0, True), checked.out


def test_a_machine_that_fell_off_the_log_rebuilds(ada: Node, bob: Node, folder: Path) -> None:
    """Once it has not been seen for too long the log is cut beyond it; its answers are right."""
    fill(folder, plan="# Plan\n\nWe plant oaks.\n", gone="# Gone\n\nBirches.\n")
    assert ada.run("add", folder).code == 0
    assert len(bob.hits("oaks")) == 2
    fill(folder, plan="# Plan\n\nWe plant elms.\n", more="# More\n\nAlders.\n")
    assert ada.run("sync-all", "--interval-min", 0).code == 0
    address = database_address(ada.home)
    with Store.open_database(address, create=False) as store:
        with store.write() as txn:
            for key, row in list(FOLLOWERS.scan(txn)):
                if row.node == "bob":
                    seen_ms = row.seen_ms - FOLLOWER_TTL_MS
                    FOLLOWERS.put(txn, key, msgspec.structs.replace(row, seen_ms=seen_ms))
        # A cache that nobody used for so long was registered as long ago.
        for stamp in bob.local.rglob("registered"):
            os.utime(stamp, (0, 0))
        read = min(row.log_seq for row in followers(store) if row.node == "bob")
        assert ada.run("compact").code == 0
        with store.read() as txn:
            assert log.first_seq(txn) > read + 1
    for query in ("oaks", "birches", "elms", "alders"):
        hits = bob.hits(query)
        assert [hit["chunk_id"] for hit in hits] == [hit["chunk_id"] for hit in ada.hits(query)]
        lexical = bob.run("search", query, "--mode", "lexical", "--json").json["hits"]
        assert len(lexical) == (query in ("elms", "alders"))
    checked = bob.run("check", "--json")
    assert (checked.code, checked.json["sound"]) == (0, True), checked.out
    # Registered anew, so that the log is kept for it from where it is now.
    with Store.open_database(address, create=False) as store, store.read() as txn:
        last = log.last_seq(txn)
        rows = [row for _, row in FOLLOWERS.scan(txn) if row.node == "bob"]
    assert {row.log_seq for row in rows} == {last}


def test_compaction_frees_bytes_in_the_database(ada: Node, bob: Node, folder: Path) -> None:
    """Bytes of removed docs go in the second run, on whatever machine; what is named stays."""
    text = "# Plan\n\nWe plant oaks.\n"
    fill(folder, plan=text, kept="# Kept\n\nBirches.\n")
    assert ada.run("add", folder).code == 0
    rows = rows_of(ada)
    assert bob.run("rm", rows[f"{folder}/plan.md"], "--yes").code == 0
    setting = ("--cfg", "compact.tombstone_days=0")
    reports = [
        node.run(*setting, "compact", "--grace-min", 0, "--json").json
        for node in (ada, bob, ada, bob, ada)
    ]
    assert sum(report["files_removed"] for report in reports) == 2
    assert sum(report["bytes_freed"] for report in reports) >= 2 * len(text)
    assert "Birches" in bob.run("show", f"{folder}/kept.md").out
    assert ada.run("check").code == 0


def test_stats_say_who_works(ada: Node, bob: Node, folder: Path) -> None:
    """Workers by machine, with what they embedded, whichever machine asks."""
    fill(folder, **{f"plan{number}": f"# Plan {number}\n\nWe plant oaks.\n" for number in range(5)})
    assert ada.run("add", folder, "--no-wait").code == 0
    assert bob.run("worker", "--drain").code == 0
    stats = ada.run("stats", "--json").json
    (node,) = stats["nodes"]
    assert (node["node"], node["workers"]) == ("bob", 1)
    assert node["texts"] > 0
    assert stats["seconds_left"] in (0, None)
    assert "bob: 1 worker" in ada.run("stats").out
