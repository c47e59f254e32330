"""What the surroundings look like when something is amiss with them."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from homes import SmallHome

from kb.model.config.sections import IndexSettings
from kb.model.doc import Coverage
from kb.model.origin import Origin
from kb.store import docs
from kb.store.jobs import queue
from kb.store.records import SOURCES
from kb.upkeep.check.doctor import (
    HostEnvironment,
    file_system_kind,
    graph_advice,
    home_advice,
    inspect_host,
    store_advice,
)

MOUNTS = """\
/dev/root / ext4 rw 0 0
server:/share /net/files nfs4 rw 0 0
/dev/sdb /net/files/local ext4 rw 0 0
//box/x /net/my\\040share cifs rw 0 0
broken
"""
WELL = HostEnvironment(
    root="/kb",
    mode=0o700,
    is_writable=True,
    free_bytes=1 << 40,
    mounts=MOUNTS,
    open_files_max=1024,
    address_bytes_max=-1,
)
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/kb", "ext4"),
        ("/net/files/kb", "nfs4"),
        ("/net/files2/kb", "ext4"),
        ("/net/files/local/kb", "ext4"),
        ("/net/my share/kb", "cifs"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    """The innermost mount counts, with blanks in its name."""
    assert file_system_kind(MOUNTS, path) == kind
    assert file_system_kind("", path) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, []),
        ({"mode": 0o750}, ["mode 0750"]),
        ({"is_writable": False}, ["cannot be written"]),
        ({"root": "/net/files/kb"}, ["nfs4"]),
        ({"free_bytes": 1 << 20}, ["1 MiB are free"]),
        ({"open_files_max": 64}, ["64 files"]),
        ({"address_bytes_max": 1 << 30}, ["1,024 MiB"]),
    ],
)
def test_what_is_amiss_with_a_place(change: dict[str, object], said: list[str]) -> None:
    """Each on its own, with something to do about it."""
    found = list(home_advice(msgspec.structs.replace(WELL, **change)))
    assert len(found) == len(said)
    assert all(word in one.problem for word, one in zip(said, found, strict=True))
    assert all(one.mend for one in found)


def test_a_home_is_looked_at(tmp_path: Path) -> None:
    """The machine's answers come in the shape that is judged."""
    around = inspect_host(tmp_path)
    assert around.free_bytes > 0
    assert around.is_writable


def said(home: SmallHome) -> dict[str, str]:
    return {one.place: one.problem for one in store_advice(home.store)}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def test_jobs_that_wait_failed_or_are_stuck(home: SmallHome) -> None:
    """Waiting, held by somebody who is late, and dead: each is told from the others."""
    assert said(home) == {}
    home.put("a.md", "A note.")
    assert "1 wait" in said(home)["jobs"]
    with home.store.write() as txn:
        (claim,) = queue.claim(txn, home.clock, ("chunk",), limit=1, lease_ms=1_000)
    assert said(home) == {}
    home.clock.advance(1_000)
    assert "1 are held" in said(home)["jobs"]
    with home.store.write() as txn:
        queue.fail(txn, home.clock, claim, "the disk spoke", permanent=True)
    assert said(home)["jobs"] == "1 failed for good: the disk spoke"


def test_sources_that_failed_are_gone_or_were_forgotten(home: SmallHome) -> None:
    """Each source has one finding at most."""
    now_ms = home.clock.now_ms()
    fields: dict[str, dict[str, object]] = {
        "/well": {"synced_ms": now_ms - 6 * DAY_MS},
        "/old": {"synced_ms": now_ms - 8 * DAY_MS},
        "/new": {},
        "/failed": {"synced_ms": now_ms, "last_error": "no route"},
        "http://gone": {"synced_ms": 0, "last_error": "404", "gone_since_ms": now_ms},
    }
    with home.store.write() as txn:
        for n, (place, known) in enumerate(fields.items()):
            one = Origin(origin_id=f"s{n}", kind="url", location=place, added_ms=now_ms, **known)  # type: ignore[arg-type]
            SOURCES.put(txn, one.origin_id.encode(), one)
    assert said(home) == {
        "/old": "not synced for 8 days",
        "/failed": "no route",
        "http://gone": "the page is gone",
    }


def test_pages_without_text_and_a_clock_behind(home: SmallHome) -> None:
    """What was scanned is named; docs from the future tell of a clock that is wrong."""
    doc = home.add("scan.pdf", "A text.")
    lacking = msgspec.structs.replace(doc, coverage=Coverage(pages=5, pages_with_text=2))
    with home.store.write() as txn:
        docs.replace(txn, lacking)
    assert said(home) == {"pages": "3 without text, in /notes/scan.pdf"}
    home.clock.jump(-DAY_MS)
    problems = [one.problem for one in store_advice(home.store) if one.place == "clock"]
    assert problems == ["it was never set", "it is behind 1 of the docs"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (IndexSettings(), None),
        (IndexSettings(dense_mode="exact", crossover_rows=2), None),
        (IndexSettings(crossover_rows=2), "every vector is compared; from 2 on a server is faster"),
        (IndexSettings(dense_mode="hnsw"), "index.dense_mode is hnsw, but its library is not"),
    ],
)
def test_the_extra_of_large_homes_is_named_where_it_pays(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch, settings: IndexSettings, problem: str | None
) -> None:
    """From the crossover on, or where a setting asks for it; and not where it is installed."""
    home.add("a.md", "One.")
    home.add("b.md", "Two.")
    monkeypatch.setattr("kb.search.index.hnsw.is_available", lambda: False)
    advice = list(graph_advice(home.store, settings))
    assert [one.problem[: len(problem or "")] for one in advice] == [problem] * bool(problem)
    assert all("pip install 'kb-search[hnsw]'" in one.mend for one in advice)
    monkeypatch.setattr("kb.search.index.hnsw.is_available", lambda: True)
    assert list(graph_advice(home.store, settings)) == []
