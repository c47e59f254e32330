"""Servers that are busy, broken, slow or endless; and what nobody may read: the key."""

import logging
import socket
import threading
import time
import traceback
from collections.abc import Iterator

import pytest
from fakes import FakeClock
from llm_server import KEY, PATHS, LlmServer, Naps, answered, llm_serving
from loopback import HOST, Answer, Handler, Route, dripping, moved, raw, reset

from kb.errors import BadAnswer, LlmError, ModelRejected, ModelUnavailable
from kb.knowledge.llm import Timing, make_provider
from kb.model.clock import SystemClock
from kb.model.config import LlmSettings

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture(params=PATHS)
def server(request: pytest.FixtureRequest) -> Iterator[LlmServer]:
    with llm_serving(request.param) as running:
        yield running


@pytest.fixture
def openai() -> Iterator[LlmServer]:
    with llm_serving("openai") as running:
        yield running


def failure(server: LlmServer, *script: Route, **settings: object) -> LlmError:
    """What a question ends with."""
    server.script = list(script)
    with pytest.raises(LlmError) as caught:
        server.provider(**settings).complete("S", "U")
    return caught.value


def real_time(server: LlmServer) -> Timing:
    """Time passes by itself, but nobody sleeps between tries."""
    return Timing(clock=SystemClock(), sleep=lambda _: None, random=lambda: 0.0)


def test_a_busy_server_is_asked_again(server: LlmServer) -> None:
    """429, 5xx and 529 are followed by another try, which may succeed; so may a stream's."""
    for status in (429, 500, 502, 503, 529):
        server.script = [server.fails(status, "busy"), server.says("ok")]
        assert server.provider().complete("S", "U") == "ok"
        server.script = [server.fails(status, "busy"), server.streams("ok")]
        assert list(server.provider().stream("S", "U")) == ["ok"]
    assert len(server.requests) == 20


def test_after_the_last_try_the_error_says_all(server: LlmServer) -> None:
    """Who was asked, what it said, how often, and what to do."""
    error = failure(server, server.fails(529, "Overloaded\nnow"))
    assert type(error) is ModelUnavailable
    place = f"{server.api} ({server.base_url})"
    said = "the server failed (529): Overloaded now; tried 3 times; try again later"
    assert str(error) == f"{place}: {said}"
    assert len(server.requests) == 3


def test_one_try_is_one_request(server: LlmServer) -> None:
    """`tries` counts the first one, too."""
    error = failure(server, server.fails(503, "x"), tries=1)
    assert "tried" not in str(error)
    assert len(server.requests) == 1
    assert server.naps.slept_s == []


def test_waits_grow_and_have_chance_in_them(openai: LlmServer) -> None:
    """Between half and the whole of a length that doubles up to eight seconds."""
    failure(openai, openai.fails(500, "x"), tries=7)
    assert openai.naps.slept_s == [0.375, 0.75, 1.5, 3.0, 6.0, 6.0]
    ends = []
    for chance in (0.0, 0.999):
        naps = Naps(openai.clock)
        timing = Timing(clock=openai.clock, sleep=naps, random=lambda chance=chance: chance)
        openai.script = [openai.fails(500, "x"), openai.says("ok")]
        openai.provider(timing=timing).complete("S", "U")
        ends += naps.slept_s
    assert ends == pytest.approx([0.25, 0.5], abs=0.01)


def test_retry_after_is_obeyed(server: LlmServer) -> None:
    """No try comes before the server wants it; a date counts by the clock that was given."""
    date = {"Retry-After": "Tue, 14 Nov 2023 22:13:50 GMT"}
    for headers, wait_s in (({"Retry-After": "7"}, 7.25), ({"Retry-After": "0"}, 0.25)):
        server.script = [server.fails(429, "x", headers), server.says("ok")]
        server.provider().complete("S", "U")
        assert server.naps.slept_s[-1] == wait_s
    server.clock = FakeClock(1_700_000_000_000)
    server.naps = Naps(server.clock)
    server.script = [server.fails(503, "x", date), server.says("ok")]
    server.provider().complete("S", "U")
    assert server.naps.slept_s == [30.25]


