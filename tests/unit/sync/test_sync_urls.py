"""A page's life in a home: taken in, unchanged, changed, gone, back; and what is not fetched."""

import pytest
from loopback import Answer, LoopbackServer, conditional, moved
from sync_home import SyncHome

from kb.intake.ingest.changes import tombstone
from kb.intake.ingest.request import IngestOptions
from kb.store import docs

MONDAY = "Mon, 13 Nov 2023 08:00:00 GMT"
HTML = {"Content-Type": "text/html; charset=utf-8"}


def page(title: str, said: str = "An article with a few words in it. ") -> bytes:
    return (
        f"<!doctype html><html><head><title>{title}</title>"
        '<meta property="article:published_time" content="2024-05-06T07:08:09Z"></head>'
        f"<body><article><h1>{title}</h1><p>{said * 6}</p></article></body></html>"
    ).encode()


def test_a_page_is_taken_in(kept: SyncHome, site: LoopbackServer) -> None:
    """It is a doc of kind url with the page's title and date, registered with its cursor."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    url = site.url("/page")
    assert kept.add(url, ingest_options=IngestOptions(tags=("web",))).added == 1
    doc = kept.docs()[url]
    assert (doc.kind, doc.title, doc.tags) == ("url", "Boats", ("web",))
    assert doc.date is not None
    assert doc.date.startswith("2024-05-06")
    (origin,) = kept.origins()
    assert (origin.kind, origin.location, origin.cursor) == ("url", url, 'etag:"1"')
    assert kept.freshness(doc) == "fresh"
    assert kept.is_sound()


def test_a_page_of_several_is_kept_for_each(kept: SyncHome, site: LoopbackServer) -> None:
    """Each owner has a doc and an entry of the register of their own, and both are kept current."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    url = site.url("/page")
    kept.add(url)
    kept.add(url, ingest_options=IngestOptions(owner="ada", visibility="shared"))
    site.routes["/page"] = conditional(page("Ships"), etag='"2"')
    report = kept.sync()
    assert (report.updated, [one.outcome for one in report.sources]) == (2, ["synced", "synced"])
    with kept.app.store.read() as txn:
        found = {doc.owner: doc for doc in docs.all_latest(txn)}
    assert {owner: (doc.title, doc.visibility) for owner, doc in found.items()} == {
        "local": ("Ships", "private"),
        "ada": ("Ships", "shared"),
    }
    assert [origin.owner for origin in kept.origins()] == [None, "ada"]
    assert [kept.freshness(doc) for doc in found.values()] == ["fresh", "fresh"]
    tombstone(kept.app.store, [found["ada"].doc_id])
    assert kept.sync().skipped == 1
    assert kept.is_sound()


@pytest.mark.parametrize(
    ("said", "cursor"),
    [
        ({"etag": 'W/"1"'}, 'etag:W/"1"'),
        ({"last_modified": MONDAY}, f"lastmod:{MONDAY}"),
        ({}, "contenthash:"),
    ],
)
def test_an_unchanged_page_is_unchanged(
    kept: SyncHome, site: LoopbackServer, said: dict[str, str], cursor: str
) -> None:
    """By the server's word or by its bytes; added again or synced it is the same doc."""
    site.routes["/page"] = conditional(page("Boats"), **said)
    url = site.url("/page")
    kept.add(url)
    before = kept.docs()
    assert kept.origin(url).cursor.startswith(cursor)
    assert kept.add(url).unchanged == 1
    assert kept.line().unchanged == 1
    assert kept.docs() == before
    assert site.paths() == ["/page"] * 3
    asked = [bool(request.headers.get("If-None-Match")) for request in site.requests]
    assert asked == [False, "etag" in said, "etag" in said]


