"""A home that a program holds open: shared by threads, beside commands and a server, and closed."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import http_server
import pytest
from commands import Home as CommandHome
from commands import surroundings

import kb
from kb.errors import (
    HomeClosed,
    NotFound,
)

HASHING: Final = {"embed.kind": "hashing"}
THREADS: Final = 6
CALLS: Final[dict[str, Callable[[kb.Home], Any]]] = {
    "search": lambda home: home.search("fox"),
    "ask": lambda home: home.ask("fox?"),
    "get": lambda home: home.get("d1234"),
    "list": lambda home: home.list(),
    "similar": lambda home: home.similar("d1234"),
    "add": lambda home: home.add(text="a fox"),
    "sync": lambda home: home.sync(),
    "work": lambda home: home.work(),
    "remove": lambda home: home.remove("d1234"),
    "stats": lambda home: home.stats(),
    "docs": lambda home: home.docs(),
    "passages": lambda home: home.passages(),
    "events": lambda home: home.events(),
}


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


def test_threads_share_a_home(home: kb.Home) -> None:
    """Some add, some search, read and count; nothing fails, and all of it is found at the end."""
    start = threading.Barrier(2 * THREADS)

    def add(who: int) -> None:
        start.wait()
        for number in range(3):
            result = home.add(text=f"fox of {who} in {number}", title=f"Fox {who} {number}")
            assert result.added == 1
            assert home.search(f"fox of {who} in {number}", tags=[]).hits

    def read(_: int) -> None:
        start.wait()
        for _ in range(10):
            for hit in home.search("fox", k=3):
                assert home.get(hit.chunk_id).text == hit.text
            assert len({row.chunk_id for row in home.passages()}) <= 3 * THREADS
            home.stats()

    with ThreadPoolExecutor(2 * THREADS) as pool:
        calls = [pool.submit(add, who) for who in range(THREADS)]
        calls += [pool.submit(read, who) for who in range(THREADS)]
        for call in calls:
            call.result(timeout=120)
    titles = {f"Fox {who} {number}" for who in range(THREADS) for number in range(3)}
    assert {row.title for row in home.docs()} == titles
    assert {hit.title for hit in home.search("fox", k=100)} == titles
    assert all(row.vector is not None for row in home.passages())


@pytest.mark.parametrize("name", CALLS)
def test_after_close_every_call_says_so(home: kb.Home, name: str) -> None:
    """One error, which names the home and the way back; closing again does nothing."""
    home.close()
    home.close()
    assert home.is_closed
    with pytest.raises(HomeClosed) as raised:
        CALLS[name](home)
    assert str(raised.value) == f"{home.path} is closed here; open it again with kb.open"


def test_every_method_is_tried_after_close() -> None:
    """The list above has all of them."""
    methods = {name for name, member in vars(kb.Home).items() if callable(member)}
    assert {name for name in methods if name[0] != "_"} - {"close"} == set(CALLS)


def test_close_waits_for_the_calls_of_other_threads(home: kb.Home, folder: Path) -> None:
    """A call that runs comes to its end; none begins after it."""
    home.add(folder)
    outcomes: list[str] = []
    running = threading.Barrier(THREADS + 1)

    def search() -> None:
        running.wait()
        while True:
            try:
                outcomes.append(home.search("fox").hits[0].title)
            except HomeClosed:
                return

    threads = [threading.Thread(target=search) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    running.wait()
    while len(outcomes) < THREADS:
        pass
    home.close()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)
    assert set(outcomes) == {"Fox"}


def test_an_iterator_that_is_half_read_keeps_nothing_open(home: kb.Home, folder: Path) -> None:
    """The home closes under it, and its next batch says so; what is followed ends."""
    for number in range(300):
        home.add(text=f"fox {number}", title=f"Fox {number}", wait=False)
    rows, queue = home.docs(), home.events()
    assert (next(rows).title, next(queue).docs) == ("Fox 0", 300)
    home.close()
    with pytest.raises(HomeClosed):
        list(rows)
    assert list(queue) == []


def test_docs_that_go_meanwhile_are_left_out(home: kb.Home) -> None:
    """What is read later is read as it is then."""
    for number in range(300):
        home.add(text=f"fox {number}", title=f"Fox {number}", wait=False)
    rows = home.docs()
    first = next(rows)
    last = home.list(limit=1).docs[0]
    home.remove(last.doc_id)
    titles = [first.title, *(row.title for row in rows)]
    assert titles == [f"Fox {number}" for number in range(299)]


def test_docs_and_jobs_are_followed_to_their_end(home: kb.Home) -> None:
    """Each is told as it stands and as it changes; all being over ends it."""
    (line,) = home.add(text="a fox", wait=False).docs
    events = home.events(doc=[line.doc_id[:9]])
    assert next(events).state == "pending"
    with ThreadPoolExecutor(1) as pool:
        worked = pool.submit(home.work)
        states = [event.state for event in events]
        assert worked.result().problems == ()
    assert states[-1] in ("indexing_complete", "done")
    assert [event.indexed for event in home.events(doc=[line.doc_id])] == [True]
    with pytest.raises(NotFound):
        home.events(doc=["dfffffff"])
    with pytest.raises(NotFound):
        home.events(job=["j0000"])


def test_one_process_opens_a_home_twice(tmp_path: Path) -> None:
    """Each sees what the other does, also where the home was made after it was opened."""
    first = kb.open(tmp_path / "home", settings=HASHING)
    second = kb.open(tmp_path / "home", settings=HASHING)
    first.add(text="a fox", title="First")
    assert [hit.title for hit in second.search("fox")] == ["First"]
    second.add(text="another fox", title="Second")
    second.close()
    assert {hit.title for hit in first.search("fox")} == {"First", "Second"}
    first.close()


def test_threads_make_a_home_that_each_has_opened(tmp_path: Path) -> None:
    """Several objects of one home that is not there: it is made once, and all find all."""
    homes = [kb.open(tmp_path / "home", settings=HASHING) for _ in range(3)]
    with ThreadPoolExecutor(THREADS) as pool:
        adds = [
            pool.submit(homes[number % 3].add, text=f"fox {number}", title=f"Fox {number}")
            for number in range(THREADS)
        ]
        assert [add.result(timeout=120).added for add in adds] == [1] * THREADS
    for home in homes:
        assert len(home.search("fox").hits) == THREADS
        home.close()


def test_beside_commands(tmp_path: Path, folder: Path) -> None:
    """What a command adds is found by an open home, and the other way round."""
    command = CommandHome(tmp_path / "home")
    with kb.open(command.root, settings=HASHING) as home:
        assert list(home.search("fox")) == []
        assert command.run("add", folder / "fox.md").code == 0
        assert [hit.title for hit in home.search("fox")] == ["Fox"]
        home.add(text="a red fox", title="Red")
        found = command.run("search", "--json", "red", "fox").json["hits"]
        assert found[0]["title"] == "Red"
        assert command.run("rm", "--yes", found[0]["doc_id"]).code == 0
        assert [hit.title for hit in home.search("fox")] == ["Fox"]
        assert command.run("check").code == 0


def test_beside_a_server_that_holds_the_home(tmp_path: Path, folder: Path) -> None:
    """Its workers do what the library leaves; each finds what the other takes in."""
    command = CommandHome(tmp_path / "home")
    command.run("add", folder / "fox.md")
    server = http_server.start(command)
    try:
        with kb.open(command.root, settings=HASHING) as home:
            (line,) = home.add(text="a red fox", title="Red", wait=False).docs
            last = list(home.events(doc=[line.doc_id], timeout_s=60))[-1]
            assert last.indexed
            assert {hit.title for hit in home.search("fox")} == {"Fox", "Red"}
            assert home.add(text="a white fox", title="White").added == 1
            answer = server.post("/v1/search", {"query": "white fox"})
            assert answer.json["hits"][0]["title"] == "White"
            body = {"text": "a grey fox", "title": "Grey"}
            assert server.post("/v1/docs", body).status in (200, 202)
            home.work()
            assert home.search("grey fox").hits[0].title == "Grey"
    finally:
        code, _ = server.stop()
    assert code == 0


_FORKED: Final = """
import os, sys
import kb
home = kb.open(sys.argv[1], settings={"embed.kind": "hashing"})
home.add(text="a red fox", title="Parent")
home.search("fox")
child = os.fork()
if child == 0:
    try:
        home.search("fox")
    except kb.errors.WrongProcess as error:
        assert "cannot be used after a fork" in str(error)
        with kb.open(sys.argv[1], settings={"embed.kind": "hashing"}) as own:
            own.add(text="a white fox", title="Child")
            assert len(own.search("fox").hits) == 2
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
print(sorted(hit.title for hit in home.search("fox")))
home.close()
"""


def test_a_child_opens_the_home_again(tmp_path: Path) -> None:
    """The parent's is of no use to it and says so; both go on with their own."""
    done = subprocess.run(
        [sys.executable, "-c", _FORKED, tmp_path / "home"],
        capture_output=True,
        text=True,
        timeout=120,
        env=surroundings(),
    )
    assert (done.stdout, done.stderr) == ("['Child', 'Parent']\n", "")
