"""A site's life in a home: taken in, asked again, changed, and what is no page of it."""

import pytest
from doc_site import DocPage, DocSite, text_of
from loopback import Answer, moved
from sync_home import SyncHome

from kb.intake.crawl.adders import SiteAdder
from kb.intake.crawl.options import TakeOptions
from kb.intake.ingest.changes import tombstone
from kb.intake.sync.report import AddReport
from kb.model.site import SiteOptions


def crawl(
    kept: SyncHome, site: DocSite, path: str = "/", *, dry_run: bool = False, **options: object
) -> AddReport:
    adder = SiteAdder(
        kept.app.sites(kept.parser), SiteOptions(**options), TakeOptions(dry_run=dry_run)
    )
    report = adder.add([site.url(path)])
    kept.work()
    return report


def paths(kept: SyncHome, site: DocSite) -> set[str]:
    """The paths of the active docs."""
    return {source.removeprefix(site.url("")) for source in kept.docs()}


def test_every_page_is_a_doc_and_is_asked_for_once(kept: SyncHome, docs_site: DocSite) -> None:
    """Each under its own address; the site is one source."""
    docs_site.fill(40)
    report = crawl(kept, docs_site)
    assert (report.added, report.failed) == (40, 0)
    assert paths(kept, docs_site) == set(docs_site.pages)
    assert sorted(docs_site.asked()) == sorted(docs_site.pages)
    (origin,) = kept.origins()
    assert (origin.kind, origin.location) == ("site", docs_site.url("/"))
    doc = kept.docs()[docs_site.url("/chapter-1/")]
    assert (doc.kind, doc.title, kept.freshness(doc)) == ("url", "Chapter /chapter-1/", "fresh")
    assert kept.is_sound()


def test_a_second_look_asks_once_a_page(kept: SyncHome, docs_site: DocSite) -> None:
    """With what the server said of each page; only what changed is sent."""
    docs_site.fill(40)
    crawl(kept, docs_site)
    docs_site.edit("/chapter-1/", "anew")
    docs_site.forget()
    line = kept.line()
    assert (line.updated, line.unchanged, line.removed, line.outcome) == (1, 39, 0, "synced")
    assert sorted(docs_site.asked()) == sorted(docs_site.pages)
    asked = [request.headers.get("If-None-Match") for request in docs_site.server.requests]
    assert sum(bool(etag) for etag in asked) == 40


def test_what_the_sitemap_calls_unchanged_is_not_asked_for(
    kept: SyncHome, docs_site: DocSite
) -> None:
    """Its dates tell which pages changed, and which are new."""
    docs_site.fill(40)
    docs_site.sitemap = True
    crawl(kept, docs_site)
    docs_site.forget()
    assert kept.line().unchanged == 40
    assert docs_site.asked() == []
    docs_site.edit("/chapter-2/", "anew")
    docs_site.pages["/new.html"] = DocPage("New", text_of("/new.html"))
    line = kept.line()
    assert (line.updated, line.added, line.unchanged) == (1, 1, 39)
    assert sorted(docs_site.asked()) == ["/chapter-2/", "/new.html"]


def test_vanished_pages_go_by_the_fuse(kept: SyncHome, docs_site: DocSite) -> None:
    """A few are removed; many are held back until that is accepted; one that is back is back."""
    docs_site.fill(40)
    crawl(kept, docs_site)
    leaf = docs_site.pages.pop("/chapter-0/page-0.html")
    assert kept.line().removed == 1
    assert len(kept.docs()) == 39
    docs_site.pages["/chapter-0/page-0.html"] = leaf
    docs_site.edit("/chapter-0/", "anew")
    line = kept.line()
    assert (line.resurrected, len(kept.docs())) == (1, 40)
    many = [path for path in docs_site.pages if "page-" in path][:12]
    gone = {path: docs_site.pages.pop(path) for path in many}
    line = kept.line()
    assert (line.outcome, line.removed) == ("held_back", 0)
    assert "12 of 40 docs have vanished" in (line.reason or "")
    docs_site.pages[many[0]] = gone[many[0]]
    assert kept.line(accept_deletions=True).removed == 11
    assert len(kept.docs()) == 29
    assert kept.line().outcome == "synced"
    assert kept.is_sound()


@pytest.mark.parametrize("status", [500, 503])
def test_a_failing_site_removes_nothing(kept: SyncHome, docs_site: DocSite, status: int) -> None:
    """The source fails, says why, and is tried again later; so it is while robots.txt fails."""
    docs_site.fill(20)
    crawl(kept, docs_site)
    before = kept.docs()
    docs_site.down = status
    line = kept.line()
    assert (line.outcome, line.removed) == ("failed", 0)
    assert str(status) in (line.reason or "")
    assert kept.origin(docs_site.url("/")).failures == 1
    assert kept.docs() == before
    docs_site.down = None
    assert kept.line(only=docs_site.url("/")).unchanged == 20


