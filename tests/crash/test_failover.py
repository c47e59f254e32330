"""The primary of a home's database is lost, and its standby takes its place."""

import contextlib
import subprocess
import threading
import time
from pathlib import Path

import pytest
from nodes import Node
from postgres_server import PostgresServer, running_server

DOCS_AFTER = 5
WAIT_S = 120.0
pytestmark = pytest.mark.slow


def until_follows(primary: PostgresServer, state: str) -> None:
    """Wait until the standby is connected, and as synchronous as it is to be."""
    deadline = time.monotonic() + WAIT_S
    while primary.run_sql("SELECT sync_state FROM pg_stat_replication") != [(state,)]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Adder:
    """Adds one doc after the other from a machine, and keeps what was acknowledged."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.acknowledged: list[str] = []
        self.failed: list[str] = []
        self._node = node
        self._folder = folder
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            name = f"note{number}.md"
            (self._folder / name).write_text(f"# Note {number}\n\nOf alder{number} and oak.\n")
            added = self._node.run("add", "--no-wait", self._folder / name)
            if added.code == 0:
                self.acknowledged.append(name)
            else:
                self.failed.append(added.err)
            number += 1

    def until(self, count: int) -> None:
        """Wait until so many docs are acknowledged."""
        deadline = time.monotonic() + WAIT_S
        while len(self.acknowledged) < count:
            assert time.monotonic() < deadline, self.failed
            time.sleep(0.05)

    def end(self) -> None:
        self._stop.set()
        self.thread.join(WAIT_S)


def test_the_standby_takes_over(tmp_path: Path) -> None:
    """With a synchronous standby nothing acknowledged is lost, nor doubled, and work goes on.

    The clients name both servers, and one of them has been searching all the time.
    """
    folder = tmp_path / "notes"
    folder.mkdir()
    with running_server() as primary, contextlib.ExitStack() as stack:
        name = "team"
        # The replica's files are copied from what is there now.
        Node(tmp_path / "first", primary.home(name)).run("add", __file__)
        standby = stack.enter_context(primary.replica(0))
        primary.run_sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.run_sql("SELECT pg_reload_conf()")
        until_follows(primary, "sync")
        hosts = f"{primary.folder},{standby.folder}&port={primary.port},{standby.port}"
        home = f"postgresql://kb@/postgres/{name}?host={hosts}&target_session_attrs=read-write"
        one = Node(tmp_path / "one", home, KB_MACHINE="one")
        worker = subprocess.Popen(
            Node(tmp_path / "two", home, KB_MACHINE="two").argv("worker"),
            env=dict(one.env) | {"XDG_CACHE_HOME": str(tmp_path / "two"), "KB_MACHINE": "two"},
            stdout=subprocess.DEVNULL,
            stderr=stack.enter_context((tmp_path / "worker.log").open("w")),
        )
        stack.callback(worker.wait, 60)
        stack.callback(worker.terminate)
        adder = Adder(one, folder)
        try:
            adder.until(3)
            # One that never reached the database does not wait for it.
            deadline = time.monotonic() + WAIT_S
            while "at work" not in (tmp_path / "worker.log").read_text():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            primary.stop()
            time.sleep(1)
            standby.promote()
            # A primary without a standby would wait for one with each commit.
            standby.run_sql("ALTER SYSTEM RESET synchronous_standby_names")
            standby.run_sql("SELECT pg_reload_conf()")
            adder.until(len(adder.acknowledged) + DOCS_AFTER)
        finally:
            adder.end()
        assert worker.poll() is None, (tmp_path / "worker.log").read_text()
        assert one.run("worker", "--drain").code == 0
        rows = one.run("ls", "--json", "--limit", "0").json["docs"]
        names = [Path(row["source"]).name for row in rows]
        assert len(names) == len(set(names))
        assert set(adder.acknowledged) <= set(names)
        for added in adder.acknowledged:
            number = added.removeprefix("note").removesuffix(".md")
            assert any(hit["source"].endswith(added) for hit in one.hits(f"alder{number}"))
        checked = one.run("check", "--json")
        assert (checked.code, checked.json["findings"]) == (0, []), checked.out
        for line in adder.failed:
            assert line.count("\n") == 1, line


def test_a_standby_that_lacks_the_last_commits(tmp_path: Path) -> None:
    """They are lost, and new ones take their numbers: no machine's caches keep what was in them.

    The lost doc and the new one have the same number of passages, so the log looks alike.
    """
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in (("oak", "Of oaks."), ("lost", "Of willows."), ("new", "Of granite.")):
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    with running_server() as primary:
        Node(tmp_path / "one", primary.home("team"), KB_MACHINE="one").run("add", folder / "oak.md")
        with primary.replica(0) as standby:
            standby.stop()
            hosts = f"{primary.folder},{standby.folder}&port={primary.port},{standby.port}"
            home = f"postgresql://kb@/postgres/team?host={hosts}&target_session_attrs=read-write"
            one = Node(tmp_path / "one", home, KB_MACHINE="one")
            two = Node(tmp_path / "two", home, KB_MACHINE="two")
            assert one.run("add", folder / "lost.md").code == 0
            assert two.hits("willows")[0]["title"] == "lost"
            primary.stop()
            standby.start()
            standby.promote()
            assert one.run("add", folder / "new.md").code == 0
            for node in (one, two):
                assert (node.hits("granite")[0]["title"], node.hits("granite")[0]["weak"]) == (
                    "new",
                    False,
                )
                assert all(hit["weak"] for hit in node.hits("willows"))
                assert node.run("check").code == 0
