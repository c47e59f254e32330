"""What of a page must keep its shape?"""

import pytest
from growth import assert_linear

from kb.intake.canonicalize.html import read

PROSE = "The quick brown fox jumps over the lazy dog, and then it rests in the sun. "
CODE = "pip install kb\n  kb add ."
PRE = f"<pre>{CODE}</pre>"
TABLE = (
    "<table><thead><tr><th>Code</th><th>Meaning</th></tr></thead>"
    "<tbody><tr><td>0</td><td>all is well</td></tr><tr><td>1</td><td>a|b</td></tr></tbody></table>"
)
FENCED = f"```\n{CODE}\n```"
PIPED = "| Code | Meaning |\n| --- | --- |\n| 0 | all is well |\n| 1 | a\\|b |"
NAV = '<nav><ul><li><a href="/">Home</a></li><li><a href="/a">About</a></li></ul></nav>'


def markdown(body: str) -> str:
    page = f"<html><head><title>Setup of it</title></head><body>{body}</body></html>"
    return read(page.encode(), "page.html").markdown


@pytest.mark.parametrize(
    "body",
    [
        f"<h1>Setup</h1>{PRE}{TABLE}",
        f"<h1>Setup</h1><p>{PROSE}</p>{PRE}{TABLE}",
        f"<h1>Setup</h1><p>{PROSE * 5}</p>{PRE}{TABLE}",
        f"{NAV}<main><h1>Setup</h1>{PRE}<p>{PROSE}</p>{TABLE}</main><footer>Imprint</footer>",
        f"{NAV}<article><h1>Setup</h1><p>{PROSE * 9}</p>{PRE}{TABLE}<p>{PROSE * 9}</p></article>",
        f"<div class=content><h1>Setup</h1><div>{PRE}</div><div><div>{TABLE}</div></div></div>",
    ],
)
def test_code_and_tables_keep_their_shape(body: str) -> None:
    """A page of any size keeps its heading, the lines of its code and the rows of its table."""
    text = markdown(body)
    assert FENCED in text
    assert PIPED in text
    assert "# Setup\n" in text
    assert text.index("# Setup\n") < text.index(FENCED)
    assert "kbblock" not in text


def test_only_headings_are_put_back_that_lead_to_something() -> None:
    """Headings that the extraction drops come back where they stood, and nothing else with them."""
    text = markdown(f"<h1>Setup</h1><p>{PROSE * 2}</p><h2>Codes</h2>{TABLE}<p>{PROSE}</p>")
    assert text == f"# Setup\n\n{(PROSE * 2).strip()}\n\n## Codes\n\n{PIPED}\n\n{PROSE.strip()}\n"


def test_what_is_lost_goes_where_it_stood() -> None:
    """A table that the extraction throws away, and one in the sidebar, which stays away."""
    lost = f'<div class="hidden-print share">{TABLE.replace("Code", "Sign")}</div>'
    text = markdown(
        f"<article><h1>Setup</h1><p>First. {PROSE * 9}</p><div class='attachment'>{TABLE}</div>"
        f"<p>Second. {PROSE * 9}</p></article><aside>{lost}</aside>"
    )
    assert text.index("First.") < text.index(PIPED) < text.index("Second.")
    assert "Sign" not in text


def test_what_is_no_table_of_data_is_left_to_the_extraction() -> None:
    """A menu in a table, a page in a cell, and the numbers of lines make no tables."""
    links = "".join(f'<tr><td><a href="/{n}">Link {n}</a></td><td>-</td></tr>' for n in range(9))
    assert "| --- |" not in markdown(f"<table>{links}</table><p>{PROSE * 9}</p>")
    cell = f"<table><tr><td>menu</td><td><p>{PROSE * 20}</p><p>{PROSE * 20}</p></td></tr></table>"
    assert "|" not in markdown(cell)
    numbered = f"<table><tr><td><pre>1\n2\n</pre></td><td>{PRE}</td></tr></table>"
    text = markdown(f"<h1>Setup</h1><p>{PROSE * 3}</p>{numbered}<p>{PROSE * 3}</p>")
    assert FENCED in text
    assert "```\n1" not in text


