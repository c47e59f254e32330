"""A feed's entries as docs: by their own text or by their page, and never removed."""

import pytest
from doc_site import DocPage, DocSite, text_of
from loopback import Answer, conditional
from sync_home import SyncHome

from kb.errors import Unparsable
from kb.intake.crawl.adders import FeedAdder
from kb.intake.crawl.feed import read_feed
from kb.intake.crawl.options import TakeOptions
from kb.intake.ingest.changes import tombstone
from kb.intake.sync.add import AddOptions
from kb.intake.sync.report import AddReport

ATOM = '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>All</title>%s</feed>'
RSS = (
    '<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/'
    'content/"><channel><title>All</title>%s</channel></rss>'
)


def atom_entry(name: str, words: str, updated: str = "2024-05-06T07:08:09Z") -> str:
    return (
        f'<entry><id>urn:{name}</id><title>Entry {name}</title><link href="/posts/{name}"/>'
        f"<updated>{updated}</updated>"
        f'<content type="html">&lt;p&gt;{words}&lt;/p&gt;</content></entry>'
    )


def add(kept: SyncHome, url: str, *, dry_run: bool = False) -> AddReport:
    adder = kept.app.adder(kept.parser, AddOptions(dry_run=dry_run))
    feeds = FeedAdder(adder, lambda: kept.app.sites(kept.parser), TakeOptions(dry_run=dry_run))
    report = feeds.add([url])
    kept.work()
    return report


def test_entries_are_docs(kept: SyncHome, docs_site: DocSite) -> None:
    """Each at its link, with its title and date; the feed is a source, and no doc."""
    entries = "".join(atom_entry(name, text_of(name)) for name in ("a", "b"))
    docs_site.routes["/feed"] = conditional((ATOM % entries).encode(), etag='"1"')
    assert add(kept, docs_site.url("/feed")).added == 2
    doc = kept.docs()[docs_site.url("/posts/a")]
    assert (doc.title, doc.kind, (doc.date or "")[:10]) == ("Entry a", "url", "2024-05-06")
    assert set(kept.docs()) == {docs_site.url("/posts/a"), docs_site.url("/posts/b")}
    (origin,) = kept.origins()
    assert (origin.kind, origin.cursor) == ("feed", 'etag:"1"')
    assert kept.freshness(doc) == "fresh"
    docs_site.forget()
    assert kept.line().scanned == 0
    assert docs_site.server.paths() == ["/feed"]
    assert kept.is_sound()


def test_what_leaves_a_feed_stays(kept: SyncHome, docs_site: DocSite) -> None:
    """New entries are added, changed ones are new versions, others stay."""
    docs_site.routes["/feed"] = Answer((ATOM % atom_entry("a", text_of("a"))).encode())
    add(kept, docs_site.url("/feed"))
    newer = atom_entry("b", text_of("b"))
    docs_site.routes["/feed"] = Answer((ATOM % newer).encode())
    line = kept.line()
    assert (line.added, line.removed, line.outcome) == (1, 0, "synced")
    changed = atom_entry("b", "Other words now, and enough of them.", "2025-01-01T00:00:00Z")
    docs_site.routes["/feed"] = Answer((ATOM % changed).encode())
    assert kept.line().updated == 1
    assert kept.line().unchanged == 1
    assert len(kept.docs()) == 2
    tombstone(kept.app.store, [kept.docs()[docs_site.url("/posts/b")].doc_id])
    assert kept.line().skipped == 1
    assert len(kept.docs()) == 1


def test_entries_without_a_text_are_their_pages(kept: SyncHome, docs_site: DocSite) -> None:
    """A summary is not the text: the page is fetched, once; one that fails is tried again."""
    item = "<item><title>{0}</title><link>/posts/{0}</link><description>short</description></item>"
    docs_site.routes["/rss"] = Answer((RSS % (item.format("a") + item.format("b"))).encode())
    docs_site.pages["/posts/a"] = DocPage("The page a", text_of("a"))
    docs_site.routes["/posts/b"] = Answer(b"", 503)
    report = add(kept, docs_site.url("/rss"))
    assert (report.added, report.failed) == (1, 1)
    assert kept.docs()[docs_site.url("/posts/a")].title == "The page a"
    del docs_site.routes["/posts/b"]
    docs_site.pages["/posts/b"] = DocPage("The page b", text_of("b"))
    docs_site.forget()
    assert (kept.line().added, docs_site.asked()) == (1, ["/rss", "/posts/b"])


def test_a_feed_leaves_other_docs_alone(kept: SyncHome, docs_site: DocSite) -> None:
    """A page that was added by itself is not replaced by an entry's text."""
    docs_site.pages["/posts/a"] = DocPage("The page", text_of("a"))
    kept.add(docs_site.url("/posts/a"))
    docs_site.routes["/feed"] = Answer((ATOM % atom_entry("a", "other")).encode())
    assert add(kept, docs_site.url("/feed")).skipped == 1
    assert kept.docs()[docs_site.url("/posts/a")].title == "The page"


