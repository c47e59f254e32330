"""What the fetcher makes of what servers send, from a real one on loopback."""

# Long because every kind of answer a server can give is one test.

import socket
import time
from collections.abc import Iterator

import pytest
from fakes import FakeClock
from loopback import (
    HOST,
    Answer,
    Handler,
    LoopbackServer,
    Route,
    conditional,
    dripping,
    moved,
    raw,
    reset,
    serving,
)

from kb import __version__
from kb.errors import (
    AuthFailed,
    Gone,
    Permanent,
    RateLimited,
    Refused,
    SourceError,
    Transient,
)
from kb.intake.sync.fetch import Fetcher, FetchSettings, retry_after_s
from kb.model.clock import SystemClock

NOW_MS = 1_700_000_000_000  # Tue, 14 Nov 2023 22:13:20 GMT
CAP = 1 << 20


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        running.routes["/"] = Answer(b"a page")
        yield running


def fetcher(**settings) -> Fetcher:
    return Fetcher(FetchSettings(allow=(HOST,), bytes_max=CAP, **settings), SystemClock())


def failure(server: LoopbackServer, route: Route, **settings) -> SourceError:
    """The error that a page with this answer raises."""
    server.routes["/page"] = route
    with pytest.raises(SourceError) as caught:
        fetcher(**settings).get(server.url("/page"))
    assert str(caught.value).startswith(server.url("/page") + ": ")
    assert "SECRET" not in str(caught.value)
    return caught.value


def test_a_page_comes_whole(server: LoopbackServer) -> None:
    """Bytes, type, charset and validators are as the server gave them."""
    headers = {
        "Content-Type": 'Text/HTML; x=y; Charset="UTF-8"',
        "ETag": 'W/"1"',
        "Last-Modified": "Tue, 14 Nov 2023 22:13:20 GMT",
    }
    server.routes["/a%20b?q=1"] = Answer(b"<p>hello", headers=headers)
    url = server.url("/a%20b?q=1#part")
    fetched = fetcher().get(url)
    assert (fetched.status, fetched.data) == ("ok", b"<p>hello")
    assert (fetched.url, fetched.final_url) == (url, server.url("/a%20b?q=1"))
    assert (fetched.mime, fetched.charset) == ("text/html", "utf-8")
    assert (fetched.etag, fetched.last_modified) == ('W/"1"', headers["Last-Modified"])
    assert fetched.permanent_url is None


def test_a_request_says_who_asks_and_no_more(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cookie, login or referrer is sent; the environment's proxies and logins are not used."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    server.routes["/cookie"] = Answer(b"", 302, {"Location": "/", "Set-Cookie": "a=b; Path=/"})
    one = fetcher()
    one.get(server.url("/cookie"))
    one.get(server.url("/"))
    assert server.paths() == ["/cookie", "/", "/"]
    for request in server.requests:
        assert request.headers["User-Agent"] == f"kb/{__version__}"
        assert sorted(map(str.lower, request.headers)) == [
            "accept", "accept-encoding", "connection", "host", "user-agent",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (201, Permanent), (204, Permanent), (206, Permanent), (300, Permanent), (304, Permanent),
        (400, Permanent), (401, AuthFailed), (402, Permanent), (403, AuthFailed), (404, Gone),
        (405, Permanent), (410, Gone), (418, Permanent), (429, RateLimited), (451, Permanent),
        (500, Transient), (502, Transient), (503, Transient), (599, Transient),
    ],
)  # fmt: skip
def test_each_status_has_its_error(
    status: int, kind: type[SourceError], server: LoopbackServer
) -> None:
    """The status decides the error, which names it and quotes nothing of the body."""
    body = b"" if status in {204, 304} else b"SECRET"
    error = failure(server, Answer(body, status))
    assert type(error) is kind
    assert f"({status})" in error.reason
    assert server.paths() == ["/page"]


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [("120", 120), ("0", 0), ("9" * 18, 86_400), ("9" * 19, None), ("-5", None), ("soon", None)],
)
def test_retry_after_is_read(value: str, wait_s: int | None, server: LoopbackServer) -> None:
    """Seconds to wait come with the error, a day at most; what cannot be read says nothing."""
    error = failure(server, Answer(b"SECRET", 429, {"Retry-After": value}))
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == wait_s


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("Tue, 14 Nov 2023 22:15:20 GMT", 120),
        ("Tuesday, 14-Nov-23 22:15:20 GMT", 120),
        ("Tue, 14 Nov 2023 22:15:20 -0000", 120),
        ("Tue, 14 Nov 2023 21:00:00 GMT", 0),
        ("Tue, 14 Nov 2034 22:15:20 GMT", 86_400),
        ("Tue, 99 Nov 2023 22:15:20 GMT", None),
        ("Tue, 14 Nov 99999 22:15:20 GMT", None),
        ("", None),
        (" ", None),
        ("x" * 10_000, None),
    ],
)
def test_retry_after_may_be_a_date(value: str, wait_s: int | None) -> None:
    """A date is turned into seconds from now, never below none nor over a day."""
    assert retry_after_s(value, NOW_MS) == wait_s


