"""`kb serve --processes`: several processes answer as one server, and outlive each other."""

import contextlib
import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Home
from http_server import END_S, HOST, Running, serving, settings, start, until

PROCESSES = ("--processes", "2")


def made(folder: Path) -> Home:
    """A home with a doc."""
    (folder / "boat.md").write_text("# Boat\n\nThe keel is made of oak.")
    home = Home(folder / "home")
    assert home.run("add", folder / "boat.md").code == 0
    return home


def children(server: Running) -> list[int]:
    pid = server.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def counted(server: Running, token: str | None = None) -> dict[str, float]:
    """Each line of the metrics."""
    lines = server.get("/metrics", token).body.decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def asked(server: Running, token: str | None = None) -> list[float]:
    """How many requests each process has answered, as any of them says it."""
    return [counted(server, token)[f'kb_process_requests_total{{process="{n}"}}'] for n in (0, 1)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, Running, str]]:
    """A server that several tests ask, and the operator's token."""
    home = made(tmp_path_factory.mktemp("processes"))
    limits = settings(connections_max=10)
    with serving(home, *PROCESSES, before=limits, wants_token=True) as server:
        token = home.run("token", "own").out.strip()
        yield home, server, token
        assert server.stop()[0] == 0
    assert home.run("check").code == 0


def test_each_answers_for_the_other(shared: tuple[Home, Running, str]) -> None:
    """Docs, jobs, events, uploads and agents' calls go on wherever the next request lands."""
    home, server, token = shared
    for number in range(12):
        text = f"# Sail {number}\n\nCanvas of weight {number}."
        added = server.post("/v1/docs", {"text": text, "title": f"Sail {number}"}, token)
        assert added.status == 200, added.body
        ident = added.json["doc_id"]
        assert server.get(f"/v1/docs/{ident}", token).json["doc_id"] == ident
    note = server.post("/content", {"content": "# Rope\n\nHemp.", "hint": "box"}, token).json
    job = note["job_id"]
    until(lambda: server.get(f"/v1/jobs/{job}", token).json["status"] == "done")
    told = server.get(f"/v1/events?job={job}", token).body.decode()
    assert told.endswith("event: done\ndata: {}\n\n")
    media = "application/octet-stream"
    file = server.ask("POST", "/v1/files?name=tar.md", b"# Tar", token=token, content_type=media)
    assert file.status == 200
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    for _ in range(6):
        heard = server.post("/mcp", call, token, accept="application/json, text/event-stream")
        assert "kb_search" in heard.body.decode()
    titles: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = server.get(f"/v1/docs?limit=3{cursor and f'&cursor={cursor}'}", token).json
        titles += [doc["title"] for doc in page["docs"]]
        cursor = page["next_cursor"]
    assert len(titles) == len(set(titles)) == 12 + 3
    assert min(asked(server, token)) > 0
    before = len(asked_by_socket(server, token))
    found = home.run("search", "oak", "--json")
    assert (found.code, found.json["hits"][0]["title"]) == (0, "Boat")
    until(lambda: len(asked_by_socket(server, token)) == before + 1)


def asked_by_socket(server: Running, token: str) -> range:
    """One for each search that the command line asked."""
    name = 'kb_http_requests_total{route="/v1/search",method="POST",status="200"}'
    return range(int(counted(server, token).get(name, 0)))


def test_counts_are_those_of_all(shared: tuple[Home, Running, str]) -> None:
    """Whichever process is asked for the metrics, no request is missing and no count goes back."""
    _, server, token = shared
    name = 'kb_http_requests_total{route="/v1/sources",method="GET",status="200"}'
    for _ in range(30):
        assert server.get("/v1/sources", token).status == 200
    until(lambda: counted(server, token)[name] == 30)
    seen = [counted(server, token)["kb_http_request_seconds_count"] for _ in range(12)]
    assert seen == sorted(seen)
    assert min(asked(server, token)) > 0


