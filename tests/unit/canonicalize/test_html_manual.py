"""Which part of a page of a manual, or of a page of contents, is its text?"""

import pytest
from growth import assert_linear

from kb.intake.canonicalize import CanonicalizeInput, canonicalize

PROSE = "The quick brown fox jumps over the lazy dog, and then it rests in the sun. "
SPHINX = """<html><head><title>Welcome — Foo 1.0 documentation</title></head><body>
<div class="related"><ul><li><a href="genindex.html">general index</a></li></ul></div>
<div class="document"><div class="body" role="main"><section id="welcome">
<h1>Welcome<a class="headerlink" href="#welcome">¶</a></h1><p>Foo is a library.</p>
<div class="toctree-wrapper compound"><p class="caption">Guide</p><ul>
<li><a href="i.html">Installation</a><ul><li><a href="i.html#a">From source</a></li></ul></li>
<li><a href="q.html">Quickstart for beginners</a></li>
<li><a href="w.html">Writing plugins</a></li></ul></div></section></div></div>
<div class="sphinxsidebar"><h3>This Page</h3><ul><li><a href="_s">Show Source</a></li></ul></div>
<div class="footer">Copyright 2020 Me.</div></body></html>"""
DOCBOOK = """<html><head><meta name="generator" content="DocBook XSL Stylesheets V1.79">
<title>Part II</title></head><body>
<div class="navheader"><a accesskey="p" href="a.html">Prev</a></div>
<ul class="docnav"><li><a accesskey="p" href="a.html">Before</a></li><li>The Book</li></ul>
<div class="part"><h1 class="title">Part II. Administration</h1>
<div class="toc"><dl class="toc"><dt>9. <a href="b.html">Backups</a></dt>
<dd><dl><dt>9.1. <a href="b.html#x">Of one table</a></dt></dl></dd></dl></div>
<div class="sidebar"><div class="para">Security: write down who may restore.</div></div>
</div></body></html>"""


def read(page: str) -> str:
    data = page.encode()
    return canonicalize(CanonicalizeInput(data=data, mime="text/html", name="p.html")).markdown


def test_a_page_of_contents_keeps_the_texts_of_its_links() -> None:
    """Lists stand in lists, and neither the sidebar nor the foot is there."""
    assert read(SPHINX) == (
        "# Welcome\n\nFoo is a library.\n\nGuide\n\n- Installation\n  - From source\n"
        "- Quickstart for beginners\n- Writing plugins\n"
    )


def test_a_page_of_docbook_is_what_it_says() -> None:
    """Contents that lead elsewhere stay, links to the next page go, a boxed note is text."""
    assert read(DOCBOOK) == (
        "# Part II. Administration\n\n- 9. Backups\n  - 9.1. Of one table\n\n"
        "Security: write down who may restore.\n"
    )


def test_contents_of_the_page_itself_are_a_menu() -> None:
    """The headings say it all again."""
    toc = '<div class="toc"><ul><li><a href="#a">Alpha section</a></li></ul></div>'
    page = f'<meta name="generator" content="Asciidoctor 2.0"><h1>T</h1>{toc}<p>{PROSE}</p>'
    assert read(page) == f"# T\n\n{PROSE.strip()}\n"


def test_a_section_about_menus_is_no_menu() -> None:
    """Its id is made of its heading, which links to itself."""
    menus = "".join(f'<p><a href="m{n}.html">Menu {n} of the window</a></p>' for n in range(9))
    page = (
        '<main><h1 id="t">Title<a href="#t">¶</a></h1>'
        f'<section id="menu"><h3>Menu<a href="#menu">¶</a></h3>{menus}</section></main>'
    )
    assert "### Menu\n\nMenu 0 of the window\n\n" in read(page)


def test_the_parts_of_a_manual() -> None:
    """Terms hold what they mean; code, captions, formulas and what unfolds are there."""
    tex = '<annotation encoding="application/x-tex">E = mc^2</annotation>'
    page = f"""<main><h1 id="c">Configuration<a href="#c">¶</a></h1><p>{PROSE}</p>
<dl><dt><code>timeout</code></dt><dd><p>Seconds to wait.</p></dd></dl>
<div class="admonition"><p>Warning</p><p>Never delete it.</p></div>
<details><summary>Why is it slow?</summary><p>It is not warm.</p></details>
<figure><img src="a.png"><figcaption>Figure 1: the layers</figcaption></figure>
<p>The formula <math><semantics><mi>E</mi>{tex}</semantics></math>
<span aria-hidden="true">E=mc2</span> is famous.</p>
<p># no heading</p><ol><li>First<p>More</p></li><li>Second</li></ol>
<pre>x = 1
y = 2</pre></main>"""
    assert read(page).removeprefix(f"# Configuration\n\n{PROSE.strip()}\n\n") == (
        "- `timeout`\n  Seconds to wait.\n\nWarning\n\nNever delete it.\n\nWhy is it slow?\n\n"
        "It is not warm.\n\nFigure 1: the layers\n\nThe formula $E = mc^2$ is famous.\n\n"
        "\\# no heading\n\n1. First\n  More\n2. Second\n\n```\nx = 1\ny = 2\n```\n"
    )


@pytest.mark.parametrize(("tag", "is_kept"), [("main", True), ("div", False)])
def test_a_main_part_of_links_is_contents(tag: str, is_kept: bool) -> None:
    """Without a declared main part, links beside a menu could be another menu."""
    links = "".join(f'<li><a href="{n}.html">Chapter {n} of the book</a></li>' for n in range(20))
    menu = '<nav><a href="/">Home</a></nav><footer>Imprint</footer>'
    page = f"<body>{menu}<{tag}><h1>Book</h1><p>{PROSE}</p><p>{PROSE}</p><p>{PROSE}</p>"
    page += f"<ul>{links * 3}</ul></{tag}></body>"
    assert ("- Chapter 7 of the book" in read(page)) == is_kept


def test_long_cells_are_whole() -> None:
    """A cell is cut at no length."""
    cell = "word " * 150 + "end"
    row = f"<tr><td>1</td><td>{cell}</td></tr>"
    table = f"<table><tr><th>a</th><th>b</th></tr>{row}</table>"
    page = f"<article><h1>T</h1><p>{PROSE * 4}</p>{table}</article>"
    assert f"| 1 | {cell} |" in read(page)


@pytest.mark.parametrize(
    "piece",
    [
        "<section><h2 id=a>T<a href=#a>¶</a></h2><p>word</p></section>",
        "<h2 id=b>T<a href=#c>¶</a></h2><p>word</p>",
        "<li><a href=b.html>word</a><ul><li>word</ul>",
        "<div class=menu><a accesskey=n href=b>Next</a></div>",
        "<span><div>word</div></span>",
        "<dl><dt>a<dd>b<dl><dt>c<dd>d</dl></dl>",
    ],
)
def test_manuals_are_read_in_linear_time(piece: str) -> None:
    """Twice the page takes about twice the time."""
    head = '<main><h1 id="t">Title<a href="#t">¶</a></h1>'
    assert_linear(lambda count: read(head + piece * count), 300, 600)