def test_a_changed_page_is_a_new_version(kept: SyncHome, site: LoopbackServer) -> None:
    """What the page says now is what is found."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    url = site.url("/page")
    kept.add(url)
    site.routes["/page"] = conditional(page("Ships"), etag='"2"')
    assert kept.line().updated == 1
    doc = kept.docs()[url]
    assert (doc.title, doc.version) == ("Ships", 2)
    assert kept.origin(url).cursor == 'etag:"2"'
    assert kept.line().unchanged == 1
    assert kept.is_sound()


@pytest.mark.parametrize("mime", ["text/html", "text/plain", "text/markdown"])
def test_the_encoding_that_the_server_declares_is_kept(
    kept: SyncHome, site: LoopbackServer, mime: str
) -> None:
    """The page is read by it, and so it is when its markdown has to be made again."""
    # Two letters, which nobody can guess.
    said = "Ёж"
    declared = {"Content-Type": f"{mime}; charset=ISO-8859-5"}
    site.routes["/page"] = Answer(said.encode("iso8859-5"), 200, declared)
    site.routes["/bare"] = Answer(said.encode("iso8859-5"), 200, {"Content-Type": mime})
    kept.add(site.url("/page"), site.url("/bare"))
    doc, bare = kept.docs()[site.url("/page")], kept.docs()[site.url("/bare")]
    content, path = kept.app.content, kept.app.paths.root / doc.md_path
    assert (doc.charset, bare.charset) == ("iso-8859-5", None)
    assert content.read(doc.md_path, doc.md_sha256).decode() == said + "\n"
    assert content.read(bare.md_path, bare.md_sha256).decode() != said + "\n"
    path.unlink()
    assert kept.app.checker.run(repair=True).sound
    assert content.read(doc.md_path, doc.md_sha256).decode() == said + "\n"


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_gone_is_marked_and_kept(
    kept: SyncHome, site: LoopbackServer, status: int
) -> None:
    """Its doc stays, and says that its page is gone; when it comes back, so it says."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    url = site.url("/page")
    kept.add(url)
    site.routes["/page"] = Answer(b"gone", status)
    line = kept.line()
    assert (line.outcome, line.failed) == ("gone", 0)
    doc = kept.docs()[url]
    assert kept.freshness(doc) == "gone"
    since_ms = kept.origin(url).gone_since_ms
    kept.clock.advance(60_000)
    assert kept.line(only=url).outcome == "gone"
    assert kept.origin(url).gone_since_ms == since_ms
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    assert kept.line(only=url).unchanged == 1
    assert kept.freshness(kept.docs()[url]) == "fresh"
    assert kept.origin(url).gone_since_ms is None


@pytest.mark.parametrize(
    ("answer", "wait_s", "reason"),
    [
        (Answer(b"", 401), 60, "login"),
        (Answer(b"", 403), 60, "login"),
        (Answer(b"", 429), 60, "429"),
        (Answer(b"", 429, {"Retry-After": "7200"}), 7200, "429"),
        (Answer(b"", 400), 60, "400"),
        (Answer(b"", 500), 60, "500"),
        (moved("http://169.254.169.254/latest"), 60, "169.254.169.254"),
    ],
)
def test_a_page_that_cannot_be_fetched_waits(
    kept: SyncHome, site: LoopbackServer, answer: Answer, wait_s: int, reason: str
) -> None:
    """It failed, says why, and is not asked before its time; the doc stays as it was."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    url = site.url("/page")
    kept.add(url)
    before = kept.docs()
    site.routes["/page"] = answer
    line = kept.line()
    assert line.outcome == "failed"
    assert reason in (line.reason or "")
    assert kept.origin(url).next_try_ms == kept.clock.now_ms() + wait_s * 1000
    assert kept.origin(url).last_error == line.reason
    asked = len(site.requests)
    kept.clock.advance(wait_s * 1000 - 1)
    assert kept.sync().sources == ()
    assert len(site.requests) == asked
    assert kept.docs() == before
    assert kept.freshness(kept.docs()[url]) == "unknown"
    kept.clock.advance(1)
    kept.line()
    assert kept.origin(url).failures == 2
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    assert kept.line(only=url).unchanged == 1
    assert (kept.origin(url).failures, kept.origin(url).next_try_ms) == (0, 0)


def test_a_server_that_is_down_fails_alone(kept: SyncHome, site: LoopbackServer) -> None:
    """The network's trouble with one page keeps no other from being synced."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    kept.add(site.url("/page"))
    from kb.intake.sync.origins import register
    from kb.model.origin import Origin, origin_id

    down = "http://127.0.0.1:9/"
    register(
        kept.app.store,
        Origin(origin_id=origin_id("url", down), kind="url", location=down, added_ms=1),
    )
    outcomes = {line.location: line.outcome for line in kept.sync().sources}
    assert outcomes == {down: "failed", site.url("/page"): "synced"}


