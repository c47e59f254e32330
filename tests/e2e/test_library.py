"""Programs that open homes by `kb.open`, fill and ask them."""

import datetime as dt
import math
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import kb
from kb.errors import (
    AmbiguousId,
    ConfigError,
    HeldBack,
    KbError,
    NotFound,
    UsageError,
)

HASHING: Final = {"embed.kind": "hashing"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two papers."""
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "fox.md").write_text("# Fox\n\nThe quick brown fox jumps over the lazy dog.\n")
    (papers / "house.md").write_text("# House rules\n\nYou may keep a dog if it is quiet.\n")
    return papers


@pytest.fixture
def home(tmp_path: Path) -> Iterator[kb.Home]:
    with kb.open(tmp_path / "home", settings=HASHING) as opened:
        yield opened


def test_what_is_added_is_found_read_and_removed(home: kb.Home, folder: Path) -> None:
    """From a folder to hits, answers, texts and counts, as the records that commands print."""
    result = home.add(folder, recursive=True, tags=["house"])
    assert (result.scanned, result.added, result.failed) == (2, 2, 0)
    hits = list(home.search("brown fox", k=5, tags=["house"]))
    assert hits == list(home.search("brown fox", k=5, tags=["house"]).hits)
    assert (hits[0].title, hits[0].location) == ("Fox", f"{folder / 'fox.md'}:1")
    assert "brown fox" in hits[0].text
    answer = home.ask("may I keep a dog?", with_text=True)
    assert answer.kind == "extracts"
    assert f"{folder / 'house.md'}:1" in [source.location for source in answer.sources]
    assert [row.title for row in home.docs()] == ["Fox", "House rules"]
    assert {row.title for row in home.list()} == {"Fox", "House rules"}
    near = home.similar(hits[0].doc_id)
    assert [hit.title for hit in near] == ["House rules"]
    stats = home.stats()
    assert (stats.docs, stats.passages, stats.vectors) == ({"active": 2}, 2, 2)
    (folder / "house.md").write_text("# House rules\n\nNo dogs.\n")
    synced = home.sync(interval_min=0)
    assert (synced.updated, synced.unchanged) == (1, 1)
    assert home.search("dogs").hits[0].text.endswith("No dogs.")
    assert home.remove(folder / "fox.md").removed == [hits[0].doc_id]
    assert home.list().total == 1
    assert home.remove(tag="house").removed
    assert home.list().total == 0


def test_a_text_is_got_by_every_name_that_it_has(
    home: kb.Home, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole or short id, a path from here, the place that a hit names, a passage's id."""
    home.add(folder)
    (hit, *_) = home.search("brown fox")
    monkeypatch.chdir(folder.parent)
    names = (hit.doc_id, hit.doc_id[:9], hit.source, "papers/fox.md", Path("papers/fox.md"))
    texts = {home.get(name).text for name in names}
    assert texts == {"# Fox\n\nThe quick brown fox jumps over the lazy dog.\n"}
    assert home.get(hit.chunk_id).text == hit.text
    assert home.get(hit.doc_id, start=2, end=5).text == "Fox"
    assert [row.title for row in home.list(sources=["papers/fox.md"])] == ["Fox"]
    assert home.search("brown fox", k=1)[0] == hit
    assert (len(home.search("brown fox", k=1)), len(home.list())) == (1, 2)
    for name in ("papers/none.md", "dffffffff", "no such thing"):
        with pytest.raises(NotFound, match=Path(name).name):
            home.get(name)
    with pytest.raises(AmbiguousId):
        home.get(hit.doc_id[:1])


def test_a_passage_comes_alone_unless_its_neighbours_are_wanted(home: kb.Home) -> None:
    """`get` gives what an id names; `neighbours` brings more."""
    sections = (f"## Part {n}\n\n" + f"word{n} " * 150 for n in range(3))
    (line,) = home.add(text="\n\n".join(sections), title="Parts").docs
    rows = [row for row in home.passages() if row.doc_id == line.doc_id]
    assert len(rows) >= 3
    assert home.get(rows[1].chunk_id).text == rows[1].text
    assert len(home.get(rows[1].chunk_id, neighbours=1).text) > len(rows[1].text)
    with pytest.raises(UsageError, match="neighbours"):
        home.get(line.doc_id, neighbours=1)


def test_reading_makes_nothing(tmp_path: Path) -> None:
    """A home that is not there is empty, and is not there afterwards."""
    with kb.open(tmp_path / "none", settings=HASHING) as home:
        result = home.search("fox")
        assert (list(result), result.warnings) == ([], ("there are no docs to search",))
        assert (list(home.docs()), list(home.passages()), home.list().total) == ([], [], 0)
        assert home.stats().docs == {}
        assert home.add(text="a fox", dry_run=True).added == 1
        assert next(home.events(timeout_s=0)).docs == 0
        with pytest.raises(NotFound):
            home.remove("d1234")
    assert list(tmp_path.iterdir()) == []


def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    """Its folders are private whatever the umask says, which stays what it was."""
    before = os.umask(0o002)
    try:
        with kb.open(tmp_path / "home", settings=HASHING) as home:
            home.add(text="a fox")
        assert os.umask(0o002) == 0o002
    finally:
        os.umask(before)
    places = [tmp_path / "home", *(tmp_path / "home").iterdir()]
    modes = {place.name: stat.S_IMODE(place.stat().st_mode) for place in places if place.is_dir()}
    assert set(modes.values()) == {0o700}, modes
    with kb.open(tmp_path / "home", settings=HASHING) as home:
        assert home.list().total == 1


def test_sources_that_fail_are_counted(home: kb.Home, tmp_path: Path) -> None:
    """The result says which and why; nothing is raised, and the others are taken in."""
    (tmp_path / "a.md").write_text("a fox")
    result = home.add(tmp_path / "a.md", tmp_path / "none.md")
    assert (result.added, result.failed) == (1, 1)
    assert [(line.outcome, line.reason) for line in result.problems] == [("failed", "no such file")]


WRONG: Final[dict[str, tuple[Callable[[kb.Home], Any], str]]] = {
    "a number": (lambda home: home.search("fox", k=0), "k: Expected `int` >= 1"),
    "a word": (lambda home: home.search("fox", mode="fast"), "mode: Invalid enum value 'fast'"),  # type: ignore[arg-type]
    "a list": (lambda home: home.list(tags="house"), "tags: Expected `array`, got `str`"),
    "a date": (
        lambda home: home.list(since="May"),
        "field `since`: a date is written as 2026-11-22",
    ),
    "a text": (lambda home: home.add(text=3), "text: Expected `str`, got `int`"),  # type: ignore[arg-type]
    "a query": (lambda home: home.search(3), "query: Expected `str`, got `int`"),  # type: ignore[arg-type]
    "nothing": (lambda home: home.add(), "give either sources or a text"),
    "both": (lambda home: home.add("a.md", text="a"), "give either sources or a text"),
    "standard input": (lambda home: home.add("-"), "there is no standard input here"),
    "one title": (
        lambda home: home.add("a", "b", title="x"),
        "title is for a single source, and no folder",
    ),
    "a folder": (lambda home: home.add(".", recursive=False), ". is a folder, and recursive=False"),
    "half a character": (lambda home: home.add(text="a\ud800"), "character 1 of the text"),
    "no doc": (lambda home: home.remove(), "name either docs or a tag"),
    "doc and tag": (lambda home: home.remove("d1", tag="x"), "name either docs or a tag"),
    "an interval": (lambda home: home.sync(interval_min=-1), "interval_min: Expected `int` >= 0"),
}


def test_a_day_is_a_date_or_words(home: kb.Home, tmp_path: Path) -> None:
    """Python's own dates and times are taken as their day."""
    (tmp_path / "2026-03-02 fox.md").write_text("a fox")
    home.add(tmp_path / "2026-03-02 fox.md")
    noon = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
    for since, count in ((noon, 1), (noon.date(), 1), (dt.date(2026, 3, 3), 0), ("a day ago", 0)):
        assert home.list(since=since).total == len(home.search("fox", since=since)) == count


def test_a_text_is_of_the_day_it_came(home: kb.Home) -> None:
    """It has no file that would say more; the same text again changes nothing."""
    before = dt.datetime.now().astimezone().date()
    home.add(text="a fox in the garden", title="Fox")
    (hit,) = home.search("fox", since=before)
    assert home.list(until=before - dt.timedelta(days=1)).total == 0
    assert home.add(text="a fox in the garden", title="Fox").unchanged == 1
    assert home.search("fox").hits[0].date == hit.date


def test_what_is_no_home_or_no_settings(tmp_path: Path) -> None:
    """A file is no home, and a text no settings."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file; a home is a folder"):
        kb.open(tmp_path / "file")
    with pytest.raises(UsageError, match="settings: a mapping"):
        kb.open(tmp_path / "home", settings="search.k")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_the_public_error(home: kb.Home, name: str) -> None:
    """It names the keyword and what was expected; nothing is made."""
    call, message = WRONG[name]
    with pytest.raises(UsageError) as raised:
        call(home)
    assert message in str(raised.value)
    assert not home.path.exists()


def test_settings_win_over_files(tmp_path: Path) -> None:
    """By whole names; what is wrong of them is named, with the nearest that there is."""
    root = tmp_path / "home"
    root.mkdir()
    (root / "kb.toml").write_text("[ingest]\nfile_bytes_max = 5\n[embed]\nkind = 'hashing'\n")
    (tmp_path / "a.md").write_text("a brown fox")
    with kb.open(root) as home:
        assert home.add(tmp_path / "a.md").failed == 1
    with kb.open(root, settings={"ingest.file_bytes_max": 100}) as home:
        assert home.add(tmp_path / "a.md").added == 1
    for settings, message in (
        ({"embed.kid": "x"}, "kb.open: unknown setting embed.kid; did you mean embed.kind?"),
        (
            {"work.threads": "x"},
            "kb.open: work.threads must be a whole number from 1 to 64, not 'x'",
        ),
    ):
        with pytest.raises(ConfigError) as raised:
            kb.open(root, settings=settings)
        assert str(raised.value) == message


def test_without_a_path_the_homes_of_the_command_line_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """KB_HOME, else the project's with the user's; they are chosen once, when it is opened."""
    project = tmp_path / "project"
    (project / ".kb").mkdir(parents=True)
    monkeypatch.delenv("KB_HOME", raising=False)
    monkeypatch.setenv("KB_CFG", "embed.kind=hashing")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with kb.open() as mine:
        mine.add(text="my own fox", title="Mine")
        assert mine.path == tmp_path / "data" / "kb"
    monkeypatch.chdir(project)
    with kb.open() as home:
        monkeypatch.chdir(tmp_path)
        home.add(folder / "fox.md")
        assert home.path == project / ".kb"
        spaces = {hit.title: hit.source_space for hit in home.search("fox")}
        assert spaces == {"Fox": "project", "Mine": "user"}
        assert {row.title: row.space for row in home.docs()} == {"Fox": "project", "Mine": "user"}
        assert [(row.text, row.space) for row in home.passages()][1] == ("my own fox", "user")
        assert "my own fox" in home.get(home.search("own").hits[0].doc_id).text
    monkeypatch.setenv("KB_HOME", str(tmp_path / "third"))
    with kb.open() as home:
        assert (home.path, home.list().total) == (tmp_path / "third", 0)


def test_a_home_that_does_not_count_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named it is held back; found from the folder it is left out, and a warning says so."""
    project = tmp_path / "project"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "other"))
    with kb.open(project / ".kb", settings=HASHING) as home:
        home.add(text="a fox")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("KB_HOME", raising=False)
    with pytest.raises(HeldBack, match="kb trust"):
        kb.open(project / ".kb")
    monkeypatch.chdir(project)
    with kb.open(settings=HASHING) as home:
        assert list(home.docs()) == []
        (warning,) = home.warnings
        assert "kb trust" in warning
        with pytest.raises(HeldBack, match="kb trust"):
            home.add(text="another fox")


