"""`kb serve`: how it starts, ends, is killed, and begins again."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import loopback
import pytest
from commands import Home
from http_server import END_S, HOST, ConfiguredHome, serving, settings, start, until
from loopback import Handler

from kb.model.note import Note
from kb.store.jobs import queue
from kb.store.records import NOTES
from kb.store.store import Store


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def note(number: int) -> dict[str, str]:
    return {"content": f"# Note {number}\n\nIt says {number}.", "hint": "box"}


def kept(home: Home) -> list[Note]:
    with Store.open(home.root / "store") as store, store.read() as txn:
        return [one for _, one in NOTES.scan(txn)]


def test_it_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    """SIGTERM ends it in bounded time: an idle connection, half a request and a slow model open."""
    asked, over = threading.Event(), threading.Event()

    def never(_: Handler) -> None:
        asked.set()
        over.wait(240)

    with loopback.serving() as model:
        model.routes["/api/chat"] = never
        said = ("--cfg", "llm.provider=ollama", "--cfg", f"llm.base_url={model.url()}")
        home = ConfiguredHome(tmp_path / "home", (*said, "--cfg", "llm.model=slow"))
        (tmp_path / "boat.md").write_text("# Boat\n\nThe keel is made of oak.")
        assert home.run("add", tmp_path / "boat.md").code == 0
        with serving(home) as server, contextlib.ExitStack() as stack:
            opened = [socket.create_connection((HOST, server.port)) for _ in range(3)]
            for one in opened:
                stack.enter_context(one)
            opened[1].sendall(
                b"POST /content HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/json\r\ncontent-length: 9\r\n\r\n{"
            )
            opened[2].sendall(b"GET /content?query=oak HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert asked.wait(120)
            began_s = time.monotonic()
            code, err = server.stop()
            assert (code, time.monotonic() - began_s < 60) == (0, True)
            assert "Traceback" not in err
            assert err.endswith("a job is done again by the next worker\n")
            with pytest.raises(ConnectionRefusedError):
                server.get("/health/live")
        over.set()
    assert home.run("check").code == 0


def test_ctrl_c_ends_it(home: Home) -> None:
    """SIGINT ends it in the same way, with the exit code that Ctrl-C has everywhere."""
    with serving(home) as server:
        server.process.send_signal(signal.SIGINT)
        _, err = server.process.communicate(timeout=END_S)
        assert server.process.returncode == 130
        assert err.endswith("kb: interrupted; what was committed is kept\n")


class BackgroundHome(Home):
    """A home whose commands a shell starts with SIGINT ignored."""

    def argv(self, *args: object) -> list[str]:
        return ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *super().argv(*args)]


def test_ctrl_c_at_the_terminal_leaves_a_background_server_alone(tmp_path: Path) -> None:
    """Started with SIGINT ignored, it goes on ignoring it, and SIGTERM ends it."""
    with serving(BackgroundHome(tmp_path / "home")) as server:
        server.process.send_signal(signal.SIGINT)
        assert server.get("/health/live").status == 200
        assert server.stop()[0] == 0


def test_what_was_asked_before_the_end_is_answered(home: Home) -> None:
    """A request that is on its way when SIGTERM comes gets its answer."""
    with serving(home) as server:
        connection = socket.create_connection((HOST, server.port), timeout=120)
        body = json.dumps(note(1)).encode()
        head = (
            "POST /content HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body[:10])
        assert server.get("/health/live").status == 200
        server.process.send_signal(signal.SIGTERM)
        until(lambda: _refused(server.port))
        connection.sendall(body[10:])
        assert connection.recv(100).startswith(b"HTTP/1.1 202 ")
        connection.close()
        assert server.process.wait(timeout=END_S) == 0
    assert len(kept(home)) == 1


def _refused(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


def _answers(port: int, stop: threading.Event, answers: Counter[str]) -> None:
    """Ask on one new connection after the other, until there is nobody to connect to."""
    request = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    while not stop.is_set():
        try:
            with socket.create_connection((HOST, port), 30) as asking:
                asking.sendall(request)
                answers[asking.recv(100)[:12].decode()] += 1
        except ConnectionRefusedError:
            answers["refused"] += 1
            return
        except OSError as error:
            answers[type(error).__name__] += 1


@pytest.mark.parametrize("processes", ["1", "2"])
def test_whoever_could_connect_is_answered(home: Home, processes: str) -> None:
    """A server that ends resets no connection that was waiting, for a proxy would not ask again.

    One may still come just between the last that is accepted and the close of the socket.
    """
    answers: Counter[str] = Counter()
    for round_number in range(1, 4):
        stop = threading.Event()
        with serving(home, "--processes", processes) as server:
            threads = [
                threading.Thread(target=_answers, args=(server.port, stop, answers))
                for _ in range(8)
            ]
            for thread in threads:
                thread.start()
            until(lambda wanted=100 * round_number: answers["HTTP/1.1 200"] > wanted)
            assert server.stop()[0] == 0
            stop.set()
            for thread in threads:
                thread.join(60)
    assert answers["refused"] == 24, answers
    assert answers.total() - answers["HTTP/1.1 200"] - answers["refused"] <= 1, answers


def test_a_kept_connection_is_answered_once_more(home: Home) -> None:
    """A request that was on its way as the server ended is answered, with word that it closes."""
    with serving(home) as server:
        kept_open = http.client.HTTPConnection(HOST, server.port, timeout=30)
        answers = []
        for number in range(2):
            kept_open.request("GET", "/health/live")
            answer = kept_open.getresponse()
            answers.append((answer.status, answer.getheader("connection"), answer.read()))
            if number == 0:
                server.process.send_signal(signal.SIGTERM)
                until(lambda: _refused(server.port))
        live = b'{"status":"ok"}'
        assert answers == [(200, None, live), (200, "close", live)]
        assert server.stop()[0] == 0


def test_a_kill_loses_nothing(home: Home) -> None:
    """Whatever was said to be queued is placed by the next server, each note once."""
    server = start(home)
    with concurrent.futures.ThreadPoolExecutor(4) as crowd:
        answers = [crowd.submit(server.post, "/content", note(number)) for number in range(24)]
        until(lambda: sum(one.done() for one in answers) >= 8)
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.communicate()
    said = [one.result() for one in answers if one.exception() is None]
    assert len(said) >= 8
    assert {one.status for one in said} == {202}
    jobs = [one.json["job_id"] for one in said]
    assert set(jobs) <= {one.job_id for one in kept(home)}
    with serving(home) as again:

        def statuses() -> set[str]:
            return {again.get(f"/jobs/{job}").json["status"] for job in jobs}

        until(lambda: statuses() == {"done"})
        paths = [again.get(f"/jobs/{job}").json["path"] for job in jobs]
        assert len(set(paths)) == len(jobs)
    assert home.run("check").code == 0


def test_work_that_was_left_is_done(home: Home, tmp_path: Path) -> None:
    """A doc that was added without waiting is cut and embedded by the server."""
    (tmp_path / "boat.md").write_text("# Boat\n\nThe keel is made of oak.")
    assert home.run("add", "--no-wait", tmp_path / "boat.md").code == 0
    with serving(home) as server:
        until(lambda: server.get("/v1/docs").json["docs"][0]["indexed"])
        assert server.get("/v1/search?q=oak").json["hits"][0]["title"] == "Boat"


def test_claims_are_given_back_at_the_end(home: Home) -> None:
    """After SIGTERM no job is held, so that the next worker need not wait for a lease."""
    with serving(home) as server:
        for number in range(12):
            assert server.post("/content", note(number)).status == 202
        assert server.stop()[0] == 0
    with Store.open(home.root / "store") as store, store.read() as txn:
        assert queue.counts(txn).running == 0


def test_two_servers_want_one_place(home: Home) -> None:
    """The second says so in one line, and that the call was wrong."""
    with serving(home) as server:
        again = home.run("serve", "--port", server.port)
        assert (again.code, again.out) == (2, "")
        assert again.err.startswith(f"kb: cannot listen on 127.0.0.1 port {server.port}: ")
        assert again.err.count("\n") == 1
    assert home.run("serve", "--host", "no.such.host.invalid").code == 2


def test_the_settings_say_where(home: Home) -> None:
    """Host and port of the settings hold where no option says otherwise."""
    with serving(home) as first:
        taken = ConfiguredHome(home.root, settings(port=first.port))
        refused = taken.run("serve")
        assert (refused.code, f"port {first.port}" in refused.err) == (2, True)
        with serving(taken) as second:
            assert second.port != first.port
            assert second.get("/health/live").json == {"status": "ok"}
