"""The gate and the routes without a socket: what no client can bring about."""

import asyncio
import errno
import io
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import Home

from kb.errors import KbError, StoreBusy, StoreDamaged, StoreFull
from kb.home.app import App
from kb.home.spaces.spaces import Spaces
from kb.model.config import EmbedSettings, ServeSettings, Settings
from kb.model.doc import OPERATOR, Scope
from kb.serve import http_server
from kb.serve.access_log import AccessLog
from kb.serve.executor import CallExecutor, CallExecutors
from kb.serve.http_changes import Changes
from kb.serve.http_content import content_routes
from kb.serve.http_gate import Gate, GateOptions
from kb.serve.http_metrics import Metrics
from kb.serve.http_reply import Refusal, Reply, json_of, packed, tagged
from kb.serve.http_routes import Caller, Route, Served, run
from kb.serve.http_streams import Streams
from kb.serve.sessions import Sessions
from kb.store.jobs import queue


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with App.open(tmp_path / "home", Settings(embed=EmbedSettings(kind="hashing"))) as opened:
        yield opened


def spaces_of(app: App) -> Spaces:
    return Spaces([app.opened("home")], apps=[app])


def served_of(app: App, *, trouble: KbError | OSError | None = None) -> Served:
    spaces = spaces_of(app)
    return Served(
        app=app,
        spaces=spaces,
        every=spaces,
        changes=Changes(app.store),
        trouble=lambda: trouble,
        counters=lambda: "",
        sessions=Sessions(bytes),
    )


def asked(
    app: App,
    routes: tuple[Route, ...],
    path: str,
    *,
    trouble: KbError | OSError | None = None,
    calls_max: int = 8,
) -> tuple[int, Any, str]:
    """Status, JSON and log of one GET through the gate."""
    log = io.StringIO()
    lines = AccessLog(log, "text", app.store.clock)
    executors, metrics = (
        CallExecutors(short=CallExecutor(1, calls_max), long=CallExecutor(1, 1)),
        Metrics(),
    )
    options = GateOptions(settings=ServeSettings(), host="127.0.0.1", is_loopback=True, draw=bytes)
    gate = Gate(
        routes,
        served_of(app, trouble=trouble),
        options,
        metrics,
        executors,
        lines,
        Streams(1, metrics),
    )
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    scope = {
        "method": "GET",
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(gate(scope, receive, send))
    assert executors.close(5)
    assert lines.close(5)
    return sent[0]["status"], json.loads(sent[1]["body"]), log.getvalue()


def failing(error: Exception) -> Route:
    def fail(*_: object) -> Reply:
        raise error

    return Route(method="GET", path="/x", role="reader", summary="Fails.", run=fail)


def test_a_defect_is_told_by_its_class_alone(app: App) -> None:
    """What an error says goes neither to the client nor to the log."""
    status, problem, log = asked(app, (failing(ValueError("a secret")),), "/x")
    assert (status, problem["code"]) == (500, "defect")
    assert "failed: ValueError" in log
    assert "secret" not in json.dumps(problem) + log


def test_a_damaged_store_is_an_answer(app: App) -> None:
    """An error of kb's own has its status; the operator hears of its place."""
    error = StoreDamaged("not a record", place="docs/1")
    status, problem, _ = asked(app, (failing(error),), "/x")
    assert (status, problem["code"]) == (500, "damaged")
    assert problem["detail"].startswith("docs/1: not a record")


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (StoreFull("", place="/secret"), "there is no space left"),
        (OSError(errno.ENOSPC, "full", "/secret"), "there is no space left"),
        (OSError(errno.EIO, "broken", "/secret"), "cannot be used"),
        (StoreDamaged("x", place="/secret"), "damaged"),
        (StoreBusy(place="/secret"), "in use"),
    ],
)
def test_it_is_not_ready_without_its_workers(
    app: App, trouble: KbError | OSError, why: str
) -> None:
    """Alive and not ready, and it says why, but not where; the reads go on."""
    routes = http_server.all_routes()
    assert asked(app, routes, "/health/ready")[0] == 200
    status, problem, _ = asked(app, routes, "/health/ready", trouble=trouble)
    assert (status, why in problem["detail"]) == (503, True)
    assert "secret" not in problem["detail"]
    assert asked(app, routes, "/health/live", trouble=trouble)[0] == 200
    assert asked(app, routes, "/v1/docs", trouble=trouble)[0] == 200


