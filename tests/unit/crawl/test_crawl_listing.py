"""What a site lists of its pages: sitemaps and llms.txt, also wrong and hostile ones."""

import gzip
from collections.abc import Iterator

import pytest
from fakes import FakeClock
from loopback import HOST, Answer, LoopbackServer, serving

from kb.errors import Transient
from kb.intake.crawl.listing import SiteListing, read_listing
from kb.intake.crawl.scope import SiteScope
from kb.intake.sync.fetch import Fetcher, FetchSettings
from kb.model.site import SiteOptions

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


def listing(server: LoopbackServer, path: str = "/docs/") -> SiteListing:
    fetcher = Fetcher(FetchSettings(allow=(HOST,)), FakeClock())
    return read_listing(fetcher, SiteScope(server.url(path), SiteOptions()))


def sitemap(server: LoopbackServer, *paths: str, lastmod: str = "2024-03-01") -> bytes:
    rows = (
        f"<url><loc> {server.url(path)} </loc><lastmod>{lastmod}</lastmod><x>1</x></url>"
        for path in paths
    )
    return f'<?xml version="1.0"?><urlset {NS}>{"".join(rows)}</urlset>'.encode()


def test_sitemaps_are_looked_for_at_their_usual_places(server: LoopbackServer) -> None:
    """In the start's folder and at the root; only pages in scope count."""
    server.routes["/docs/sitemap.xml"] = Answer(sitemap(server, "/docs/a", "/blog/b"))
    server.routes["/sitemap.xml"] = Answer(sitemap(server, "/docs/c", lastmod=""))
    said = listing(server)
    assert said.pages == {server.url("/docs/a"): "2024-03-01", server.url("/docs/c"): ""}
    assert said.problems == ()


def test_those_that_robots_txt_names_count(server: LoopbackServer) -> None:
    """An index leads to others, packed ones too, each read once; not to other hosts."""
    server.routes["/robots.txt"] = Answer(
        f"Sitemap: {server.url('/index.xml')}\nSitemap: http://127.0.0.2:9/x.xml".encode()
    )
    places = ("/index.xml", "/one.xml.gz", "/two.xml", "/two.xml", "/three.txt", "/gone.xml")
    rows = "".join(f"<sitemap><loc>{server.url(path)}</loc></sitemap>" for path in places)
    server.routes["/index.xml"] = Answer(f"<sitemapindex {NS}>{rows}</sitemapindex>".encode())
    server.routes["/one.xml.gz"] = Answer(gzip.compress(sitemap(server, "/docs/1")))
    server.routes["/two.xml"] = Answer(sitemap(server, "/docs/2"))
    server.routes["/three.txt"] = Answer(f"{server.url('/docs/3')}\nnot an address\n".encode())
    said = listing(server)
    assert set(said.pages) == {server.url(f"/docs/{number}") for number in (1, 2, 3)}
    assert [place for place, _ in said.problems] == [server.url("/gone.xml")]
    assert server.paths().count("/two.xml") == 1
    assert "/sitemap.xml" not in server.paths()


@pytest.mark.parametrize(
    "data",
    [
        (
            b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc>'
            b"</url></urlset>"
        ),
        b'<!DOCTYPE urlset SYSTEM "file:///etc/passwd"><urlset/>',
        b"<urlset><url><loc>http",
        b"<urlset>" + b"<url>" * 5_000,
        b"\x1f\x8bnot gzip",
        gzip.compress(b"<urlset>" + b" " * (33 << 20)),
        b"<html>all paths say this</html>",
        b"\x00\x01\x02",
    ],
)
def test_a_sitemap_that_cannot_be_read_is_said(server: LoopbackServer, data: bytes) -> None:
    """Entities are not expanded, nothing outside is read, and nothing unpacks without end."""
    server.routes["/robots.txt"] = Answer(f"Sitemap: {server.url('/s.xml')}".encode())
    server.routes["/s.xml"] = Answer(data)
    said = listing(server)
    assert said.pages == {}
    assert [place for place, _ in said.problems] == [server.url("/s.xml")]


def test_llms_txt_names_pages(server: LoopbackServer) -> None:
    """By links of markdown and by addresses; a page that answers in its place is none."""
    said = f"# D\n- [A](a.md): x\n- [B](</docs/b>)\n{server.url('/docs/c')}\n- [no](https://x.example/)"
    server.routes["/docs/llms.txt"] = Answer(said.encode())
    assert listing(server).linked == tuple(server.url(f"/docs/{n}") for n in ("a.md", "b", "c"))
    server.routes["/docs/llms.txt"] = Answer(b'<!doctype html><a href="(x)">')
    assert listing(server).linked == ()


def test_a_site_whose_robots_txt_fails_is_not_read(server: LoopbackServer) -> None:
    """Its wishes are not known, so it waits."""
    server.routes["/robots.txt"] = Answer(b"", 503)
    with pytest.raises(Transient):
        listing(server)