def test_a_server_that_is_named_is_not_mistaken_for_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a path it is an error; with one, or with an empty setting, homes here are meant."""
    monkeypatch.setenv("KB_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("KB_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="a server is named"):
        kb.open()
    kb.open(tmp_path / "home").close()
    kb.open(settings={"client.server": ""}).close()
    with pytest.raises(UsageError, match="the path of the home is empty"):
        kb.open("")


def test_passages_come_in_order_with_their_vectors(home: kb.Home, tmp_path: Path) -> None:
    """All of them, once, doc by doc, over several batches, float32 of length 1; filters narrow."""
    import numpy as np

    text = "\n\n".join(f"## Part {n}\n\n" + f"word{n} " * 120 for n in range(200))
    for number in range(3):
        tags = ["even"] if number % 2 == 0 else []
        home.add(text=f"# Doc {number}\n\n{text}", title=f"Doc {number}", tags=tags, wait=False)
    assert all(row.vector is None for row in home.passages())
    home.work()
    rows = list(home.passages())
    assert len(rows) == home.stats().passages > 512
    assert len({row.chunk_id for row in rows}) == len(rows)
    order = [row.doc_id for row in home.docs()]
    assert [(order.index(row.doc_id), row.ordinal) for row in rows] == [
        (place, ordinal)
        for place in range(3)
        for ordinal in range(sum(row.doc_id == order[place] for row in rows))
    ]
    for row in rows:
        assert row.vector is not None
        assert (row.vector.dtype, row.vector.ndim) == (np.float32, 1)
        assert math.isclose(float(np.linalg.norm(row.vector)), 1.0, rel_tol=1e-4)
        assert not row.vector.flags.writeable
    even = {row.doc_id for row in home.passages(tags=["even"])}
    assert even == {order[0], order[2]}
    only = [row.chunk_id for row in home.passages(doc_ids=[order[1][:9]])]
    assert only == [row.chunk_id for row in rows if row.doc_id == order[1]]


def test_errors_are_those_of_kb_errors(tmp_path: Path) -> None:
    """A damaged store says so by its class, as a command does by its exit code."""
    store = tmp_path / "home" / "store"
    with kb.open(tmp_path / "home", settings=HASHING) as home:
        home.add(text="a fox")
    (store / "data.mdb").write_bytes(b"no store" * 1024)
    with pytest.raises(kb.errors.StoreDamaged) as raised:
        kb.open(tmp_path / "home")
    assert isinstance(raised.value, KbError)
    assert raised.value.exit_code == 5


_SNIPPET: Final = """
import kb