def test_what_is_not_allowed_is_not_asked(kept: SyncHome, site: LoopbackServer) -> None:
    """Other addresses of this machine than the allowed one are refused before any connection."""
    hosts = ("127.0.0.2", "[::1]", "0.0.0.0")
    report = kept.add(*(site.url("/page", host=host) for host in hosts))
    assert (report.failed, report.added) == (3, 0)
    assert (site.connections, kept.origins()) == (0, [])


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1\\@example.org", "ftp://a"])
def test_what_is_no_web_address_is_refused(kept: SyncHome, url: str) -> None:
    """One line says so, and nothing is registered."""
    report = kept.add(url)
    assert (report.failed, len(report.problems)) == (1, 1)
    assert kept.origins() == []


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"\x89PNG\r\n\x1a\n" + bytes(300), 200, {"Content-Type": "image/png"}),
        Answer(b"none", 404),
    ],
)
def test_what_was_never_taken_in_is_not_kept_current(
    kept: SyncHome, site: LoopbackServer, answer: Answer
) -> None:
    """A picture, or a page that is not there, fails, and is not asked for again."""
    site.routes["/page"] = answer
    assert kept.add(site.url("/page")).failed == 1
    assert kept.origins() == []
    assert kept.docs() == {}


def test_a_page_that_becomes_a_picture_keeps_its_doc(kept: SyncHome, site: LoopbackServer) -> None:
    """What cannot be read is a failure, and its cursor is not taken for that of the doc."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    url = site.url("/page")
    kept.add(url)
    site.routes["/page"] = Answer(
        b"\x89PNG\r\n\x1a\n" + bytes(300), 200, {"Content-Type": "image/png", "ETag": '"2"'}
    )
    assert kept.line().outcome == "failed"
    assert kept.origin(url).cursor == 'etag:"1"'
    assert kept.docs()[url].title == "Boats"


@pytest.mark.parametrize(
    ("mime", "body", "title"),
    [
        ("text/markdown", b"# Kites\n\nHow to fly one.\n", "Kites"),
        ("text/plain", b"Kites\n\nHow to fly one.\n", None),
        ("text/html", page("Kites"), "Kites"),
    ],
)
def test_a_page_is_read_by_its_content_type(
    kept: SyncHome, site: LoopbackServer, mime: str, body: bytes, title: str | None
) -> None:
    """Markdown, text and HTML alike."""
    site.routes["/k"] = Answer(body, 200, {"Content-Type": mime})
    kept.add(site.url("/k"))
    (doc,) = kept.docs().values()
    assert doc.mime == mime
    assert title in (None, doc.title)


def test_a_removed_page_is_not_asked_for(kept: SyncHome, site: LoopbackServer) -> None:
    """A sync does not undo `kb rm`; an add does."""
    site.routes["/page"] = conditional(page("Boats"), etag='"1"')
    url = site.url("/page")
    kept.add(url)
    tombstone(kept.app.store, [kept.docs()[url].doc_id])
    asked = len(site.requests)
    assert kept.line().skipped == 1
    assert len(site.requests) == asked
    assert kept.add(url).resurrected == 1


def test_single_pages_need_no_robots_txt(kept: SyncHome, site: LoopbackServer) -> None:
    """A person named the page, so no rules for crawlers are asked for."""
    site.routes["/page"] = Answer(page("Boats"), 200, HTML)
    kept.add(site.url("/page"))
    assert site.paths() == ["/page"]
