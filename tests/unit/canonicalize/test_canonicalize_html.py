"""What does a page say?"""

import pytest
from growth import assert_linear

from kb.errors import EmptySource
from kb.intake.canonicalize import CanonicalizeInput, canonicalize
from kb.intake.canonicalize.visible import visible_text
from kb.model.text import Canonical

PARAGRAPH = "The quick brown fox jumps over the lazy dog, and then it rests in the sun. "
ARTICLE = f"""<!DOCTYPE html><html><head><title>Foxes - A Site</title>
<meta property="article:published_time" content="2023-04-05T06:07:08Z">
<style>p {{ color: red }}</style><script>var hidden = 1;</script></head><body>
<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h1>Foxes</h1><p>{PARAGRAPH * 3}</p><h2>Habitat</h2>
<p>They live in <a href="https://example.org/w">woods and <b>towns</b></a>. {PARAGRAPH * 2}</p>
<table><tr><th>Kind</th><th>Weight</th></tr><tr><td>Red</td><td>8 kg</td></tr></table>
</article><footer>Imprint and cookies</footer></body></html>"""


def read(page: str | bytes, name: str = "page.html") -> Canonical:
    data = page.encode() if isinstance(page, str) else page
    return canonicalize(CanonicalizeInput(data=data, mime="text/html", name=name))


def test_the_article_is_kept_and_the_frame_is_not() -> None:
    """Headings, words of links and tables stay; navigation, scripts and addresses go."""
    page = read(ARTICLE)
    assert "## Habitat" in page.markdown
    assert "woods and" in page.markdown
    assert "| Red | 8 kg |" in page.markdown
    for gone in ("hidden", "About us", "example.org", "color"):
        assert gone not in page.markdown
    assert (page.title, page.date, page.warnings) == ("Foxes", "2023-04-05T06:07:08Z", ())


def test_no_date_is_inferred() -> None:
    """A date in the text, or none at all, gives no date."""
    assert read(ARTICLE.replace("article:published_time", "x") + "<p>1 May 2020</p>").date is None


@pytest.mark.parametrize(
    ("head", "date"),
    [
        ('<meta name="DC.date" content="2020-02-03">', "2020-02-03"),
        (
            '<script type="application/ld+json">{"datePublished": "2020-02-03"}</script>',
            "2020-02-03",
        ),
        ('<meta itemprop="datePublished" content="soon">', None),
    ],
)
def test_stated_dates(head: str, date: str | None) -> None:
    """Dates that the page states in its metadata count."""
    assert read(f"<html><head>{head}</head><body><p>{PARAGRAPH}").date == date


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title> A\n page </title>", "A page"),
        ('<title>x</title><meta property="og:title" content="Shared name">', "Shared name"),
        ("", "Only a heading"),
    ],
)
def test_titles(head: str, title: str) -> None:
    """og:title goes before the title element, and that before the first h1."""
    assert (
        read(f"<html><head>{head}</head><body><h1>Only a heading</h1><p>{PARAGRAPH}").title == title
    )


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ("<title>Setup | Example</title>", "<h1>Example</h1><h2>Setup</h2>", "Setup"),
        ("<title>Example » Setup</title>", '<h1><a href="/">Example</a></h1>', "Example » Setup"),
        ("<title>Apple pie</title>", "<h1>Apple</h1>", "Apple pie"),
        ("<title>Example | News | Setup</title>", "<h1>Setup</h1><h2>More</h2>", "Setup"),
        ("<title>Example: Setup</title>", "<h1>Setup</h1>", "Setup"),
        ("<title>Example | Setup now</title>", "<h1>Setup</h1>", "Example | Setup now"),
        ("<title>open - files - Example</title>", '<h1>open - files<a href="#o">¶</a></h1>', None),
        (
            '<meta property="og:title" content="A: Go"><meta property="og:site_name" content="A">',
            "",
            "Go",
        ),
        (
            '<title>Setup it - Example</title><meta property="og:site_name" content="Example">',
            "<h1>Setup</h1>",
            "Setup it",
        ),
    ],
)
def test_titles_lose_the_name_of_the_site(head: str, body: str, title: str | None) -> None:
    """A heading begins the title, or the page says what the site's name is."""
    page = read(f"<html><head>{head}</head><body>{body}<p>{PARAGRAPH}")
    assert page.title == (title or "open - files")


