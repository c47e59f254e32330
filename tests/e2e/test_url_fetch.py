"""A page's life: fetched, unchanged, changed, moved, gone; over real connections."""

from collections.abc import Iterator

import pytest
from loopback import HOST, Answer, LoopbackServer, conditional, moved, serving

from kb.errors import Gone, Refused, Transient
from kb.intake.sync.fetch import Fetcher, FetchSettings
from kb.intake.sync.url import PageChanged, PageUnchanged, UrlSyncer, url_lsid
from kb.model.clock import SystemClock
from kb.model.ids import sha256_hex

FIRST = b"<!doctype html><title>One</title><p>The first text."
SECOND = b"<!doctype html><title>Two</title><p>The second text."
MONDAY = "Mon, 13 Nov 2023 08:00:00 GMT"
TUESDAY = "Tue, 14 Nov 2023 08:00:00 GMT"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


@pytest.fixture
def syncer() -> UrlSyncer:
    return UrlSyncer(Fetcher(FetchSettings(allow=(HOST,)), SystemClock()))


@pytest.mark.parametrize(
    ("first", "cursor", "second", "next_cursor"),
    [
        ({"etag": '"1"'}, 'etag:"1"', {"etag": 'W/"2"'}, 'etag:W/"2"'),
        (
            {"last_modified": MONDAY},
            f"lastmod:{MONDAY}",
            {"last_modified": TUESDAY},
            f"lastmod:{TUESDAY}",
        ),
        (
            {"etag": '"1"', "last_modified": MONDAY},
            'etag:"1"',
            {"last_modified": TUESDAY},
            f"lastmod:{TUESDAY}",
        ),
    ],
)
def test_a_page_is_asked_for_by_what_the_server_gave(
    first: dict[str, str],
    cursor: str,
    second: dict[str, str],
    next_cursor: str,
    server: LoopbackServer,
    syncer: UrlSyncer,
) -> None:
    """With a validator an unchanged page is not sent again, and a changed one is."""
    url = server.url("/docs/page.html?v=1")
    server.routes["/docs/page.html?v=1"] = conditional(FIRST, **first)
    new = syncer.check(url, "", None)
    assert isinstance(new, PageChanged)
    assert (new.data, new.name, new.cursor) == (FIRST, "page.html", cursor)
    assert (new.mime, new.raw_sha256) == ("text/html", sha256_hex(FIRST))
    assert syncer.check(url, new.cursor, new.raw_sha256) == PageUnchanged(cursor=cursor)
    asked = server.requests[-1].headers
    assert (asked["If-None-Match"] or asked["If-Modified-Since"]) == cursor.partition(":")[2]
    server.routes["/docs/page.html?v=1"] = conditional(SECOND, **second)
    changed = syncer.check(url, new.cursor, new.raw_sha256)
    assert isinstance(changed, PageChanged)
    assert (changed.data, changed.cursor) == (SECOND, next_cursor)


def test_a_page_without_validators_is_compared(server: LoopbackServer, syncer: UrlSyncer) -> None:
    """Where the server gives nothing to ask with, the bytes decide."""
    server.routes["/"] = Answer(FIRST)
    new = syncer.check(server.url("/"), "", None)
    assert isinstance(new, PageChanged)
    assert new.cursor == f"contenthash:{sha256_hex(FIRST)}"
    assert new.name == HOST
    same = syncer.check(server.url("/"), new.cursor, new.raw_sha256)
    assert same == PageUnchanged(cursor=new.cursor)
    server.routes["/"] = Answer(SECOND)
    assert isinstance(syncer.check(server.url("/"), new.cursor, new.raw_sha256), PageChanged)


def test_the_same_bytes_under_a_new_validator_are_unchanged(
    server: LoopbackServer, syncer: UrlSyncer
) -> None:
    """A server that stamps the same page anew costs a transfer, and the cursor follows."""
    server.routes["/"] = conditional(FIRST, etag='"2"')
    same = syncer.check(server.url("/"), 'etag:"1"', sha256_hex(FIRST))
    assert same == PageUnchanged(cursor='etag:"2"')


def test_a_cursor_follows_what_304_says(server: LoopbackServer, syncer: UrlSyncer) -> None:
    """A validator that comes with "not modified" is the one to ask with next; else the old one."""
    server.routes["/"] = Answer(b"", 304, {"ETag": '"2"'})
    known = sha256_hex(FIRST)
    assert syncer.check(server.url("/"), 'etag:"1"', known) == PageUnchanged(cursor='etag:"2"')
    server.routes["/"] = Answer(b"", 304)
    assert syncer.check(server.url("/"), 'etag:"1"', known) == PageUnchanged(cursor='etag:"1"')


@pytest.mark.parametrize(
    "cursor", ["", "etag:", "etag:a\r\nX: y", "lastmod:", "nonsense", "contenthash:x", 'etag:"1"']
)
def test_any_cursor_gives_the_right_answer(
    cursor: str, server: LoopbackServer, syncer: UrlSyncer
) -> None:
    """A cursor that is lost, damaged or useless costs a transfer and nothing else."""
    server.routes["/"] = conditional(SECOND, etag='"2"')
    known = syncer.check(server.url("/"), cursor, sha256_hex(FIRST))
    assert isinstance(known, PageChanged)
    assert known.data == SECOND


def test_a_page_whose_bytes_are_lost_is_fetched(server: LoopbackServer, syncer: UrlSyncer) -> None:
    """Without known bytes the page is asked for whole, whatever the cursor."""
    server.routes["/"] = conditional(FIRST, etag='"1"')
    assert isinstance(syncer.check(server.url("/"), 'etag:"1"', None), PageChanged)


def test_a_page_that_moved_is_found(server: LoopbackServer, syncer: UrlSyncer) -> None:
    """The new place is named, the old one still answers for it, also with 304."""
    server.routes["/old"] = moved("/new.md", 301)
    server.routes["/new.md"] = conditional(b"# Text", etag='"1"')
    new = syncer.check(server.url("/old"), "", None)
    assert isinstance(new, PageChanged)
    assert (new.final_url, new.permanent_url) == (server.url("/new.md"), server.url("/new.md"))
    assert (new.name, new.mime) == ("new.md", "text/markdown")
    assert isinstance(syncer.check(server.url("/old"), new.cursor, new.raw_sha256), PageUnchanged)


def test_failures_come_through(server: LoopbackServer, syncer: UrlSyncer) -> None:
    """A page that is gone, failing or forbidden is an error, never a change."""
    known = sha256_hex(FIRST)
    server.routes["/gone"] = Answer(b"", 410)
    server.routes["/failing"] = Answer(b"", 503)
    server.routes["/away"] = moved("http://169.254.169.254/")
    for path, kind in (("/gone", Gone), ("/failing", Transient), ("/away", Refused)):
        with pytest.raises(kind):
            syncer.check(server.url(path), "", known)


def test_the_name_of_a_page_is_no_path(server: LoopbackServer, syncer: UrlSyncer) -> None:
    """Escapes in an address cannot make a name that leads elsewhere."""
    for path in ("/..%2f..%2fetc%2fpasswd", "/a%00b", "/a%0Ab"):
        server.routes[path] = Answer(FIRST)
        new = syncer.check(server.url(path), "", None)
        assert isinstance(new, PageChanged)
        assert new.name == path[1:]
        assert url_lsid(server.url(path)).startswith("url:http://127.0.0.1:")