def test_a_date_to_retry_after_is_measured_by_the_given_clock(server: LoopbackServer) -> None:
    """The wall clock that the fetcher was given turns the date into seconds."""
    server.routes["/"] = Answer(b"", 429, {"Retry-After": "Tue, 14 Nov 2023 22:14:20 GMT"})
    with pytest.raises(RateLimited) as caught:
        Fetcher(FetchSettings(allow=(HOST,)), FakeClock(NOW_MS)).get(server.url("/"))
    assert caught.value.retry_after_s == 60


def test_redirects_are_followed(server: LoopbackServer) -> None:
    """A chain leads to its page; relative, absolute and schemeless references are understood."""
    server.routes["/a/1"] = moved("2?x#f", 301)
    server.routes["/a/2?x"] = moved(f"//{HOST}:{server.port}/a/3", 308)
    server.routes["/a/3"] = moved(server.url("/"), 301)
    fetched = fetcher().get(server.url("/a/1"))
    assert (fetched.data, fetched.final_url) == (b"a page", server.url("/"))
    assert fetched.permanent_url == server.url("/")
    assert server.paths() == ["/a/1", "/a/2?x", "/a/3", "/"]


def test_one_temporary_redirect_makes_the_move_temporary(server: LoopbackServer) -> None:
    """Only a chain that is permanent throughout names a new home."""
    for first, second in ((302, 301), (301, 307), (303, 308)):
        server.routes["/1"] = moved("/2", first)
        server.routes["/2"] = moved("/", second)
        assert fetcher().get(server.url("/1")).permanent_url is None


def test_redirects_that_do_not_end_are_refused(server: LoopbackServer) -> None:
    """Neither a circle nor an endless chain goes further than the hops allowed."""
    server.routes["/1"] = moved("/2")
    server.routes["/2"] = moved("/1#again")
    with pytest.raises(Refused, match="circle"):
        fetcher().get(server.url("/1"))
    assert server.paths() == ["/1", "/2"]
    server.requests.clear()
    for number in range(10):
        server.routes[f"/n{number}"] = moved(f"/n{number + 1}")
    with pytest.raises(Refused, match="more than 3 redirects"):
        fetcher(hops_max=3).get(server.url("/n0"))
    assert server.paths() == ["/n0", "/n1", "/n2", "/n3"]


def test_an_error_after_a_redirect_names_both_addresses(server: LoopbackServer) -> None:
    """The error is about the address asked for, and says which page failed."""
    server.routes["/limited"] = Answer(b"SECRET", 429, {"Retry-After": "7"})
    error = failure(server, moved("/limited"))
    assert error.reason.startswith(f"redirected to {server.url('/limited')}: ")
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == 7


def test_a_redirect_without_a_place_is_no_page(server: LoopbackServer) -> None:
    """A 302 that names nothing is an error, not an empty page."""
    assert type(failure(server, Answer(b"SECRET", 302))) is Permanent


def test_a_known_page_is_asked_for_by_its_validators(server: LoopbackServer) -> None:
    """The ETag goes first; 304 brings no bytes."""
    server.routes["/e"] = conditional(b"text", etag='"1"')
    server.routes["/d"] = conditional(b"text", last_modified="Tue, 14 Nov 2023 22:13:20 GMT")
    assert fetcher().get(server.url("/e"), etag='"1"', last_modified="x").status == "not_modified"
    assert server.requests[-1].headers["If-Modified-Since"] is None
    date = "Tue, 14 Nov 2023 22:13:20 GMT"
    same = fetcher().get(server.url("/d"), last_modified=date)
    assert (same.status, same.data) == ("not_modified", b"")
    assert fetcher().get(server.url("/e"), etag='"2"').data == b"text"


