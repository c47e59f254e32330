"""What a page is called, what it holds and when it is asked for again."""

import gzip

import pytest

from kb.errors import Refused
from kb.intake.sync.url import next_try_ms, page_mime, url_lsid

MINUTE_MS = 60_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("url", "lsid"),
    [
        ("HTTP://Example.ORG", "url:http://example.org/"),
        ("http://example.org:80/#part", "url:http://example.org/"),
        ("https://example.org:443?q", "url:https://example.org/?q"),
        ("https://example.org:80/", "url:https://example.org:80/"),
        ("http://example.org./a", "url:http://example.org/a"),
        ("http://example.org/%7euser/%e4%2F%2e", "url:http://example.org/~user/%E4%2F%2E"),
        ("http://example.org/a/../b/./c", "url:http://example.org/b/c"),
        ("http://example.org/ü?ü=%c3%bc", "url:http://example.org/%C3%BC?%C3%BC=%C3%BC"),
        ("http://example.org/100%", "url:http://example.org/100%25"),
        ("http://bücher.example/", "url:http://xn--bcher-kva.example/"),
        ("http://[2001:DB8:0::1]:80/", "url:http://[2001:db8::1]/"),
        ("http://example.org/A?B=C&b=c", "url:http://example.org/A?B=C&b=c"),
    ],
)
def test_spellings_of_one_address_are_one_source(url: str, lsid: str) -> None:
    """Case, default ports, fragments and needless escapes make no second source."""
    assert url_lsid(url) == lsid
    assert url_lsid(lsid.removeprefix("url:")) == lsid


def test_what_is_no_address_has_no_id() -> None:
    """A source that could never be fetched is refused when it is named."""
    with pytest.raises(Refused):
        url_lsid("file:///etc/passwd")


PDF = b"%PDF-1.7\n"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
MARKUP = b"<!doctype html><title>t</title>"


@pytest.mark.parametrize(
    ("data", "declared", "name", "mime"),
    [
        (MARKUP, "text/html", "index.php", "text/html"),
        (b"<p>a fragment", "text/html", "", "text/html"),
        (MARKUP, "application/xhtml+xml", "x", "text/html"),
        (PDF, "application/pdf", "x", "application/pdf"),
        (b"# t", "text/markdown", "x", "text/markdown"),
        (b"# t", "text/plain", "README.md", "text/markdown"),
        (b"words", "text/plain", "x", "text/plain"),
        (MARKUP, "text/plain", "page.html", "text/plain"),
        (PDF, "text/plain", "x", "application/pdf"),
        (PDF + bytes(range(256)), "text/html", "x", "application/pdf"),
        (PNG, "text/html", "x", "image/png"),
        (PNG, "text/markdown", "x.md", "image/png"),
        (PNG, "image/png", "x", "image/png"),
        (gzip.compress(b"x", mtime=0), "application/gzip", "x.gz", "application/gzip"),
        (MARKUP, None, "", "text/html"),
        (PDF, "application/octet-stream", "paper", "application/pdf"),
        (b"# t", "application/octet-stream", "a.md", "text/markdown"),
        (b"{}", "application/json", "a", "text/plain"),
    ],
)
def test_the_type_is_the_servers_unless_the_bytes_say_otherwise(
    data: bytes, declared: str | None, name: str, mime: str
) -> None:
    """Declared formats that can be read are believed; text is not believed of other bytes."""
    assert page_mime(data, declared, name) == mime


def test_tries_grow_rarer() -> None:
    """A minute, doubled with each failure, a day at most, whatever the number of failures."""
    waits = [next_try_ms(failures, None, 5) - 5 for failures in range(1, 14)]
    assert waits[:4] == [MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS, 8 * MINUTE_MS]
    assert waits[-2:] == [DAY_MS, DAY_MS]
    assert waits == sorted(waits)
    assert next_try_ms(10**9, None, 0) == DAY_MS
    assert next_try_ms(0, None, 0) == MINUTE_MS


def test_the_server_can_ask_for_more_time() -> None:
    """Retry-After is a least wait: it lengthens ours up to a day, and never shortens it."""
    assert next_try_ms(1, 600, 0) == 600_000
    assert next_try_ms(5, 1, 0) == 16 * MINUTE_MS
    assert next_try_ms(1, 10**12, 0) == DAY_MS
    assert next_try_ms(1, 0, 0) == MINUTE_MS
