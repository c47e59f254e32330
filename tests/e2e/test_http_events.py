"""`kb serve`: how jobs, docs and the queue stand, told as it changes."""

import contextlib
import http.client
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from commands import Home
from http_server import END_S, HOST, ConfiguredHome, Running, serving, settings, until
from msgspec import Struct

from kb.model.clock import SystemClock
from kb.store.jobs import queue
from kb.store.store import Store

USERS: Final = {"ada": "writer", "bob": "writer", "ida": "reader", "eve": "admin"}


class Event(Struct, frozen=True, kw_only=True):
    """One event of a stream."""

    name: str
    data: dict[str, Any]


class Listening:
    """One stream, read event by event."""

    def __init__(self, server: Running, path: str, token: str | None = None) -> None:
        self._connection = http.client.HTTPConnection(HOST, server.port, timeout=120)
        headers = {"accept-encoding": "gzip"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()

    def __iter__(self) -> Iterator[Event]:
        """Events until the stream ends."""
        name = ""
        while line := self.answer.readline():
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield Event(name=name, data=json.loads(value))

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@contextlib.contextmanager
def listening(
    server: Running, path: str = "/v1/events", token: str | None = None
) -> Iterator[Listening]:
    stream = Listening(server, path, token)
    try:
        yield stream
    finally:
        stream.close()


def add(home: Home, folder: Path, name: str, text: str) -> str:
    """Take a file in, and leave the work on it to whoever comes."""
    (folder / name).write_text(text)
    done = home.run("add", "--no-wait", folder / name, "--json").json
    return str(done["docs"][0]["doc_id"])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_doc_is_told_of_until_it_is_found(home: Home, tmp_path: Path) -> None:
    """At once as it is, then as it changes, and `done` at the end; the answer is a live one."""
    text = "# Boat\n\n" + "The keel is made of oak. " * 20_000
    doc = add(home, tmp_path, "boat.md", text)
    with serving(home) as server, listening(server, f"/v1/events?doc={doc}") as stream:
        assert stream.answer.status == 200
        headers = {name.lower(): value for name, value in stream.answer.getheaders()}
        assert headers["content-type"] == "text/event-stream"
        assert headers["cache-control"] == "no-store"
        assert not {"content-encoding", "etag", "content-length"} & set(headers)
        events = list(stream)
        assert events[0] == Event(
            name="doc", data={"doc_id": doc, "state": "pending", "indexed": False}
        )
        assert [one.name for one in events] == ["doc"] * (len(events) - 1) + ["done"]
        assert (events[-2].data["indexed"], events[-1].data) == (True, {})
        assert len({json.dumps(one.data) for one in events}) == len(events)
        again = server.get(f"/v1/events?doc={doc}&doc={doc}")
        assert again.body.count(b"event: doc") == 1
        assert again.body.endswith(b"event: done\ndata: {}\n\n")


def test_a_job_is_told_of_as_its_route_does(home: Home) -> None:
    """Each event is what `/jobs/{id}` says; the last before `done` is where the note lies."""
    with serving(home) as server:
        jobs = [
            server.post("/content", {"content": f"# Note {number}\n\nText."}).json["job_id"]
            for number in range(3)
        ]
        with listening(server, "/v1/events?" + "&".join(f"job={job}" for job in jobs)) as stream:
            events = list(stream)
        assert events.pop().name == "done"
        last = {one.data["job_id"]: one.data for one in events}
        for job in jobs:
            assert last[job] == server.get(f"/jobs/{job}").json
            assert last[job]["status"] == "done"
        assert server.get(f"/v1/events?job={jobs[0]}").body.startswith(b"event: job\ndata: {")


def test_a_failure_is_an_end(home: Home, tmp_path: Path) -> None:
    """A doc whose work ended for good is `failed`, its job as well, and nothing waits for them."""
    doc = add(home, tmp_path, "a.md", "# A\n\nText.")
    with Store.open(home.root / "store") as store, store.write() as txn:
        (claim,) = queue.claim(txn, SystemClock(), ["chunk"], limit=1, lease_ms=60_000)
        queue.fail(txn, SystemClock(), claim, "broken", permanent=True)
    with serving(home) as server:
        path = f"/v1/events?doc={doc}&job={claim.job.job_id}"
        with listening(server, path) as stream:
            job, state, done = list(stream)
        assert (job.data["status"], job.data["reason"]) == ("failed", "broken")
        assert (state.data["state"], state.data["indexed"]) == ("failed", False)
        assert done.name == "done"


def test_the_queue_is_told_of_as_it_moves(home: Home, tmp_path: Path) -> None:
    """With no id: how much is to do and how much there is, also as other processes change it."""
    with serving(home) as server, listening(server) as stream:
        events = iter(stream)
        first = next(events)
        nothing = {"ready": 0, "running": 0, "failed": 0, "docs": 0, "passages": 0}
        assert first == Event(name="queue", data=nothing)
        add(home, tmp_path, "a.md", "# A\n\nText.")
        for event in events:
            if event.data == {**nothing, "docs": 1, "passages": 1}:
                break
        assert "kb_http_streams 1\n" in server.get("/metrics").body.decode()


def test_what_is_not_for_a_caller_is_not_told(tmp_path: Path) -> None:
    """Each id as by its own route: roles, docs of others, jobs of others, and what is missing."""
    home = Home(tmp_path / "home")
    tokens = {
        user: home.run("token", "add", user, "--user", user, "--role", role).out.strip()
        for user, role in USERS.items()
    }
    with serving(home) as server:
        body = {"text": "Ada's own.", "title": "Own"}
        mine = server.post("/v1/docs", body, tokens["ada"]).json["doc_id"]
        note = server.post("/content", {"content": "A note."}, tokens["ada"]).json["job_id"]
        missing = "d" + "0" * (len(mine) - 1)

        def refused(user: str, query: str) -> tuple[int, str]:
            got = server.get(f"/v1/events?{query}", tokens[user])
            return got.status, got.json["detail"].replace(mine, missing).replace(note, "j9")

        hidden = refused("bob", f"doc={mine}")
        assert hidden == refused("bob", f"doc={missing}")
        assert hidden[0] == 404
        assert refused("bob", f"job={note}") == refused("bob", "job=j9")
        assert refused("ida", f"job={note}")[0] == 403
        assert (refused("bob", "")[0], refused("ida", "")[0]) == (403, 403)
        many = "&".join(f"doc=d{number:020}" for number in range(65))
        assert refused("ada", many)[0] == 422
        both = "&".join(f"doc=d{n:020}&job=j{n}" for n in range(33))
        assert refused("ada", both)[0] == 422
        assert refused("ada", "doc=c0000")[0] == 404
        assert server.get(f"/v1/events?doc={mine}&job={note}", tokens["ada"]).status == 200
        with listening(server, token=tokens["eve"]) as stream:
            events = iter(stream)
            next(events)
            began_s = time.monotonic()
            assert home.run("token", "rm", "eve").code == 0
            assert list(events) == []
            assert time.monotonic() - began_s < 60


def test_only_so_many_at_once(tmp_path: Path) -> None:
    """Beyond them it is 503; one that is left makes room, and other requests are not touched."""
    home = ConfiguredHome(tmp_path / "home", settings(streams_max=2, concurrency_max=1))
    with serving(home) as server, contextlib.ExitStack() as stack:
        first, _ = [stack.enter_context(listening(server)) for _ in range(2)]
        got = server.get("/v1/events")
        assert (got.status, got.headers["retry-after"]) == (503, "1")
        assert server.get("/v1/stats").status == 200
        assert server.ask("HEAD", "/v1/events").status in (200, 503)
        first.close()

        def has_room() -> bool:
            with listening(server) as stream:
                return stream.answer.status == 200

        until(has_room)


def test_it_ends_after_its_time(tmp_path: Path) -> None:
    """The limit ends it without `done`, so that a client knows to ask again."""
    home = ConfiguredHome(tmp_path / "home", settings(stream_s=0.4))
    with serving(home, "--log", "json") as server:
        with listening(server) as stream:
            assert [one.name for one in stream] == ["queue"]
        code, err = server.stop()
    row = json.loads(err.splitlines()[-1])
    assert (code, row["route"], row["status"]) == (0, "/v1/events", 200)
    assert row["bytes"] > 0
    assert row["took_ms"] >= 400


@pytest.mark.parametrize("reads", [True, False])
def test_the_server_ends_with_open_streams(tmp_path: Path, reads: bool) -> None:
    """SIGTERM ends each with a whole last piece, also where nobody reads; nothing is left over."""
    home = Home(tmp_path / "home")
    with serving(home) as server, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(listening(server)) for _ in range(5)]
        began_s = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        if reads:
            for stream in streams:
                assert [one.name for one in stream] == ["queue"]
        _, err = server.process.communicate(timeout=END_S)
        assert (server.process.returncode, err.count("Traceback")) == (0, 0)
        assert time.monotonic() - began_s < 60
        assert err.count(" 200 GET /v1/events ") == 5
