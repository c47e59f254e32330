"""What a page's markup says to programs."""

import pytest

from kb.intake.crawl.markup import LINKS_MAX, read_markup


def test_links_are_read_in_their_order() -> None:
    """Of anchors, areas, frames, and of links to the next page; each once."""
    page = b"""<!doctype html><HTML><head><base href="/b/"><link rel=next href=two>
    <link rel="alternate" type="application/rss+xml" href="feed"><link rel=stylesheet href=css>
    </head><body><A class=x HREF='one'>1</A><a href=one>again</a><a name=x>no</a>
    <area href="three"><frame src=four><a
    href = "five?a=1&amp;b=2" >5</a><a href=six rel="nofollow noopener">6</a><a href="a>b">7</a>"""
    said = read_markup(page, None)
    assert said.links == ("two", "one", "three", "four", "five?a=1&b=2", "a>b")
    assert said.base == "/b/"


@pytest.mark.parametrize(
    "hidden",
    [
        '<!-- <a href="x"> -->',
        "<script>document.write('<a href=\"x\">')</script>",
        '<style><a href="x"></style>',
        '<template><a href="x"></template>',
        '<textarea><a href="x"></textarea>',
        '<title><a href="x"></title>',
        '<article href="x">',
        '<a data-href="x">',
        "<a",
        '<script><a href="x">',
        '<!-- <a href="x">',
    ],
)
def test_what_is_hidden_is_no_link(hidden: str) -> None:
    """Comments, scripts and the like, also those that do not end."""
    assert read_markup(hidden.encode(), None).links == ()


@pytest.mark.parametrize(
    ("head", "tag", "noindex", "nofollow"),
    [
        ('<meta name="robots" content="NOINDEX, follow">', "", True, False),
        ('<meta content="none" name=Robots>', "", True, True),
        ('<meta name="kb" content="nofollow">', "", False, True),
        ('<meta name="otherbot" content="noindex">', "", False, False),
        ("", "noindex", True, False),
        ("", "otherbot: noindex, nofollow", False, True),
        ("", "kb: none", True, True),
        ("", "unavailable_after: 1 Jan 2030", False, False),
    ],
)
def test_wishes_are_read(head: str, tag: str, noindex: bool, nofollow: bool) -> None:
    """Those of the page and those of its header, if they are for all or for kb."""
    said = read_markup(head.encode(), None, tag)
    assert (said.noindex, said.nofollow) == (noindex, nofollow)


def test_the_canonical_address_is_the_first_one() -> None:
    """As written; without one there is none."""
    page = b'<link rel="canonical" href=" /a "><link rel=canonical href=/b>'
    assert read_markup(page, None).canonical == "/a"
    assert read_markup(b"<link rel=canonical>", None).canonical is None


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ('<a href="/é">'.encode("latin-1"), "latin-1"),
        ('<meta charset="latin-1"><a href="/é">'.encode("latin-1"), None),
        ('<a href="/é">'.encode("utf-16"), "utf-8"),
        ('<a href="/é">'.encode(), "no-such"),
        ('<a href="/é">'.encode(), "zlib"),
    ],
)
def test_the_encoding_is_the_declared_one(data: bytes, charset: str | None) -> None:
    """A mark at the start, the server, the page, or else UTF-8."""
    assert read_markup(data, charset).links == ("/é",)


def test_a_page_of_links_is_bounded() -> None:
    """And hostile markup takes no time."""
    page = "".join(f'<a href="{number}">' for number in range(LINKS_MAX + 9)).encode()
    assert len(read_markup(page, None).links) == LINKS_MAX
    for hostile in (
        b"<a " * 200_000,
        b"<a x" + b" " * 500_000,
        b"<!--" * 200_000,
        b"<title>" * 200_000,
    ):
        assert read_markup(hostile, None).links == ()


def test_links_of_the_text() -> None:
    """Menus, heads and feet lead everywhere; the main part, where it is named, is the text."""
    page = (
        "<header><a href=/home></a></header><nav><a href=/a></a></nav>"
        "{}<a href=b></a><aside><a href=/c></a></aside>{}<a href=/d></a><footer><a href=/e></a>"
    )
    said = read_markup(page.format("<main>", "</main>").encode(), None)
    assert said.text_links == ("b",)
    assert said.links == ("/home", "/a", "b", "/c", "/d", "/e")
    assert read_markup(page.format("", "").encode(), None).text_links == ("b", "/d")
    assert read_markup(b"</nav></main><a href=x>", None).text_links == ("x",)
