"""Kills of those who use a home in a database, and of the server itself."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import test_random_kills
from crash_rig import Rig
from nodes import Node
from postgres_server import PostgresServer, running_server
from test_random_kills import campaign

KILLS = 6
KILLS_LONG = int(os.environ.get("KB_KILLS", "300"))
RESTARTS = 2
RESTARTS_LONG = 20


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of its own, whose end nobody else notices."""
    with running_server() as made:
        yield made


@pytest.fixture
def rig(server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    # Where the processes of the rig have their caches, as their HOME is this folder.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    (tmp_path / "address").write_text(server.home())
    # A write takes longer than in a folder, and more of them are to be acknowledged.
    monkeypatch.setattr(test_random_kills, "ACTIVE_S", (0.02, 0.4))
    monkeypatch.setattr(test_random_kills, "KILLS_PER_LOOK", KILLS)
    return Rig(tmp_path)


@pytest.mark.timeout(900)
def test_kills_lose_double_and_halve_nothing(rig: Rig) -> None:
    """Adders, workers, readers, compactors and syncs are killed at random moments."""
    campaign(rig, KILLS)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_kills_on_a_database(rig: Rig) -> None:
    """The same, KB_KILLS times."""
    campaign(rig, KILLS_LONG)


def settle(nodes: list[Node], acknowledged: set[str]) -> None:
    """Have all work done: each file that was acknowledged is there, once, and all is whole."""
    assert nodes[0].run("worker", "--drain").code == 0
    rows = nodes[1].run("ls", "--json", "--limit", 0).json["docs"]
    places = [row["source"] for row in rows]
    assert acknowledged - set(places) == set()
    assert len(places) == len(set(places))
    for node in nodes:
        checked = node.run("check", "--json")
        assert (checked.code, checked.json["sound"]) == (0, True), checked.out
    stats = nodes[0].run("stats", "--json").json
    assert stats["jobs"] == {"ready": 0, "running": 0, "failed": 0}
    assert stats["ledger"] == {"indexing_complete": len(places)}


def restarts(server: PostgresServer, folder: Path, times: int) -> None:
    """Two machines add files one by one and work, while the server is ended again and again."""
    home = server.home()
    nodes = [Node(folder / name, home) for name in ("one", "two")]
    assert nodes[0].run("add", "-", stdin="the first").code == 0
    stop, acknowledged, surprises = threading.Event(), set[str](), list[str]()

    def keep_adding(node: Node) -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            path = folder / f"{node.folder.name}-{number}.md"
            path.write_text(f"# Note {number} of {node.folder.name}\n\nIts text is {number}.\n")
            done = subprocess.run(
                [sys.executable, "-m", "kb_cli.main", *node.argv("add", path)[1:]],
                env=dict(node.env),
                capture_output=True,
                text=True,
            )
            if done.returncode == 0:
                acknowledged.add(str(path))
            elif done.returncode != 1 or len(done.stderr.strip().splitlines()) != 1:
                # Begun while the server was down, it says one line, and is not acknowledged.
                surprises.append(done.stderr)

    threads = [threading.Thread(target=keep_adding, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    rng = random.Random(7)
    for restart in range(times):
        before = len(acknowledged)
        deadline = time.monotonic() + 60
        while len(acknowledged) < before + 2 and time.monotonic() < deadline:
            time.sleep(rng.uniform(0.01, 0.2))
        server.stop()
        time.sleep(0.2 * (restart % 3))
        server.start()
    stop.set()
    for thread in threads:
        thread.join(120)
    assert surprises == []
    settle(nodes, acknowledged)
    assert len(acknowledged) >= 2 * times


@pytest.mark.timeout(600)
def test_a_server_that_ends_again_and_again(server: PostgresServer, tmp_path: Path) -> None:
    """What was acknowledged is there, once and whole, and no work is left."""
    restarts(server, tmp_path, RESTARTS)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_server_that_ends_often(server: PostgresServer, tmp_path: Path) -> None:
    """The same, more often."""
    restarts(server, tmp_path, RESTARTS_LONG)


@pytest.mark.timeout(300)
def test_a_killed_workers_jobs_are_done_by_others(server: PostgresServer, tmp_path: Path) -> None:
    """A worker dies with jobs in hand; they are given out again, and each is done."""
    home = server.home()
    one, two = (Node(tmp_path / name, home) for name in ("one", "two"))
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(20):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nText {number}.\n")
    assert one.run("add", notes, "--no-wait").code == 0
    env = dict(one.env, KB_FAILPOINTS="jobs.after_claim=kill")
    worker = subprocess.Popen(
        [sys.executable, "-m", "kb_cli.main", *one.argv("worker")[1:]], env=env
    )
    assert worker.wait(60) == -signal.SIGKILL
    done = two.run("worker", "--drain")
    assert done.code == 0, done.err
    stats = two.run("stats", "--json").json
    assert stats["ledger"] == {"indexing_complete": 20}
