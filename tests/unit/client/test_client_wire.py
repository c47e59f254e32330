"""A server that is none, or means ill: bounded, in words, and no token goes astray."""

import time
from collections.abc import Iterator

import loopback
import pytest
from loopback import Answer, LoopbackServer, Route, dripping, in_chunks, moved, raw, reset

from kb.client import http_client as wires
from kb.client.http_client import Body, ServerClient, server_at
from kb.client.problems import ServerError, TooMuch
from kb.client.remote import run_remote
from kb.client.waiting import events
from kb.errors import HeldBack, KbError, UsageError
from kb.operations.search import SEARCH as OPERATION
from kb.operations.search import ShownSearch

SECRET = "kb_" + "S" * 43
JSON = {"Content-Type": "application/json"}
PROBLEM = {"Content-Type": "application/problem+json"}
SEARCH = "/v1/search"
ENDLESS_PROBLEM = b"HTTP/1.1 400 No\r\ncontent-type: application/problem+json\r\n\r\n"


@pytest.fixture
def site() -> Iterator[LoopbackServer]:
    with loopback.serving() as server:
        yield server


def refusal(site: LoopbackServer, timeout_s: float = 5.0) -> KbError:
    """The error that a search by this server ends with."""
    client = ServerClient(server_at(site.url(""), SECRET), timeout_s)
    with pytest.raises(KbError) as refused:
        run_remote(client, OPERATION, ShownSearch(query="oak"))
    assert SECRET not in str(refused.value) + repr(client.server)
    return refused.value


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(b"<html>", 200, {"Content-Type": "text/html"}), "is it a kb server"),
        (Answer(b'{"result": 1}', 200, JSON), "is it a kb server"),
        (Answer(b"[" * 100_000, 200, JSON), "is it a kb server"),
        (Answer(b"\xff", 200, JSON), "is it a kb server"),
        (Answer(b"busy", 500), "answered 500"),
        (Answer(b"{}", 404, PROBLEM), "answered 404"),
        (Answer(b'{"code": "no_such_route", "detail": "x"}', 404, PROBLEM), "another version"),
        (Answer(b'{"code": "other", "detail": "so it is"}', 400, PROBLEM), "so it is"),
        (raw(b"SSH-2.0-none\r\n"), "not valid HTTP"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "is it a kb server"),
        (raw(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000), "not valid HTTP"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"), "ends early"),
        (reset, "broke off"),
    ],
    ids=range(13),
)
def test_what_is_no_answer_is_told(site: LoopbackServer, answer: Route, said: str) -> None:
    """One line that names the server, exit code 1, and never the token."""
    site.routes[SEARCH] = answer
    error = refusal(site)
    assert isinstance(error, ServerError)
    assert error.exit_code == 1
    assert str(error).startswith(f"{site.url('')}: ")
    assert said in str(error)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("not_found", 4),
        ("ambiguous_id", 2),
        ("invalid_input", 2),
        ("damaged", 5),
        ("held_back", 6),
        ("unavailable", 1),
        ("forbidden", 1),
    ],
)
def test_a_problem_has_its_exit_code(site: LoopbackServer, code: str, expected: int) -> None:
    """The code of a problem is the error that it is at home."""
    site.routes[SEARCH] = Answer(b'{"code": "%s", "detail": "so"}' % code.encode(), 400, PROBLEM)
    error = refusal(site)
    assert error.exit_code == expected
    assert "so" in str(error)


def test_a_redirect_takes_the_token_nowhere(site: LoopbackServer) -> None:
    """A redirect is not followed, on the same server or to another."""
    with loopback.serving() as other:
        for status in (301, 302, 307, 308):
            site.routes[SEARCH] = moved(other.url(SEARCH), status)
            assert "does not follow" in str(refusal(site))
        assert other.requests == []
    assert all(one.headers["authorization"] == f"Bearer {SECRET}" for one in site.requests)