@pytest.mark.parametrize(
    ("body", "date"),
    [
        ('<abbr class="published" title="2019-09-11T12:30:39Z">11 sept.</abbr>', "2019-09-11"),
        (
            '<time class="entry-date published" datetime="2020-01-20">20 janvier</time>',
            "2020-01-20",
        ),
        ('<span itemprop="datePublished">2020-03-18</span>', "2020-03-18"),
        ('<i class="published">2020-01-01</i><i class="published">2020-01-02</i>', None),
        ('<i class="unpublished">2020-01-01</i>', None),
        ('<time datetime="2021-05-06T10:00">Thursday</time>', "2021-05-06"),
        ("<time>6 May 2021</time><time>6 May 2021</time>", "2021-05-06"),
        ('<time datetime="14:30">half past two</time>', None),
        ('<time class="updated" datetime="2021-05-06">now</time>', None),
        ('<time class="event-start" datetime="2021-05-06">soon</time>', None),
        ('<footer><time datetime="2021-05-06">now</time></footer>', None),
        (
            "<header><h1>T</h1><time>6 May 2021</time></header><time>1 May 2021</time>",
            "2021-05-06",
        ),
        ('<time datetime="2021-05-06">a</time><time datetime="2020-01-02">b</time>', None),
        ('<p class="post-meta">By Ada, March 5th, 2016</p>', "2016-03-05"),
        ('<span class="date">8. Dezember 2012</span>', "2012-12-08"),
        ('<span class="date">1er juillet 2019</span>', "2019-07-01"),
        ('<span class="dateline">2020年1月5日</span>', "2020-01-05"),
        ('<p class="byline">Last updated on March 5, 2016</p>', None),
        ('<p class="note">Ada was born on March 5, 2016.</p>', None),
    ],
)
def test_dates_that_the_markup_marks(body: str, date: str | None) -> None:
    """Microformats, microdata, moments and bylines date a page, unless they date several things."""
    page = read(f"<html><body>{body}<p>{PARAGRAPH}")
    assert (page.date and page.date[:10]) == date


def test_signs_of_markdown_are_as_on_the_page() -> None:
    """A symbol of the text is found as it is written, a backslash of the text stays one."""
    page = read(
        f"<html><body><h1>Slices</h1><p>Py_ssize_t *args x[0] a\\_b <code>c\\_d</code> {PARAGRAPH}"
    )
    assert "Py_ssize_t *args x[0] a\\_b `c\\_d`" in page.markdown


def test_a_page_without_title_is_named_by_its_file() -> None:
    """No title and no h1: the stem."""
    assert read(f"<html><body><p>{PARAGRAPH}", "dir/saved.html").title == "saved"


def test_short_page_keeps_all_its_text() -> None:
    """Where no article is found, the visible text is the page."""
    page = read("<html><body><h2>Hi</h2><ul><li>a &amp; b<li>c</ul><div>d<br>e</div></body></html>")
    assert page.markdown == "## Hi\n\n- a & b\n\n- c\n\nd\ne\n"


def test_a_page_laid_out_in_a_table_keeps_its_paragraphs() -> None:
    """One cell around the whole text is no table."""
    text = "<br><br>".join(f"Part {i} has {PARAGRAPH}" for i in range(30))
    page = read(f"<html><body><table><tr><td>menu</td><td><font>{text}</font></td></tr></table>")
    assert "|" not in page.markdown
    assert page.markdown.count("\n\nPart") >= 29


