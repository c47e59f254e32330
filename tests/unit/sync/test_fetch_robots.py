"""Sites that ask not to be crawled are not, where links are followed."""

from collections.abc import Iterator

import pytest
from fakes import FakeClock
from loopback import HOST, Answer, LoopbackServer, moved, serving

from kb.errors import Refused, Transient
from kb.intake.sync.fetch import Fetcher, FetchSettings

RULES = b"\xef\xbb\xbfUser-agent: *\nDisallow: /private\n\nUser-agent: kb\nDisallow: /not-kb\n"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        for path in ("/open", "/private/x", "/not-kb"):
            running.routes[path] = Answer(b"a page")
        yield running


def fetcher(clock: FakeClock | None = None, **settings) -> Fetcher:
    return Fetcher(FetchSettings(allow=(HOST,), **settings), clock or FakeClock())


def test_robots_txt_is_obeyed_where_links_are_followed(server: LoopbackServer) -> None:
    """Rules for kb come before rules for all; the page itself is not asked for."""
    server.routes["/robots.txt"] = Answer(RULES)
    one = fetcher()
    with pytest.raises(Refused, match="forbids programs to fetch"):
        one.get(server.url("/not-kb"), follow_robots=True)
    assert one.get(server.url("/private/x"), follow_robots=True).data == b"a page"
    assert server.paths() == ["/robots.txt", "/private/x"]
    other = fetcher(user_agent="other/1")
    with pytest.raises(Refused, match="forbids programs to fetch"):
        other.get(server.url("/private/x"), follow_robots=True)


def test_robots_txt_is_not_asked_for_what_a_person_named(server: LoopbackServer) -> None:
    """An address that a person gave is fetched, as it is when the settings say so."""
    server.routes["/robots.txt"] = Answer(RULES)
    assert fetcher().get(server.url("/not-kb")).data == b"a page"
    assert fetcher(robots=False).get(server.url("/not-kb"), follow_robots=True).data == b"a page"
    assert "/robots.txt" not in server.paths()


def test_robots_txt_is_read_once_a_day(server: LoopbackServer) -> None:
    """It is kept for a day, not for good."""
    server.routes["/robots.txt"] = Answer(RULES)
    clock = FakeClock()
    one = fetcher(clock)
    for _ in range(3):
        one.get(server.url("/open"), follow_robots=True)
    assert server.paths().count("/robots.txt") == 1
    clock.advance(86_400_000)
    one.get(server.url("/open"), follow_robots=True)
    assert server.paths().count("/robots.txt") == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_no_robots_txt_means_no_wishes(status: int, server: LoopbackServer) -> None:
    """A file that is not there, or not shown, forbids nothing."""
    server.routes["/robots.txt"] = Answer(RULES, status)
    assert fetcher().get(server.url("/not-kb"), follow_robots=True).data == b"a page"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"", 500),
        Answer(b"", 503),
        Answer(b"", 429),
        Answer(b"#" * 600_000),
        moved("http://169.254.169.254/robots.txt"),
        moved("/robots.txt"),
    ],
)
def test_a_robots_txt_that_fails_is_a_no_for_now(answer: Answer, server: LoopbackServer) -> None:
    """While the site's wishes cannot be read nothing is fetched; a minute later it is asked."""
    server.routes["/robots.txt"] = answer
    clock = FakeClock()
    one = fetcher(clock)
    for _ in range(2):
        with pytest.raises(Transient, match=r"robots\.txt cannot be read"):
            one.get(server.url("/open"), follow_robots=True)
    assert server.paths() == ["/robots.txt"]
    server.routes["/robots.txt"] = Answer(RULES)
    clock.advance(60_000)
    assert one.get(server.url("/open"), follow_robots=True).data == b"a page"


def test_a_redirect_asks_again(server: LoopbackServer) -> None:
    """Where a link is redirected, the wishes of the place it leads to count."""
    server.routes["/robots.txt"] = Answer(RULES)
    server.routes["/open"] = moved("/not-kb")
    with pytest.raises(Refused, match="forbids programs to fetch"):
        fetcher().get(server.url("/open"), follow_robots=True)
    assert server.paths() == ["/robots.txt", "/open"]


def test_a_private_site_is_refused_before_it_is_asked() -> None:
    """The address is checked first, so not even its robots.txt is fetched."""
    with serving() as server:
        with pytest.raises(Refused, match="not a public address"):
            Fetcher(FetchSettings(), FakeClock()).get(server.url("/"), follow_robots=True)
        assert server.connections == 0