@pytest.mark.parametrize("kind", ["body", "head", "silence"])
def test_a_slow_server_is_left(site: LoopbackServer, kind: str) -> None:
    """However it is slow, it has the time that the setting gives it."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

    def silent(handler: loopback.Handler) -> None:
        handler.server.stopping.wait(240)

    site.routes[SEARCH] = {
        "body": dripping(head + b"Content-Length: 900000\r\n\r\n"),
        "head": dripping(head + b"X: "),
        "silence": silent,
    }[kind]
    began_s = time.monotonic()
    # On a busy machine the time may be over before the request is sent.
    said = str(refusal(site, 0.3))
    assert "no complete answer within" in said or "does not answer in time" in said
    assert time.monotonic() - began_s < 60


@pytest.mark.parametrize("status", [200, 400])
def test_an_endless_body_is_left(
    site: LoopbackServer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """It is cut at a bound, which for a problem is a narrow one."""
    monkeypatch.setattr(wires, "ANSWER_BYTES_MAX", 1 << 20)
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b" " * 65_536

    site.routes[SEARCH] = (
        in_chunks(pieces(), JSON) if status == 200 else dripping(ENDLESS_PROBLEM + b" " * 70_000)
    )
    assert "its answer is over" in str(refusal(site))
    assert sent < 32 << 20


def test_events_end_with_their_stream(site: LoopbackServer) -> None:
    """Comments and unknown fields are passed over, `done` is the end, and so is a cut stream."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    said = b": at work\n\nevent: doc\ndata: {}\nid: 1\n\nevent: job\ndata: 2\n\n"
    client = ServerClient(server_at(site.url(""), ""), 5)
    for rest in (b"event: done\ndata: {}\n\nevent: doc\ndata: 3\n\n", b"event: doc\nda"):
        site.routes["/v1/events?doc=d1"] = raw(head + said + rest)
        assert list(events(client, [("doc", "d1")])) == [("doc", b"{}"), ("job", b"2")]


def test_a_body_that_is_refused_at_once(site: LoopbackServer) -> None:
    """A server that answers and closes before all is sent is heard."""

    def refuse(handler: loopback.Handler) -> None:
        loopback.reply(handler, Answer(b'{"code": "too_large", "detail": "so"}', 413, PROBLEM))

    site.routes["/v1/files"] = refuse
    client = ServerClient(server_at(site.url(""), ""), 5)
    with pytest.raises(TooMuch, match="so"):
        client.post("/v1/files", Body(data=b"x" * 1_000_000, media="text/plain"), dict)


@pytest.mark.parametrize(
    "address",
    [
        "localhost:7777",
        "ftp://localhost",
        "http://",
        "http://user:word@localhost",
        "http://localhost?x=1",
        "http://localhost#x",
        "http://localhost:99999",
        "http://[::1",
        "http://local\nhost",
    ],
)
def test_an_address_that_is_none(address: str) -> None:
    """It is said how one looks, and what was typed is not repeated."""
    with pytest.raises(UsageError) as refused:
        server_at(address, "")
    assert "http://HOST:PORT" in str(refused.value)
    assert "word" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("http://kb.example", False),
        ("http://10.0.0.7", False),
        ("http://localhost.example", False),
        ("http://127.0.0.1.example", False),
        ("http://localhost:7777", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:7777/kb/", True),
        ("https://kb.example", True),
    ],
)
def test_a_token_is_not_sent_in_the_open(address: str, is_open: bool) -> None:
    """Over plain http it goes to this machine only, unless a setting says otherwise."""
    assert server_at(address, "").token == ""
    assert server_at(address, SECRET, is_insecure=True).token == SECRET
    if is_open:
        assert server_at(address, SECRET).token == SECRET
    else:
        with pytest.raises(UsageError, match="https"):
            server_at(address, SECRET)


@pytest.mark.parametrize("token", ["a b", "a\r\nX: y", "ü", "\x00"])
def test_a_token_that_is_none(token: str) -> None:
    """It is refused before it is sent, and not repeated."""
    with pytest.raises(UsageError) as refused:
        server_at("http://localhost", token)
    assert token not in str(refused.value)


def test_an_address_may_have_a_path(site: LoopbackServer) -> None:
    """Behind a proxy a server has a folder of its own."""
    site.routes["/kb" + SEARCH] = Answer(b'{"code": "held_back", "detail": "so"}', 400, PROBLEM)
    client = ServerClient(server_at(site.url("/kb/"), ""), 5)
    with pytest.raises(HeldBack):
        run_remote(client, OPERATION, ShownSearch(query="oak"))
