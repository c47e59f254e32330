"""`kb serve`: who is slow keeps nobody else waiting, and what others change is seen."""

import concurrent.futures
import contextlib
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import loopback
import pytest
from commands import Home
from http_server import END_S, ConfiguredHome, Running, serving, settings, until
from loopback import Handler, LoopbackServer

LONG_MAX = 2
ASK = "/content?query=oak"


@contextlib.contextmanager
def silent_model() -> Iterator[tuple[LoopbackServer, threading.Semaphore]]:
    """A language model that is asked and does not answer; each question is let through once."""
    asked, over = threading.Semaphore(0), threading.Event()

    def never(_: Handler) -> None:
        asked.release()
        over.wait(240)

    with loopback.serving() as model:
        model.routes["/api/chat"] = never
        try:
            yield model, asked
        finally:
            over.set()


def boat(home: Home, folder: Path) -> None:
    (folder / "boat.md").write_text("# Boat\n\nThe keel is made of oak.")
    assert home.run("add", folder / "boat.md").code == 0


def with_model(folder: Path, model: LoopbackServer) -> Home:
    said = ("--cfg", "llm.provider=ollama", "--cfg", f"llm.base_url={model.url()}")
    said = (*said, "--cfg", "llm.model=slow", *settings(long_max=LONG_MAX))
    return ConfiguredHome(folder / "home", said)


def test_a_slow_model_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    """With every place for long answers taken, searches, reads and health go on beside them."""
    with silent_model() as (model, asked), contextlib.ExitStack() as stack:
        home = with_model(tmp_path, model)
        boat(home, tmp_path)
        server = stack.enter_context(serving(home))
        crowd = stack.enter_context(concurrent.futures.ThreadPoolExecutor(16))
        stack.callback(server.process.kill)
        waiting = [crowd.submit(server.get, ASK) for _ in range(LONG_MAX)]
        for _ in range(LONG_MAX):
            assert asked.acquire(timeout=120)
        paths = ("/v1/search?q=oak", "/v1/docs", "/health/ready", "/content?query=oak&mode=raw")
        found = [crowd.submit(server.get, path) for path in paths * 10]
        assert {one.result(timeout=120).status for one in found} == {200}
        call = {"method": "tools/call", "params": {"name": "kb_ask"}}
        for refused in (
            server.get(ASK),
            server.post("/v1/tools/kb_ask", {"question": "oak"}),
            server.post("/mcp", {"jsonrpc": "2.0", "id": 1, **call}),
        ):
            assert (refused.status, refused.json["code"]) == (503, "busy")
            assert refused.headers["retry-after"] == "1"
        assert not any(one.done() for one in waiting)


def test_an_answer_without_a_model_is_no_long_one(tmp_path: Path) -> None:
    """Where nothing is asked but the home, questions have the places of searches."""
    home = ConfiguredHome(tmp_path / "home", settings(long_max=1))
    boat(home, tmp_path)
    with serving(home) as server, concurrent.futures.ThreadPoolExecutor(12) as crowd:
        found = [crowd.submit(server.get, ASK) for _ in range(12)]
        assert {one.result().status for one in found} == {200}


def threads(server: Running) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_as_many_workers_as_are_asked_for(tmp_path: Path) -> None:
    """`--workers` says how many threads work on jobs, whatever the settings say."""
    home = Home(tmp_path / "home")
    with serving(home, "--workers", "1") as few, serving(home, "--workers", "5") as more:
        until(lambda: threads(more) - threads(few) == 4)
    assert home.run("serve", "--workers", "-1").code == 2


def test_what_others_change_is_seen(tmp_path: Path) -> None:
    """While other commands add, remove, compact, rebuild and change the model, no request fails."""
    home = Home(tmp_path / "home")
    boat(home, tmp_path)
    statuses: Counter[int] = Counter()
    over = threading.Event()
    with serving(home) as server, concurrent.futures.ThreadPoolExecutor(4) as crowd:

        def ask() -> None:
            while not over.is_set():
                statuses[server.get("/v1/search?q=oak").status] += 1

        def titles(query: str) -> list[str]:
            return [hit["title"] for hit in server.get(f"/v1/search?q={query}").json["hits"]]

        asking = [crowd.submit(ask) for _ in range(3)]
        try:
            _change(home, tmp_path, titles)
        finally:
            over.set()
        for one in asking:
            one.result()
    assert set(statuses) == {200}
    assert home.run("check").code == 0


def _change(home: Home, folder: Path, titles: Callable[[str], list[str]]) -> None:
    """Change the home by commands, and see each change in the next answer."""
    (folder / "mast.md").write_text("# Mast\n\nThe mast is a tall pine.")
    assert home.run("add", folder / "mast.md").code == 0
    assert titles("pine")[0] == "Mast"
    assert home.run("compact", "--grace-min", "0").code == 0
    assert titles("pine")[0] == "Mast"
    # Moved first: the server may write into it at any moment.
    (home.root / "index").rename(folder / "old index")
    shutil.rmtree(folder / "old index", ignore_errors=True)
    assert titles("pine")[0] == "Mast"
    assert home.run("rm", "--yes", home.ids()["mast.md"]).code == 0
    assert "Mast" not in titles("pine")
    assert home.run("embedder", "set", "builtin").code == 0
    assert titles("oak")[0] == "Boat"


def test_a_log_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    """With the pipe of its log full the server answers as before, and ends when it is asked to."""
    home = Home(tmp_path / "home")
    with serving(home) as server, concurrent.futures.ThreadPoolExecutor(4) as crowd:
        asked = [crowd.submit(server.get, "/health/live") for _ in range(1_500)]
        assert {one.result().status for one in asked} == {200}
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=END_S) == 0