def test_a_long_retry_after_is_left_to_the_caller(server: LlmServer) -> None:
    """Over a minute nobody waits: the error says how long it would be."""
    error = failure(server, server.fails(429, "x", {"Retry-After": "61"}))
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after_s == 61
    assert str(error).endswith("too busy (429): x; try again in 61 s")
    assert len(server.requests) == 1
    assert server.naps.slept_s == []


def test_no_wait_goes_beyond_the_deadline(openai: LlmServer) -> None:
    """Three tries of one second leave no time to wait for three."""
    error = failure(openai, openai.fails(429, "x", {"Retry-After": "3"}), timeout_s=1)
    assert "(429)" in str(error)
    assert len(openai.requests) == 1


def test_a_sleep_that_ends_too_late_leaves_no_try(openai: LlmServer) -> None:
    """When the machine slept on, the deadline is over, and that is what is said."""
    late = Timing(
        clock=openai.clock,
        sleep=lambda seconds: openai.clock.advance(400_000),
        random=lambda: 0.0,
    )
    openai.script = [openai.fails(500, "x")]
    with pytest.raises(ModelUnavailable, match="no complete answer within 360 s"):
        openai.provider(timing=late).complete("S", "U")
    assert len(openai.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 422])
def test_a_question_that_is_not_taken_is_not_repeated(server: LlmServer, status: int) -> None:
    """4xx raises at once, with what the server says."""
    error = failure(server, server.fails(status, "model 'x' not found"))
    assert type(error) is ModelRejected
    assert f"({status}): model 'x' not found" in str(error)
    assert ("the provider's key in the environment" in str(error)) == (status in {401, 403})
    assert len(server.requests) == 1


def test_redirects_are_not_followed(server: LlmServer) -> None:
    """Nothing is sent to where a server points; the person decides."""
    for status in (301, 302, 307, 308):
        error = failure(server, moved("/elsewhere", status))
        assert type(error) is ModelRejected
        assert f"({status})" in str(error)
        assert "llm.base_url" in str(error)
    assert set(server.loopback.paths()) == {PATHS[server.api]}
    assert len(server.requests) == 4


def test_another_success_is_no_answer(openai: LlmServer) -> None:
    """204 has nothing to read."""
    assert type(failure(openai, Answer(b"", 204))) is BadAnswer


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>SECRET</html>", b'{"error": 3, "x": "SECRET"}', b'{"x": "SECRET"}', b"[" * 9999],
)
def test_an_error_that_cannot_be_read_is_not_quoted(openai: LlmServer, body: bytes) -> None:
    """Only the field that holds the message is quoted, never a page."""
    error = failure(openai, answered(body, 400))
    assert str(error).endswith("the server rejects the request (400)")


def test_a_long_message_is_cut(openai: LlmServer) -> None:
    """What a server says of an error is bounded, in one line, and without control characters."""
    message = str(failure(openai, openai.fails(400, "a\x1b[2J\r\n" + "x" * 10_000)))
    assert message.isprintable()
    assert message.endswith("...")
    assert len(message) < 500
    assert str(failure(openai, openai.fails(400, "x" * 100_000))).endswith("(400)")


def test_an_endless_body_is_left(server: LlmServer) -> None:
    """At 8 MiB reading ends, whether the answer is whole or in pieces, or an error."""
    for status in (200, 400):

        def endless(handler: Handler, status: int = status) -> None:
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n\r\n"
            try:
                handler.wfile.write(head.encode())
                while not handler.server.stopping.is_set():
                    handler.wfile.write(b" " * 65_536)
            except OSError:
                return

        error = failure(server, endless)
        if status == 200:
            assert str(error).endswith("the answer is over 8 MiB")
        else:
            assert type(error) is ModelRejected


def test_a_silent_server_is_given_up(openai: LlmServer) -> None:
    """Each try waits `timeout_s`, and all of them together no longer than they may."""

    def silent(handler: Handler) -> None:
        handler.server.stopping.wait(240)

    openai.script = [silent]
    began = time.monotonic()
    with pytest.raises(
        ModelUnavailable, match=r"sent nothing for 0\.3 s|no complete answer within 0\.9 s"
    ):
        openai.provider(timing=real_time(openai), timeout_s=0.3, tries=3).complete("S", "U")
    assert time.monotonic() - began < 60
    assert len(openai.requests) in (1, 2, 3)