with kb.open("~/notes", settings={"search.k": 5}) as home:
    for hit in home.search("brown fox", k=5, tags=["house"]):
        reveal_type(hit)
    reveal_type(home.add("papers/", recursive=True).failed)
    reveal_type(next(home.passages()).vector)
    home.search("fox", tagz=["house"])
    home.search("fox", k="many")
try:
    home.ask("why?")
except kb.errors.KbError as error:
    reveal_type(error.exit_code)
"""


@pytest.mark.slow
def test_type_checkers_see_the_types(tmp_path: Path) -> None:
    """Mypy reads results and keywords from what is installed, and finds two wrong calls."""
    snippet = tmp_path / "snippet.py"
    snippet.write_text(_SNIPPET)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "c"), snippet],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    lines = [line.partition("snippet.py:")[2] for line in done.stdout.splitlines()]
    expected = (
        ("6: note: ", '"kb.model.search.Hit"'),
        ("7: note: ", 'int"'),
        ("8: note: ", "numpy.dtype[numpy.floating["),
        ("9: error: ", 'Unexpected keyword argument "tagz" for "search" of "Home"'),
        ("10: error: ", 'Argument "k" to "search" of "Home" has incompatible type "str"'),
        ("14: note: ", 'int"'),
    )
    shown = [line for line in lines if line and "defined in" not in line]
    assert len(shown) == len(expected), done.stdout + done.stderr
    for line, (start, part) in zip(shown, expected, strict=True):
        assert line.startswith(start)
        assert part in line