def test_a_page_that_fails_stays_as_it_was(kept: SyncHome, docs_site: DocSite) -> None:
    """It is counted, and asked for again by the next look."""
    docs_site.fill(20)
    docs_site.routes["/chapter-0/page-3.html"] = Answer(b"", 500)
    report = crawl(kept, docs_site)
    path = next(path for path in docs_site.pages if "page-3" in path)
    docs_site.routes[path] = Answer(b"", 500)
    line = kept.line()
    assert (line.failed, line.outcome, line.removed) == (1, "synced", 0)
    del docs_site.routes[path]
    docs_site.routes.pop("/chapter-0/page-3.html", None)
    assert kept.line().failed == 0
    assert paths(kept, docs_site) == set(docs_site.pages)
    assert report.scanned == 20


def test_traps_end(kept: SyncHome, docs_site: DocSite) -> None:
    """An endless calendar, sessions, campaigns and paths that repeat bring a bounded number."""
    docs_site.fill(20)
    docs_site.traps = True
    crawl(kept, docs_site)
    months = {path for path in paths(kept, docs_site) if path.startswith("/calendar/")}
    assert paths(kept, docs_site) == set(docs_site.pages) | months
    assert 0 < len(months) <= 100
    asked = docs_site.asked()
    assert len(asked) == len(set(asked))
    assert not any("?" in path for path in asked)
    assert not any("a/a/a" in path for path in asked)


def test_only_what_lies_below_the_start(kept: SyncHome, docs_site: DocSite) -> None:
    """Another folder, another host and lists of pages are left alone, unless globs say else."""
    docs_site.fill(12, "/guide/")
    docs_site.fill(8, "/blog/")
    docs_site.pages["/guide/"].links += ("/blog/", "http://127.0.0.2:9/x", "/guide/llms.txt")
    docs_site.pages["/guide/llms.txt"] = DocPage("", "", raw=b"# Guide\n", mime="text/plain")
    crawl(kept, docs_site, "/guide/")
    assert {path.split("/")[1] for path in paths(kept, docs_site)} == {"guide"}
    assert len(kept.docs()) == 12
    assert not any(path.startswith("/blog") for path in docs_site.asked())
    report = crawl(
        kept, docs_site, "/guide/", include=("/blog", "/guide/chapter*"), exclude=("*page-1.html",)
    )
    taken = {path for path in paths(kept, docs_site) if path.startswith("/blog")}
    assert taken == {
        path for path in docs_site.pages if path[:5] == "/blog" and "page-1." not in path
    }
    assert report.failed == 0


def test_what_a_page_says_to_programs_counts(kept: SyncHome, docs_site: DocSite) -> None:
    """Noindex is no doc, nofollow leads nowhere, and a page is what it names as canonical."""
    docs_site.pages = {
        "/": DocPage("Start", text_of("/"), ("/no", "/a?x=1", "/deaf", "/tagged", "/copy")),
        "/no": DocPage("No", text_of("no"), ("/by-no",), '<meta name="robots" content="noindex">'),
        "/by-no": DocPage("By", text_of("by")),
        "/a": DocPage("A", text_of("a"), extra='<link rel="canonical" href="/a">'),
        "/a?x=1": DocPage("A", text_of("ax"), extra='<link rel="canonical" href="/a">'),
        "/deaf": DocPage("D", text_of("d"), ("/x",), '<meta name="robots" content="nofollow">'),
        "/x": DocPage("X", text_of("x")),
        "/tagged": DocPage("T", text_of("t"), headers={"X-Robots-Tag": "noindex, nofollow"}),
        "/copy": DocPage("Copy", text_of("copy"), ("/copy2",)),
        "/copy2": DocPage("Copy", text_of("copy"), ("/copy",)),
    }
    report = crawl(kept, docs_site)
    assert paths(kept, docs_site) == {"/", "/by-no", "/a", "/deaf", "/copy"}
    assert report.failed == 0
    reasons = {
        problem.source.removeprefix(docs_site.url("")): problem.reason
        for problem in report.problems
    }
    assert "noindex" in reasons["/no"]
    assert reasons["/a?x=1"] == f"leads to {docs_site.url('/a')}"
    assert "says the same" in reasons["/copy2"]
    docs_site.forget()
    assert kept.line().unchanged == 5
    assert len(docs_site.asked()) == len(set(docs_site.asked())) == 9
    # The page that said the same is taken once the other is gone.
    del docs_site.pages["/copy"]
    line = kept.line()
    assert (line.added, line.removed) == (1, 1)
    assert "/copy2" in paths(kept, docs_site)