@pytest.mark.parametrize(
    ("declared", "codec"),
    [
        ("windows-1251", "cp1251"),
        ("iso-8859-1", "cp1252"),
        ("gb2312", "gb18030"),
        ("Shift_JIS", "cp932"),
        ("iso-2022-jp", "iso2022_jp"),
        ("utf-8", "utf-8"),
        ("iso-8859-1", "utf-8"),
        ("no-such-thing", "utf-8"),
        ("punycode", "utf-8"),
    ],
)
def test_declared_charset(declared: str, codec: str) -> None:
    """The declaration is believed, as browsers read it, unless the bytes are valid UTF-8."""
    words = {"cp1251": "привет мир", "cp1252": "“café”", "gb18030": "你好世界"}
    text = words.get(codec, "日本語の文章")
    page = f'<html><head><meta charset="{declared}"><title>{text}</title></head><body><p>{text}'
    result = read(page.encode(codec))
    assert text in result.markdown
    assert result.title == text


def test_byte_order_mark_goes_before_the_declaration() -> None:
    """UTF-16 with a mark is UTF-16 whatever the page says."""
    assert "日本" in read('<meta charset="latin-1"><p>日本</p>'.encode("utf-16")).markdown


@pytest.mark.parametrize(
    ("header", "meta", "codec"),
    [
        ("koi8-r", "windows-1251", "koi8-r"),
        ("iso-8859-5", "", "iso8859-5"),
        ("utf-8", "iso-8859-5", "iso8859-5"),
        ("no-such-thing", "koi8-r", "koi8-r"),
        ("windows-1251", "windows-1251", "utf-8"),
        ("windows-1251", "windows-1251", "utf-16"),
    ],
)
def test_the_server_goes_before_the_page(header: str, meta: str, codec: str) -> None:
    """A mark or valid UTF-8, then what the server declares, then what the page does."""
    text = "Съешь же ещё этих мягких французских булок"
    page = f'<html><head><meta charset="{meta}"></head><body><p>{text}'
    data = page.encode(codec)
    source = CanonicalizeInput(data=data, mime="text/html", name="x", charset=header)
    assert canonicalize(source).markdown == text + "\n"


def test_xhtml_with_a_doctype_and_entities() -> None:
    """No DTD is read and no entity is fetched."""
    page = read(
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">'
        "]><html><body><p>before &x; after &eacute;</p></body></html>"
    )
    assert "root:" not in page.markdown
    assert "é" in page.markdown


@pytest.mark.parametrize(
    "page",
    [
        "<html><body></body></html>",
        "<html><script>x()</script>",
        "<!-- only -->",
        "<html><p>&nbsp;",
    ],
)
def test_nothing_visible_is_an_empty_source(page: str) -> None:
    """A page that shows nothing is empty, not a success."""
    with pytest.raises(EmptySource):
        read(page)


def test_deep_nesting_keeps_the_text() -> None:
    """Nesting beyond what libxml2 follows costs the article, not the words."""
    page = read(
        "<html><body><p>start</p>" + "<div>" * 5000 + "deep" + "</div>" * 5000 + "<p>end</p>"
    )
    assert page.markdown == "start\n\ndeep\n\nend\n"
    assert page.warnings


def test_huge_attribute_keeps_the_text() -> None:
    """An inlined picture of 11 MB does not cut the page off."""
    page = read('<html><body><p>start</p><img src="data:' + "A" * 11_000_000 + '"><p>end</p>')
    assert page.markdown == "start\n\nend\n"


@pytest.mark.parametrize(
    "page",
    [
        "<" * 200_000,
        "<!--" * 50_000,
        "<script" * 30_000,
        "<a b='" * 30_000,
        "&" * 200_000,
        "</" * 100_000,
    ],
)
def test_visible_text_is_linear(page: str) -> None:
    """Whatever is repeated, twice the page is twice the work."""
    assert_linear(visible_text, page, page * 2)