def test_limits_are_those_of_all(shared: tuple[Home, Running, str]) -> None:
    """As many connections as the setting says, and no more, however they are divided."""
    _, server, _ = shared
    with contextlib.ExitStack() as stack:
        place = (HOST, server.port)
        opened = [stack.enter_context(socket.create_connection(place, 60)) for _ in range(30)]
        until(lambda: refused(opened) >= 20, 30)
        assert refused(opened) == 20
    until(lambda: server.get("/health/live").status == 200)


def refused(opened: list[socket.socket]) -> int:
    """How many were told that there are too many."""
    count = 0
    for one in opened:
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            count += one.recv(12, socket.MSG_PEEK).startswith(b"HTTP/1.1 503")
    return count


def test_the_page_opens_wherever_it_lands(shared: tuple[Home, Running, str]) -> None:
    """A link is good once in all processes, and its cookie in each."""
    _, server, token = shared
    for _ in range(4):
        path = server.ask("POST", "/v1/links", token=token).json["path"]
        answers = [server.get(path) for _ in range(4)]
        assert Counter(got.status for got in answers) == {303: 1, 404: 3}
        opened = next(got for got in answers if got.status == 303)
        cookie = opened.headers["set-cookie"].partition(";")[0]
        assert {server.get("/v1/me", cookie=cookie).status for _ in range(8)} == {200}
    assert server.get("/v1/me", cookie=cookie[:-1]).status == 401


def test_one_that_is_killed_starts_again(tmp_path: Path) -> None:
    """The others answer meanwhile, its counts go on, and at the end what was begun is answered."""
    home = made(tmp_path)
    with serving(home, *PROCESSES) as server:
        for _ in range(20):
            assert server.get("/v1/search?q=oak").status == 200
        first = children(server)
        assert len(first) == 2
        time.sleep(1.2)
        before = counted(server)["kb_http_request_seconds_count"]
        os.kill(first[0], signal.SIGKILL)
        until(lambda: max(starts(server)) == 2)
        assert counted(server)["kb_http_request_seconds_count"] >= before
        assert first[0] not in children(server)
        bodies = [json.dumps({"content": f"# {n}\n\nIt says {n}."}).encode() for n in range(8)]
        opened = [begun(server, body) for body in bodies]
        until(lambda: min(asked(server)) > 0)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: is_closed(server.port))
        for one, body in zip(opened, bodies, strict=True):
            one.sendall(body[5:])
            assert one.recv(100).startswith(b"HTTP/1.1 202 ")
            one.close()
        _, err = server.process.communicate(timeout=END_S)
        assert server.process.returncode == 0
        assert "a process of the server ended by itself; it starts again in a moment" in err
        assert "Traceback" not in err


def starts(server: Running) -> list[float]:
    lines = counted(server)
    return [lines[f'kb_process_starts_total{{process="{n}"}}'] for n in (0, 1)]


def begun(server: Running, body: bytes) -> socket.socket:
    """A connection on which a part of a note was sent."""
    one = socket.create_connection((HOST, server.port), timeout=60)
    head = (
        "POST /content HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    one.sendall(head.encode() + body[:5])
    return one


def is_closed(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


def test_no_process_is_left_without_its_parent(tmp_path: Path) -> None:
    """A parent that is killed takes its children along; Ctrl-C ends the next server, and all."""
    home = made(tmp_path)
    server = start(home, *PROCESSES)
    processes = children(server)
    assert len(processes) == 2
    server.process.kill()
    server.process.communicate(timeout=END_S)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes), 30)
    with serving(home, *PROCESSES, "--workers", "0") as again:
        processes = children(again)
        mast = {"text": "# Mast\n\nA mast of larch.", "title": "Mast"}
        assert again.post("/v1/docs", mast).json["status"] == "added"
        time.sleep(1)
        # With no workers of its own it leaves the work to others.
        assert counted(again)['kb_jobs{state="ready"}'] == 1
        assert again.get("/health/ready").status == 200
        assert home.run("worker", "--drain").code == 0
        assert again.get("/v1/search?q=larch").json["hits"][0]["title"] == "Mast"
        again.process.send_signal(signal.SIGINT)
        assert again.process.wait(timeout=END_S) == 130
        assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