@pytest.mark.parametrize(
    "head",
    [HEAD + b"Content-Length: 100000\r\n\r\n", HEAD + b"\r\n", b"HTTP/1.1 200 OK\r\nX: "],
    ids=["length", "until-closed", "headers"],
)
def test_a_dripping_server_ends_at_the_deadline(openai: LlmServer, head: bytes) -> None:
    """A byte now and then keeps no question alive, in the head or in the body."""
    openai.script = [dripping(head)]
    began = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"no complete answer within 1\.6 s"):
        openai.provider(timing=real_time(openai), timeout_s=0.8, tries=2).complete("S", "U")
    assert 0.5 < time.monotonic() - began < 60
    assert len(openai.requests) == 1


def test_no_thread_stays_behind(openai: LlmServer) -> None:
    """What watches a connection ends with it, and not at the deadline."""
    openai.script = [openai.says("ok")]
    openai.provider().complete("S", "U")
    for watch in [one for one in threading.enumerate() if isinstance(one, threading.Timer)]:
        watch.join(5)
        assert not watch.is_alive()


@pytest.mark.parametrize(
    "answer",
    [
        reset,
        raw(b""),
        raw(b"SECRET\r\n\r\n"),
        raw(HEAD + b"Content-Length: 100\r\n\r\n{"),
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"),
    ],
)
def test_a_broken_connection_is_tried_again(server: LlmServer, answer: Route) -> None:
    """What is not HTTP, or breaks off, is asked for anew; an error quotes nothing of it."""
    server.script = [answer, server.says("ok")]
    assert server.provider().complete("S", "U") == "ok"
    error = failure(server, answer)
    assert type(error) is ModelUnavailable
    assert "SECRET" not in str(error)
    assert len(server.requests) == 5


def test_nobody_listening_is_unavailable() -> None:
    """A closed port may open later."""
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        said = LlmSettings(
            provider="ollama", model="m", base_url=f"http://{HOST}:{taken.getsockname()[1]}"
        )
        naps = Naps(clock := FakeClock())
        provider = make_provider(said, {}, Timing(clock=clock, sleep=naps))
        with pytest.raises(ModelUnavailable, match="cannot be reached; check that it runs"):
            provider.complete("S", "U")
    assert len(naps.slept_s) == 2


def test_proxies_of_the_environment_are_passed_by(
    openai: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions go straight to the server, whatever HTTP_PROXY says."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    openai.script = [openai.says("ok")]
    assert openai.provider().complete("S", "U") == "ok"


def told(error: BaseException | None) -> Iterator[str]:
    """All that an error, and every error behind it, says of itself."""
    while error is not None:
        yield str(error)
        yield repr(error)
        yield repr(vars(error))
        yield "".join(traceback.format_exception(error))
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_no_error_log_or_repr_holds_the_key(api: str, caplog: pytest.LogCaptureFixture) -> None:
    """A server that echoes the key back, in any way, gets it into nothing that people read.

    The client's own logs would quote headers and status lines, so it has to be silent.
    """
    caplog.set_level(logging.DEBUG)
    echo = f"wrong key {KEY}, or {KEY[:-1]}\n{KEY}" + "x" * 270 + KEY
    with llm_serving(api) as server:
        provider = server.provider()
        answers = [server.fails(status, echo) for status in (400, 401, 429, 500)]
        answers += [server.fails(400, "x" * 290 + KEY), raw(KEY.encode()), reset]
        answers += [Answer(KEY.encode(), headers={"Content-Type": f"text/{KEY}"})]
        answers += [answered(KEY.encode(), 200, {"X": KEY})]
        answers += [raw(f"HTTP/1.1 500 {KEY}\r\n\r\n".encode())]
        if api == "openai":
            refusal = {"message": {"refusal": echo}, "finish_reason": "stop"}
            answers.append(answered({"choices": [refusal]}))
        for answer in answers:
            server.script = [answer]
            with pytest.raises(LlmError) as caught:
                provider.complete("S", "U")
            assert KEY not in "\n".join(told(caught.value))
        assert all(KEY in str(request.headers) for request in server.requests)
    assert caplog.messages == []
    inside = [provider, *vars(provider).values()]
    inside += [part for one in inside if hasattr(one, "__dict__") for part in vars(one).values()]
    assert KEY not in "".join(map(repr, inside))