def test_redirects_lead_to_pages_of_their_own(kept: SyncHome, docs_site: DocSite) -> None:
    """Inside the site the target is the page; outside nothing is fetched; circles end."""
    docs_site.fill(10)
    docs_site.routes["/old"] = moved("/chapter-0/", 301)
    docs_site.routes["/away"] = moved("http://127.0.0.2:9/x", 301)
    docs_site.routes["/round"] = moved("/round?sid=5")
    docs_site.routes["/ring-a"] = moved("/ring-b")
    docs_site.routes["/ring-b"] = moved("/ring-a")
    docs_site.pages["/"].links += ("/old", "/away", "/round", "/ring-a")
    report = crawl(kept, docs_site)
    assert paths(kept, docs_site) == set(docs_site.pages)
    asked = docs_site.asked()
    assert len(asked) == len(set(asked))
    assert report.failed == 0
    docs_site.routes["/chapter-0/page-0.html"] = moved("/chapter-0/", 301)
    line = kept.line()
    assert (line.removed, line.failed) == (1, 0)


def test_robots_txt_is_respected(kept: SyncHome, docs_site: DocSite) -> None:
    """What it forbids is not asked for, and its sitemap is read."""
    docs_site.fill(20)
    docs_site.sitemap = True
    docs_site.pages["/hidden/x.html"] = DocPage("Hidden", text_of("hidden"))
    docs_site.pages["/only-listed.html"] = DocPage("Listed", text_of("listed"))
    docs_site.robots = (
        f"User-agent: *\nDisallow: /hidden/\nSitemap: {docs_site.url('/sitemap.xml')}\n"
    )
    crawl(kept, docs_site)
    assert paths(kept, docs_site) == set(docs_site.pages) - {"/hidden/x.html"}
    assert "/hidden/x.html" not in docs_site.asked()
    assert "/llms.txt" in docs_site.server.paths()


def test_pages_that_llms_txt_names(kept: SyncHome, docs_site: DocSite) -> None:
    """They are found; the markdown of a page that is there is not a page of its own."""
    docs_site.pages = {
        "/": DocPage("Start", text_of("/"), ("/a/", "/b.html")),
        "/a/": DocPage("A", text_of("a")),
        "/b.html": DocPage("B", text_of("b")),
        "/a.md": DocPage("", "", raw=b"# A\n\nas markdown\n", mime="text/markdown"),
        "/b.md": DocPage("", "", raw=b"# B\n\nas markdown\n", mime="text/markdown"),
        "/alone.md": DocPage("", "", raw=b"# Alone\n\nonly here\n", mime="text/markdown"),
    }
    said = f"# Site\n- [A]({docs_site.url('/a.md')}): a\n- [B](/b.md)\n- [Alone](alone.md)\n"
    docs_site.routes["/llms.txt"] = Answer(said.encode(), 200, {"Content-Type": "text/plain"})
    crawl(kept, docs_site)
    assert paths(kept, docs_site) == {"/", "/a/", "/b.html", "/alone.md"}
    assert "/a.md" not in docs_site.asked()


def test_what_a_person_removed_stays_out(kept: SyncHome, docs_site: DocSite) -> None:
    """Syncs do not bring it back; adding the site again does."""
    docs_site.fill(10)
    crawl(kept, docs_site)
    doc = kept.docs()[docs_site.url("/chapter-0/")]
    tombstone(kept.app.store, [doc.doc_id])
    docs_site.edit("/chapter-0/", "anew")
    assert kept.line().skipped == 1
    assert len(kept.docs()) == 9
    assert crawl(kept, docs_site).updated == 1
    assert len(kept.docs()) == 10


def test_limits_end_a_crawl(kept: SyncHome, docs_site: DocSite) -> None:
    """Of pages and of depth; a higher limit goes on where it ended."""
    docs_site.fill(30)
    report = crawl(kept, docs_site, pages_max=12)
    assert len(kept.docs()) == 12
    assert "--max-pages" in report.problems[0].reason
    docs_site.forget()
    assert crawl(kept, docs_site).added == 18
    asked = docs_site.asked()
    assert len(asked) == len(set(asked)) == 30


def test_depth_ends_a_crawl(kept: SyncHome, docs_site: DocSite) -> None:
    """Pages that more links lead to than the limit are not asked for."""
    docs_site.fill(30)
    crawl(kept, docs_site, depth_max=1)
    assert paths(kept, docs_site) == {p for p in docs_site.pages if "page-" not in p}


def test_a_dry_run_lists_and_keeps_nothing(kept: SyncHome, docs_site: DocSite) -> None:
    """It asks for the pages, for their links, and writes neither docs nor the source."""
    docs_site.fill(15)
    report = crawl(kept, docs_site, dry_run=True)
    assert {line.source for line in report.docs} == {docs_site.url(p) for p in docs_site.pages}
    assert (kept.docs(), kept.origins()) == ({}, [])
    with kept.app.store.read() as txn:
        assert txn.count("site_pages") == 0


def test_a_site_that_is_forgotten_keeps_its_docs(kept: SyncHome, docs_site: DocSite) -> None:
    """What was known of its pages goes with it."""
    from kb.intake.sync.origins import unregister

    docs_site.fill(10)
    crawl(kept, docs_site)
    unregister(kept.app.store, docs_site.url("/"))
    assert len(kept.docs()) == 10
    with kept.app.store.read() as txn:
        assert txn.count("site_pages") == 0
    assert crawl(kept, docs_site).unchanged == 10