def test_a_date_is_not_asked_of_another_page(server: LoopbackServer) -> None:
    """After a redirect only the ETag is sent on: an older page must not pass for the same."""
    server.routes["/old"] = moved("/")
    fetcher().get(server.url("/old"), last_modified="Tue, 14 Nov 2023 22:13:20 GMT")
    fetcher().get(server.url("/old"), etag='"1"')
    sent = [(r.headers["If-Modified-Since"], r.headers["If-None-Match"]) for r in server.requests]
    date_only, etag_only = ("Tue, 14 Nov 2023 22:13:20 GMT", None), (None, '"1"')
    assert sent == [date_only, (None, None), etag_only, etag_only]


@pytest.mark.parametrize("etag", ['"a\r\nX-Evil: 1"', "é", "a\x00b", "x" * 5_000, "", " "])
def test_a_validator_cannot_add_headers(etag: str, server: LoopbackServer) -> None:
    """A validator that cannot be sent back as it came is left out."""
    assert fetcher().get(server.url("/"), etag=etag).data == b"a page"
    headers = server.requests[0].headers
    assert headers["X-Evil"] is None
    assert headers["If-None-Match"] is None


def test_a_slow_body_ends_at_the_deadline(server: LoopbackServer) -> None:
    """A byte now and then does not keep a call alive."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    began = time.monotonic()
    error = failure(server, dripping(head), total_s=0.3)
    assert time.monotonic() - began < 60
    assert isinstance(error, Transient)
    assert "not finished within 0.3 s" in error.reason


def test_a_slow_head_ends_at_the_deadline(server: LoopbackServer) -> None:
    """Nor do headers that never end."""
    error = failure(server, dripping(b"HTTP/1.1 200 OK\r\nX: "), total_s=0.3)
    assert "not finished within 0.3 s" in error.reason


def test_a_silent_server_ends_at_the_deadline(server: LoopbackServer) -> None:
    """Nor does a server that says nothing at all."""

    def silent(handler: Handler) -> None:
        handler.server.stopping.wait(240)

    assert "not finished within 0.2 s" in failure(server, silent, total_s=0.2).reason


def test_the_deadline_holds_over_all_redirects(server: LoopbackServer) -> None:
    """Each hop in time, all of them too late."""

    def hop(number: int) -> Route:
        def answer(handler: Handler) -> None:
            handler.server.stopping.wait(0.15)
            text = f"HTTP/1.1 302 Found\r\nLocation: /{number + 1}\r\nContent-Length: 0\r\n\r\n"
            handler.wfile.write(text.encode())

        return answer

    for number in range(20):
        server.routes[f"/{number}"] = hop(number)
    with pytest.raises(Transient, match=r"not finished within 0\.4 s"):
        fetcher(total_s=0.4, hops_max=20).get(server.url("/0"))
    assert len(server.requests) <= 4


def test_a_slow_lookup_ends_at_the_deadline(server: LoopbackServer) -> None:
    """A name server that does not answer takes no longer than the call may."""

    def slow(host: str, port: int) -> tuple[str, ...]:
        server.stopping.wait(240)
        return ()

    late = Fetcher(FetchSettings(total_s=0.2), SystemClock(), slow)
    with pytest.raises(Transient, match="could not be looked up"):
        late.get("http://slow.example/")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"SECRET garbage\r\n\r\n",
        b"HTTP/1.1 SECRET\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSECRET\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: SECRET\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSECRET",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nSECR",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"SECRET" * 50_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: SECRET\r\n" * 30_000 + b"\r\n",
        b"\x16\x03\x01\x00SECRET",
    ],
)
def test_what_is_not_http_is_transient(data: bytes, server: LoopbackServer) -> None:
    """Garbage, contradictions, endless heads and bodies cut short are errors, never a page."""
    assert type(failure(server, raw(data))) is Transient


def test_a_reset_is_transient(server: LoopbackServer) -> None:
    """A connection that breaks off in the body gives no page."""
    assert type(failure(server, reset)) is Transient


def test_nobody_listening_is_transient() -> None:
    """A closed port may open later."""
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        with pytest.raises(Transient, match="cannot be reached"):
            fetcher().get(f"http://{HOST}:{taken.getsockname()[1]}/")


@pytest.mark.parametrize("said", ["", "nonsense", "a/b/c", "text/html\x80", ";charset=", "/"])
def test_a_type_that_cannot_be_read_is_none(said: str, server: LoopbackServer) -> None:
    """A Content-Type that means nothing leaves the bytes to speak."""
    server.routes["/t"] = Answer(b"x", headers={"Content-Type": said})
    fetched = fetcher().get(server.url("/t"))
    assert (fetched.mime, fetched.charset) == (None, None)