def test_a_feed_that_fails_or_is_none_any_more(kept: SyncHome, docs_site: DocSite) -> None:
    """The source fails or is gone, and its docs stay."""
    docs_site.routes["/feed"] = Answer((ATOM % atom_entry("a", text_of("a"))).encode())
    add(kept, docs_site.url("/feed"))
    for answer, outcome in ((Answer(b"", 500), "failed"), (Answer(b"<html>no</html>"), "failed")):
        docs_site.routes["/feed"] = answer
        assert kept.line(only=docs_site.url("/feed")).outcome == outcome
    docs_site.routes["/feed"] = Answer(b"", 404)
    assert kept.line(only=docs_site.url("/feed")).outcome == "gone"
    assert len(kept.docs()) == 1


def test_lists_of_pages_are_no_docs(kept: SyncHome, docs_site: DocSite) -> None:
    """A sitemap or an llms.txt that is named says what to do instead; a dry run keeps nothing."""
    docs_site.sitemap = True
    docs_site.routes["/llms.txt"] = Answer(b"# Site\n", 200, {"Content-Type": "text/plain"})
    for name in ("/sitemap.xml", "/llms.txt"):
        report = add(kept, docs_site.url(name))
        assert report.failed == 1
        assert "--crawl" in report.problems[0].reason
    docs_site.routes["/feed"] = Answer((ATOM % atom_entry("a", text_of("a"))).encode())
    assert add(kept, docs_site.url("/feed"), dry_run=True).added == 1
    assert (kept.docs(), kept.origins()) == ({}, [])


def test_what_an_entry_says() -> None:
    """XHTML, text, encoded content, ids that are links, and no link at all."""
    xhtml = (
        '<entry><id>1</id><title>X &amp; Y</title><link rel="self" href="/no"/>'
        '<link rel="alternate" href="/x"/><published>2024-01-02</published><content type="xhtml">'
        '<div xmlns="http://www.w3.org/1999/xhtml"><p>one<br/>&lt;two&gt;</p></div></content>'
        "</entry><entry><id>2</id><title>T</title><content>5 &lt; 6</content></entry>"
    )
    one, two = read_feed((ATOM % xhtml).encode(), "https://a.example/feed", 10)
    assert (one.url, one.title, one.date) == ("https://a.example/x", "X & Y", "2024-01-02")
    assert one.content == "<div><p>one<br>&lt;two&gt;</p></div>"
    assert two.url.startswith("https://a.example/feed#")
    assert two.content == "<p>5 &lt; 6</p>"
    item = (
        "<item><guid>https://a.example/g</guid><pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate>"
        "<content:encoded><![CDATA[<p>whole</p>]]></content:encoded></item>"
    )
    (entry,) = read_feed((RSS % item).encode(), "https://a.example/rss", 10)
    assert (entry.url, entry.content) == ("https://a.example/g", "<p>whole</p>")
    assert entry.date == "2024-05-06T07:08:09+00:00"
    assert len(read_feed((RSS % (item * 9)).encode(), "https://a.example/rss", 3)) == 1


@pytest.mark.parametrize(
    "data",
    [
        b'<!DOCTYPE rss [<!ENTITY a "aaaa">]><rss><channel><item>&a;</item></channel></rss>',
        b'<?xml version="1.0"?><!DOCTYPE rss SYSTEM "file:///etc/passwd"><rss/>',
        b"<rss>" * 300,
        b"<rss><channel><item>",
        b"<rss>&undefined;</rss>",
    ],
)
def test_a_hostile_feed_is_refused(data: bytes) -> None:
    """Entities, DTDs, depth and damage end in one error."""
    with pytest.raises(Unparsable):
        read_feed(data, "https://a.example/feed", 10)


def test_what_only_the_feed_says(kept: SyncHome, docs_site: DocSite) -> None:
    """The date of a page without one, and the summary of a page that is not there."""
    docs_site.pages["/posts/a"] = DocPage("A page", text_of("a"))
    when = "<pubDate>Thu, 01 Oct 2026 10:00:00 GMT</pubDate>"
    items = "".join(
        f"<item><title>Entry {name}</title><link>/posts/{name}</link>{when}"
        f"<description>A summary of {name} that says a little.</description></item>"
        for name in "ab"
    )
    docs_site.routes["/feed"] = Answer((RSS % items).encode())
    report = add(kept, docs_site.url("/feed"))
    assert (report.added, report.failed) == (2, 0)
    found = kept.docs()
    page, told = (found[docs_site.url(f"/posts/{name}")] for name in "ab")
    assert (page.title, told.title) == ("A page", "Entry b")
    assert page.date == told.date == "2026-10-01T10:00:00+00:00"
    assert kept.line().unchanged == 2
