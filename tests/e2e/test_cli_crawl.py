"""Sites and feeds by the real commands: what they print, and how they end."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_rig import CFG, Called, Rig, assert_adds_up
from doc_site import DocPage, DocSite, text_of
from loopback import Answer, serving


@pytest.fixture
def docs_site() -> Iterator[DocSite]:
    with serving() as server:
        site = DocSite(server)
        site.fill(12)
        yield site


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, cfg=(*CFG, 'fetch.allow=["127.0.0.1"]'))


def added(rig: Rig, *args: object) -> Called:
    return rig.call("add", *args)


def test_a_site_from_dry_run_to_sync(rig: Rig, docs_site: DocSite) -> None:
    """A dry run lists pages, an add takes them, a search finds them, a sync asks again."""
    start = docs_site.url("/")
    dry = added(rig, "--crawl", start, "--dry-run")
    *listed, summary = dry.out.splitlines()
    assert sorted(listed) == sorted(docs_site.url(path) for path in docs_site.pages)
    assert summary == "would be: 12 added of 12 scanned"
    assert not (rig.home / "store").exists()
    report = added(rig, "--crawl", start, "--json")
    assert_adds_up(report.json)
    assert (report.code, report.json["added"]) == (0, 12)
    word = text_of("/chapter-0/page-3.html").split()[3]
    assert rig.found([word])[word] == ["page-3.html"]
    (source,) = rig.call("sources", "--json").json["sources"]
    assert (source["kind"], source["location"]) == ("site", start)
    docs_site.edit("/chapter-0/page-3.html", "anew")
    synced = rig.call("sync-all", "--interval-min", 0)
    assert synced.out == f"{start}: synced, 1 updated, 11 unchanged\n"
    assert added(rig, "--crawl", start).out == "12 unchanged of 12 scanned\n"


def test_a_site_that_lost_its_pages_is_held_back(rig: Rig, docs_site: DocSite) -> None:
    """Exit 6 until the deletions are accepted."""
    added(rig, "--crawl", docs_site.url("/"))
    docs_site.pages.clear()
    held = rig.call("sync-all", "--interval-min", 0)
    assert held.code == 6
    assert "has none of its pages, but 12 docs came from it; is it down?" in held.err
    assert rig.call("sync-all", "--interval-min", 0, "--accept-deletions").code == 0
    assert rig.docs() == {}


def test_a_feed_is_known_by_what_it_says(rig: Rig, docs_site: DocSite) -> None:
    """No option is needed; an entry is found, and the source is a feed."""
    entry = "<item><title>One</title><link>/chapter-0/</link></item>"
    rss = f'<?xml version="1.0"?><rss><channel>{entry}</channel></rss>'
    docs_site.routes["/news"] = Answer(rss.encode(), 200, {"Content-Type": "text/xml"})
    assert added(rig, docs_site.url("/news")).out == "1 added of 1 scanned\n"
    (source,) = rig.call("sources", "--json").json["sources"]
    assert source["kind"] == "feed"
    assert rig.call("sync-all", "--interval-min", 0).code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--crawl", "notes"), "notes is no address of a site"),
        (("--crawl", "--title", "T", "https://a.example/"), "--title is for a single source"),
        (("--include", "/a", "https://a.example/"), "are for sites; say crawl, too"),
        (
            ("--crawl", "--exclude", "https://a.example/b/*", "https://a.example/"),
            "is an address; give a path of the site, such as /docs/*",
        ),
        (("--max-pages", "0", "--crawl", "https://a.example/"), "0 is not in the range"),
    ],
)
def test_what_does_not_fit_is_refused(rig: Rig, args: tuple[str, ...], said: str) -> None:
    """One line, exit 2, and nothing is made."""
    refused = added(rig, *args)
    assert refused.code == 2
    assert said in refused.err
    assert not rig.home.exists()


def test_a_start_that_leads_elsewhere_says_where(rig: Rig, docs_site: DocSite) -> None:
    """The site of another address is not taken in its place."""
    docs_site.routes["/moved/"] = Answer(b"", 301, {"Location": "/"})
    report = added(rig, "--crawl", docs_site.url("/moved/"))
    assert report.code == 3
    assert "outside of this site; crawl that address" in report.err
    report = added(rig, "--crawl", "http://127.0.0.3/")
    assert report.code == 3
    assert "not a public address" in report.err


def test_versions_of_a_site_are_a_facet(rig: Rig, docs_site: DocSite) -> None:
    """Counted, filtered by in an option and in a query, and shown with hits."""
    for version in ("v1", "v2", "3.11"):
        docs_site.pages[f"/{version}/sails.html"] = DocPage("Sails", f"How to reef in {version}.")
        docs_site.pages["/"].links += (f"/{version}/sails.html",)
    added(rig, "--crawl", docs_site.url("/"))
    facets = rig.call("facets", "--json").json["versions"]
    assert facets == [{"value": v, "docs": 1} for v in ("3.11", "v1", "v2")]
    for args in (("--version", "V2", "reef"), ("version:v2 reef",)):
        (hit,) = rig.call("search", *args, "--json").json["hits"]
        assert (hit["source"], hit["site_version"]) == (docs_site.url("/v2/sails.html"), "v2")
    assert "  v2" in rig.call("search", "--version", "v2", "reef").out
    assert rig.call("ls", "--version", "v1", "--version", "3.11", "--json").json["total"] == 2
    assert "did you mean 'v1'" in rig.call("search", "--version", "v11", "reef").err


def test_pages_of_a_site_are_linked(rig: Rig, docs_site: DocSite) -> None:
    """As notes are: relative and absolute, over redirects and canonical addresses, no menus."""
    site, url = docs_site, docs_site.url
    texts = {
        "/one/": '<a href="../two.html#part">a</a> <a href="/three">b</a> <a href="/gone">c</a>',
        "/two.html": f'<a href="{url("/one/index.html")}">a</a> <a href="/one/?sid=1">b</a>',
        "/three/": '<a href="https://elsewhere.example/one/">a</a> <a href="/three/">self</a>',
    }
    for path, links in texts.items():
        words = f"<p>{text_of(path)}</p><main>{links}</main>"
        canonical = '<link rel="canonical" href="/one/">' if path == "/one/" else ""
        page = f"<html><head>{canonical}<title>{path}</title></head><body>{words}</body></html>"
        site.pages[path] = DocPage(path, "", raw=page.encode())
        site.pages["/"].links += (path,)
    site.pages["/one/index.html"] = site.pages["/one/"]
    site.routes["/three"] = Answer(b"", 301, {"Location": "/three/"})
    assert added(rig, "--crawl", url("/")).code == 0
    ids = {row["source"]: row["doc_id"] for row in rig.call("ls", "--json").json["docs"]}

    def shown(path: str, side: str) -> list[str]:
        rows = rig.call("show", ids[url(path)], "--json").json[side]
        return [row["source"] for row in rows]

    assert shown("/one/", "links") == [url("/two.html"), url("/three/")]
    assert shown("/two.html", "links") == [url("/one/")]
    assert shown("/three/", "links") == []
    assert shown("/one/", "backlinks") == [url("/two.html")]
    assert shown("/three/", "backlinks") == shown("/two.html", "backlinks") == [url("/one/")]
    for option, path, wanted in (
        ("--linked-to", "/three/", ["/one/"]),
        ("--links-from", "/one/", ["/three/", "/two.html"]),
    ):
        rows = rig.call("ls", option, ids[url(path)], "--json").json["docs"]
        assert sorted(row["source"] for row in rows) == [url(one) for one in wanted]
    assert "links to" in rig.call("show", ids[url("/one/")]).out


def test_a_page_that_comes_back(rig: Rig, docs_site: DocSite) -> None:
    """Is a doc again, though the page that links to it has not changed."""
    added(rig, "--crawl", docs_site.url("/"))
    path = "/chapter-0/page-3.html"
    page = docs_site.pages.pop(path)
    ident = rig.docs()["page-3.html"]["doc_id"]
    for removed in (", 1 removed", ""):
        synced = rig.call("sync-all", "--interval-min", 0)
        assert synced.out.endswith(f"synced, 11 unchanged{removed}\n")
    docs_site.pages[path] = page
    assert "1 resurrected" in rig.call("sync-all", "--interval-min", 0).out
    assert rig.docs()["page-3.html"]["doc_id"] == ident


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")
def test_scans_of_a_site_are_read(rig: Rig, docs_site: DocSite) -> None:
    """In the background, as those of a folder; two scans of one name are two docs."""
    from pdf_shapes import drawn, lines, scanned

    from kb.intake.canonicalize.pdf.render import page_picture

    for path, words in (("/a/plan.pdf", "The garden gate is green"), ("/b/plan.pdf", "An ox")):
        picture = page_picture(drawn(lines([words])), 0, "a.pdf")
        page = DocPage(path, "", raw=scanned(picture), mime="application/pdf")
        docs_site.pages[path] = page
        docs_site.pages["/"].links += (path,)
    report = added(rig, "--crawl", docs_site.url("/"), "--no-wait", "--json")
    assert (report.code, report.json["added"], report.json["ocr_waiting"]) == (0, 14, 2)
    assert rig.call("worker", "--drain").code == 0
    (hit, *_) = rig.call("search", "garden gate", "--mode", "lexical", "--json").json["hits"]
    assert (hit["source"], hit["ocr"]) == (docs_site.url("/a/plan.pdf"), True)
    assert added(rig, "--crawl", docs_site.url("/")).out == "14 unchanged of 14 scanned\n"