@pytest.mark.parametrize(
    ("code", "fenced"),
    [
        ("<pre><code class='language-py'>a = 1\nb = 2</code></pre>", "```py\na = 1\nb = 2\n```"),
        ("<div class='highlight-source-c'><pre>int <b>x</b>;</pre></div>", "```c\nint x;\n```"),
        ("<pre>one<br>two\tthree </pre>", "```\none\ntwo three\n```"),
        ("<pre>a ``` b\n\n  c</pre>", "````\na ``` b\n\n  c\n````"),
    ],
)
def test_code_is_fenced_with_its_language(code: str, fenced: str) -> None:
    """Lines, indents and the language that its class names are kept."""
    assert fenced in markdown(f"<h1>Setup</h1><p>{PROSE}</p>{code}")


def test_a_page_that_knows_the_names_is_read_all_the_same() -> None:
    """What looks like a name in the text of a page stays text."""
    text = markdown(f"<p>kbblock00000000n0x {PROSE} kbblock00000000n0z</p>{TABLE}")
    assert "kbblock00000000n0x" in text
    assert PIPED in text


@pytest.mark.parametrize("block", [TABLE, PRE, f"<aside>{TABLE}</aside>", f"<ul><li>{PRE}</ul>"])
def test_many_blocks_are_linear(block: str) -> None:
    """Twice the blocks are twice the work."""
    assert_linear(markdown, f"<p>{PROSE}</p>{block}" * 60, f"<p>{PROSE}</p>{block}" * 120)


def test_a_page_with_frames_keeps_to_its_article() -> None:
    """What stands below an article on a page with menus is none of it; a plain page is all text."""
    below = '<div class="teaser"><p>Something else to read, too.</p></div>'
    article = f"<div><h1>Setup</h1><p>{PROSE * 9}</p><p>{PROSE * 9}</p></div>{below}"
    assert "Something else" not in markdown(f"{NAV}<article>{article}</article>")
    assert "Something else" in markdown(f"<h1>Setup</h1><p>{PROSE}</p>{below}")


def test_menus_are_no_text_of_short_pages() -> None:
    """Not even where all visible text is taken; a page that is a menu stays one."""
    links = '<div role="navigation"><a href="n">Next</a></div><div class="navfooter">Up</div>'
    text = markdown(f"{NAV}{links}<div>Short but whole: {PROSE}</div>")
    assert text == f"Short but whole: {PROSE.strip()}\n"
    assert "About" in markdown(NAV)


def test_a_list_of_sections_is_no_list() -> None:
    """Headings within the items of a list stay headings, without the signs of their links."""
    item = f'<li><h2 id="a">Use<a href="#a">¶</a></h2><p>{PROSE * 3}</p></li>'
    assert "\n## Use\n" in markdown(f"<h1>Setup</h1><p>{PROSE}</p><ul>{item}{item}</ul>")


def reference(program: str, body: str) -> str:
    page = f'<html><head><meta name="generator" content="{program}"></head><body>{NAV}{body}</body>'
    return read(page.encode(), "page.html").markdown


def test_javadoc_keeps_its_summaries_and_members() -> None:
    """Grids are tables, and members without prose are kept; tabs and menus are not."""
    text = reference(
        "javadoc/ClassWriter",
        "<main><h1>Class A</h1><div role=tablist><button>All Methods</button></div>"
        '<div class="summary-table two-column-summary"><div class="table-header col-first">Method'
        '</div><div class="table-header col-last">Description</div><div class="col-first">'
        '<code>open(int n)</code></div><div class="col-last">Opens it.</div></div>'
        "<ul><li><section><h3>open</h3><div>public int open(int n)</div></section></li></ul>"
        "</main>",
    )
    assert text == (
        "# Class A\n\n| Method | Description |\n| --- | --- |\n| open(int n) | Opens it. |\n\n"
        "### open\n\npublic int open(int n)\n"
    )


def test_doxygen_keeps_its_code_and_signatures() -> None:
    """Lines of code lose their numbers, and a signature is one line of code."""
    text = reference(
        "Doxygen 1.9.4",
        '<div class="contents"><h2 class="memtitle"><a href="#x">&#9670;</a>col()</h2>'
        '<table class="memname"><tr><td>int A::col </td><td>(</td><td></td><td>)</td></tr></table>'
        '<div class="fragment"><div class="line"><span class="lineno">    1</span>int a;</div>'
        '<div class="line"><span class="lineno">    2</span>  a = 1;</div></div></div>',
    )
    assert text == "## col()\n\n```\nint A::col ()\n```\n\n```\nint a;\n  a = 1;\n```\n"
