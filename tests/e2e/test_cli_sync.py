"""`kb sync-all`, `kb sources` and `kb entities` as a person and cron run them."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import KB, Home, Ran, accounted, run, surroundings
from loopback import Answer, LoopbackServer, conditional, reply, serving

PAGE = b"<!doctype html><title>Boats</title><h1>Boats</h1><p>How a wooden boat is caulked."
ALLOW = ("--cfg", 'fetch.allow=["127.0.0.1"]')


class SyncedHome(Home):
    """A home that may fetch from loopback."""

    def argv(self, *args: object) -> list[str]:
        whole = super().argv(*args)
        return [*whole[:3], *ALLOW, *whole[3:]]

    def sync(self, *args: object) -> Ran:
        return self.run("sync-all", "--interval-min", "0", *args)

    def start(self, *args: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.argv(*args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=surroundings(),
        )


@pytest.fixture
def home(tmp_path: Path) -> SyncedHome:
    return SyncedHome(tmp_path / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "n"
    folder.mkdir()
    for n in range(12):
        (folder / f"{n:02}.md").write_text(f"# Note {n}\n\nWhat note {n} says.\n")
    return folder


@pytest.fixture
def site() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


def lines(ran: Ran) -> dict[str, Any]:
    for part in (ran.json, *ran.json["sources"]):
        assert accounted(part)
    return {Path(line["location"]).name: line for line in ran.json["sources"]}


def test_a_page_from_add_to_gone(home: SyncedHome, site: LoopbackServer) -> None:
    """Added, unchanged by 304, updated, gone with its doc still found, and fresh again."""
    url = site.url("/page")
    site.routes["/page"] = conditional(PAGE, etag='"1"')
    assert home.run("add", url, "--json").json["added"] == 1
    assert home.run("add", url, "--json").json["unchanged"] == 1
    assert lines(home.sync("--json"))["page"]["unchanged"] == 1
    assert [bool(one.headers.get("If-None-Match")) for one in site.requests] == [False, True, True]
    site.routes["/page"] = conditional(PAGE.replace(b"wooden", b"leaking"), etag='"2"')
    assert lines(home.sync("--json"))["page"]["updated"] == 1
    site.routes["/page"] = Answer(b"", 410)
    ran = home.sync()
    assert ran.code == 0
    assert ran.out.startswith(f"{url}: gone")
    assert "its doc is kept" in ran.err
    (hit,) = home.run("search", "leaking", "--json").json["hits"]
    assert (hit["kind"], hit["title"], hit["freshness"]) == ("url", "Boats", "gone")
    assert "gone since" in home.run("sources").out
    site.routes["/page"] = conditional(PAGE.replace(b"wooden", b"leaking"), etag='"2"')
    assert home.sync("--source", url, "--json").json["unchanged"] == 1
    assert home.run("search", "leaking", "--json").json["hits"][0]["freshness"] == "fresh"
    assert home.run("check").code == 0


def test_a_page_that_is_not_allowed(home: Home, site: LoopbackServer, tmp_path: Path) -> None:
    """Without the setting loopback is refused before any connection: exit 3, one line."""
    plain = Home(tmp_path / "plain")
    ran = plain.run("add", site.url("/page"))
    assert ran.code == 3
    assert len(ran.err.splitlines()) == 2
    assert "fetch.allow" in ran.err
    assert site.connections == 0


def test_one_failing_source_is_3_and_the_rest_go_on(
    home: SyncedHome, site: LoopbackServer, folder: Path
) -> None:
    """The failure is named, with when it is tried again; the folder is synced."""
    site.routes["/page"] = conditional(PAGE, etag='"1"')
    assert home.run("add", "-r", site.url("/page"), folder).code == 0
    site.routes["/page"] = Answer(b"", 429, {"Retry-After": "3600"})
    (folder / "new.md").write_text("A new note.")
    ran = home.sync("--json")
    assert ran.code == 3
    assert (lines(ran)["page"]["outcome"], lines(ran)["n"]["added"]) == ("failed", 1)
    assert "1 source failed" in ran.err
    said = home.run("sources").out
    assert "failed:" in said
    assert "next try" in said
    asked = len(site.requests)
    assert home.sync().code == 0
    assert len(site.requests) == asked


def test_files_that_cannot_be_taken_in_are_counted(home: SyncedHome, folder: Path) -> None:
    """By `kb sources`, as of the last sync, until they are mended; `kb doctor` finds nothing."""
    home.run("add", "-r", folder)
    (folder / "torn.pdf").write_bytes(b"%PDF-1.4 and no more")
    for _ in range(2):
        assert home.sync().code == 3
        assert home.run("sources").out.endswith("; 1 file could not be taken in\n")
        (source,) = home.run("sources", "--json").json["sources"]
        assert (source["files_failed"], source["last_error"]) == (1, None)
        assert "torn" not in home.run("doctor").out
    (folder / "torn.pdf").unlink()
    assert home.sync().code == 0
    assert "taken in" not in home.run("sources").out


def test_held_back_is_6_until_accepted(home: SyncedHome, folder: Path) -> None:
    """A folder that lost its docs says so at each run; --accept-deletions goes on."""
    home.run("add", "-r", folder)
    for n in range(11):
        (folder / f"{n:02}.md").unlink()
    for _ in range(2):
        ran = home.sync()
        assert ran.code == 6
        assert ran.out == f"{folder}: removals held back, 1 unchanged\n"
        assert ran.err.startswith(f"kb: {folder}: 11 of 12 docs have vanished; if its files")
        assert "--accept-deletions" in ran.err
    assert len(home.ids()) == 12
    assert home.sync("--accept-deletions").code == 0
    assert set(home.ids()) == {"11.md"}
    assert home.run("check").code == 0


def test_a_dry_run_makes_nothing(home: SyncedHome, folder: Path) -> None:
    """It says what would be done; a home that is not there stays away."""
    assert home.sync("--dry-run").out == "nothing is due\n"
    assert not home.root.exists()
    home.run("add", "-r", folder)
    (folder / "new.md").write_text("A new note.")
    before = home.run("sources", "--json").out
    assert lines(home.sync("--dry-run", "--json"))["n"]["added"] == 1
    assert home.run("sources", "--json").out == before
    assert "new.md" not in home.ids()


def test_sources_are_listed_and_removed(home: SyncedHome, folder: Path) -> None:
    """By id or place; the docs stay, and an unknown one is exit 4 with a hint."""
    assert "no sources yet" in home.run("sources").err
    home.run("add", "-r", folder)
    (known,) = home.run("sources", "--json").json["sources"]
    assert (known["kind"], known["location"]) == ("folder", str(folder))
    assert known["origin_id"][:9] in home.run("sources").out
    assert home.run("sources", "rm", "nothing").code == 4
    ran = home.run("sync-all", "--source", "nothing")
    assert ran.code == 4
    assert "kb sources" in ran.err
    assert home.run("sources", "rm", folder).code == 0
    assert home.run("sources", "--json").json["sources"] == []
    assert len(home.ids()) == 12
    assert home.sync().out == "nothing is due\n"


def waiting(site: LoopbackServer, path: str) -> tuple[threading.Event, threading.Event]:
    """Let a path wait; the first event tells that it was asked for, the second lets it answer."""
    asked, go = threading.Event(), threading.Event()

    def answer(handler: Any) -> None:
        asked.set()
        go.wait(240)
        reply(handler, Answer(PAGE))

    site.routes[path] = answer
    return asked, go


def test_two_at_once_and_a_killed_one(home: SyncedHome, site: LoopbackServer, folder: Path) -> None:
    """The second leaves what the first has in hand; what a killed one had is free at once."""
    url = site.url("/page")
    site.routes["/page"] = conditional(PAGE, etag='"1"')
    home.run("add", "-r", url, folder)
    asked, go = waiting(site, "/page")
    with home.start("sync-all", "--interval-min", "0", "--source", url) as first:
        assert asked.wait(120)
        (line,) = home.sync("--json", "--source", url).json["sources"]
        assert (line["outcome"], line["scanned"]) == ("busy", 0)
        first.send_signal(signal.SIGKILL)
    go.set()
    site.routes["/page"] = conditional(PAGE, etag='"1"')
    assert lines(home.sync("--json"))["page"]["outcome"] == "synced"


def test_a_renamed_folder_embeds_nothing(home: SyncedHome, folder: Path) -> None:
    """Docs keep their ids and are fresh at their new places; no vector is added."""
    (folder / "old").mkdir()
    for n in range(11):
        (folder / f"{n:02}.md").rename(folder / f"old/{n:02}.md")
    home.run("add", "-r", folder)
    ids, vectors = home.ids(), home.run("stats", "--json").json["vectors"]
    (folder / "old").rename(folder / "new")
    line = lines(home.sync("--json"))["n"]
    assert (line["moved"], line["unchanged"], line["removed"]) == (11, 12, 0)
    assert home.ids() == ids
    assert home.run("stats", "--json").json["vectors"] == vectors
    assert home.run("check").code == 0


def test_entities_by_prefix(home: SyncedHome, tmp_path: Path) -> None:
    """Who and what is mentioned, also in Chinese, with the number of passages."""
    note = tmp_path / "a.md"
    note.write_text("Write to @ada about #boats and #船, see https://example.org/x.")
    home.run("add", note)
    found = home.run("entities", "--json").json["entities"]
    assert {(one["surface"], one["passages"]) for one in found} >= {("#boats", 1), ("#船", 1)}
    assert home.run("entities", "#b").out == "#boats  1 passage\n"
    assert "there are more" in home.run("entities", "--limit", "1").err
    ran = home.run("entities", "nothing-like-it")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing is mentioned" in ran.err


def test_wrong_calls_are_2(tmp_path: Path) -> None:
    """Numbers out of range, and options that are not there."""
    for args in (("--interval-min", "-1"), ("--max", "0"), ("--forget",)):
        assert run([KB, "--home", tmp_path / "h", "sync-all", *args]).code == 2