def test_over_the_cap_nothing_is_begun(app: App) -> None:
    """With every place taken it is 503 at once, and what is long has places of its own."""
    begun: list[bool] = []

    def begin(*_: object) -> Reply:
        begun.append(True)
        return json_of(1)

    short = Route(method="GET", path="/x", role="reader", summary="Begins.", run=begin)
    long = msgspec.structs.replace(short, is_long=lambda *_: True)
    assert asked(app, (short,), "/x", calls_max=0)[0] == 503
    assert begun == []
    assert asked(app, (long,), "/x", calls_max=0)[0] == 200
    assert asked(app, (failing(ValueError()),), "/x", calls_max=1)[0] == 500
    assert asked(app, (short,), "/x", calls_max=1)[0] == 200


def test_a_log_that_is_full_stops_no_answer(app: App) -> None:
    """Where a line cannot be written, it is left out."""

    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "no space left")

    lines = AccessLog(Full(), "json", app.store.clock)
    lines.failed("0", ValueError())
    assert lines.close(5)


def test_a_job_is_told_of_to_whom_it_concerns(tmp_path: Path) -> None:
    """Jobs of docs are for admins; of a note whoever handed it in hears, but not of causes."""
    home = Home(tmp_path / "home")
    (tmp_path / "a.md").write_text("# A\n\nText.")
    assert home.run("add", "--no-wait", tmp_path / "a.md").code == 0
    note = home.run("note", "add", "A note.").out.strip()
    (route,) = (one for one in content_routes() if one.path == "/jobs/{id}")
    with App.open(home.root, Settings(embed=EmbedSettings(kind="hashing"))) as app:
        served = served_of(app)

        def told(job: str, caller: Caller) -> Any:
            return json.loads(run(route, served, route.request({"id": job}, "", b""), caller).body)

        writer = Caller(scope=Scope(user="ada"), role="writer")
        admin = Caller(scope=Scope(user="ada"), role="admin")
        mine = Caller(scope=Scope(user="local"), role="writer")
        assert [told(note, one)["status"] for one in (mine, admin)] == ["queued", "queued"]
        with app.store.read() as txn:
            (cut,) = queue.pending(txn, "chunk")
        doc_job = cut.job_id
        assert told(doc_job, admin)["kind"] == "chunk"
        for job, caller in ((doc_job, writer), (doc_job, mine), (note, writer)):
            with pytest.raises(Refusal) as refused:
                told(job, caller)
            assert refused.value.status == 404
        assert told(doc_job, Caller(scope=OPERATOR, role="admin"))["kind"] == "chunk"


def test_without_uvicorn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line."""
    monkeypatch.setattr(http_server.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(KbError, match=r"pip install 'kb-search\[serve\]'"):
        http_server.check_installed()


@pytest.mark.parametrize("known", ["*", '"{}"', 'W/"{}"', '"x", W/"{}"'])
def test_a_tag_is_compared_as_a_weak_one(known: str) -> None:
    """However the tag is written among others, what is known is not sent."""
    reply = tagged(json_of([1, 2]), "")
    tag = dict(reply.headers)["etag"].removeprefix('W/"').removesuffix('"')
    assert tagged(json_of([1, 2]), known.format(tag)).status == 304
    assert tagged(json_of([1, 3]), known.format(tag)).status == (304 if known == "*" else 200)


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.1", True),
        ("*", True),
        ("", False),
        ("br", False),
        ("gzip; q=0", False),
        ("gzip;q=0.000", False),
        ("xgzip", False),
    ],
)
def test_gzip_is_used_where_it_is_accepted(accepted: str, is_packed: bool) -> None:
    """By the names and weights of the header; short bodies never."""
    long = Reply(body=b"a" * 5_000)
    assert (len(packed(long, accepted).body) < 5_000) == is_packed
    assert packed(Reply(body=b"a" * 100), accepted).body == b"a" * 100


def test_histograms_add_up() -> None:
    """Each bucket holds those below it, and the last one all."""
    metrics = Metrics()
    for took_s in (0.001, 0.02, 0.3, 60.0):
        metrics.observe("/x", "GET", 200, took_s)
    lines = metrics.lines()
    counts = [int(row.split()[1]) for row in lines.splitlines() if "_bucket{" in row]
    assert counts == [1, 2, 2, 3, 3, 3, 4]
    assert 'kb_http_requests_total{route="/x",method="GET",status="200"} 4\n' in lines
    assert "kb_http_request_seconds_count 4\n" in lines
