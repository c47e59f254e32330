"""What do sheets, slides, notebooks, books and mails say?"""

import io
import json
import zipfile

import pytest

from kb.errors import Encrypted, Unparsable
from kb.intake.canonicalize import (
    CanonicalizeInput,
    canonicalize,
    delimited,
    detect_mime,
    eml,
    epub,
    ipynb,
    odf,
    pptx,
    xlsx,
)
from kb.intake.canonicalize.parsers import BUILT_IN, reader
from kb.model.config.sections import EXTENSIONS
from kb.model.sheet import cells_at

R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'

TITLE = '<ph type="title"/>'


def zipped(parts: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in parts.items():
            target.writestr(name, text)
    return out.getvalue()


def rels(kind: str, target: str) -> str:
    return (
        f'<Relationships><Relationship Id="r1" Type="x/{kind}" Target="{target}"/></Relationships>'
    )


def slides(slide: str) -> dict[str, str]:
    return {
        "ppt/presentation.xml": f'<p {R}><sldId r:id="r1"/></p>',
        "ppt/_rels/presentation.xml.rels": rels("slide", "slides/s.xml"),
        "ppt/slides/s.xml": slide,
    }


def workbook_parts(rows: str) -> dict[str, str]:
    return {
        "xl/workbook.xml": f'<w {R}><sheet name="Costs" r:id="r1"/></w>',
        "xl/_rels/workbook.xml.rels": rels("worksheet", "sheets/s.xml"),
        "xl/sheets/s.xml": f"<worksheet>{rows}</worksheet>",
    }


def workbook(rows: str) -> bytes:
    return zipped(workbook_parts(rows))


def test_a_sheet_is_a_table_below_its_name() -> None:
    """Its header is the first row, gaps keep their column, and the file's name is the title."""
    cell = '<c r="{}" t="str"><v>{}</v></c>'.format
    rows = (
        f"<row>{cell('A1', 'Item')}{cell('B1', 'Size')}{cell('C1', 'Cost')}</row>"
        f'<row>{cell("A2", "Axe")}<c r="C2"><v>12.5</v></c></row>'
    )
    found = xlsx.read(workbook(rows), "tools.xlsx")
    assert found.title == "tools"
    assert found.markdown == (
        "# Costs\n\n| Item | Size | Cost |\n| --- | --- | --- |\n| Axe |  | 12.5 |\n"
    )


def test_rows_know_where_they_stand_in_their_sheet() -> None:
    """By the numbers of the file, over rows that are empty, in words that a sheet takes."""
    cell = '<row r="{0}"><c r="B{0}" t="str"><v>{1}</v></c></row>'.format
    rows = "".join(cell(number, word) for number, word in ((3, "a"), (4, "b"), (5, "c"), (90, "d")))
    found = xlsx.read(workbook(rows), "a.xlsx")
    lines = found.markdown.split("\n")
    for number, word in ((3, "a"), (5, "c"), (90, "d")):
        line = lines.index(f"| {word} |") + 1
        assert cells_at(found.sheet_rows, line, line) == f"Costs!B{number}:B{number}"
    assert cells_at(found.sheet_rows, 1, len(lines)) == "Costs!B3:B90"
    assert cells_at(found.sheet_rows, 1, 2) is None


def test_repeats_of_an_open_sheet_count_as_rows() -> None:
    """What is empty makes no row and no column, and moves what comes after it."""
    content = """<d><body><spreadsheet><table name="My Rent">
        <table-row number-rows-repeated="1000"><table-cell number-columns-repeated="900"/>
        </table-row>
        <table-row><table-cell number-columns-repeated="100"/><table-cell><p>x</p></table-cell>
        </table-row><table-row><table-cell/></table-row>
        <table-row number-rows-repeated="2"><table-cell><p>y</p></table-cell></table-row>
        </table></spreadsheet></body></d>"""
    found = odf.read(zipped({"content.xml": content}), "a.ods")
    assert found.markdown == "# My Rent\n\n|  | x |\n| --- | --- |\n| y |  |\n| y |  |\n"
    assert cells_at(found.sheet_rows, 3, 3) == "'My Rent'!A1001:CW1001"
    assert cells_at(found.sheet_rows, 5, 6) == "'My Rent'!A1003:CW1004"


def test_what_stands_above_a_table_is_not_its_header() -> None:
    """Rows of one cell are paragraphs, and have their places, too."""
    words = (("A", "# Annual  report"), ("A", "all in €"), ("A", "plot"), ("B", "t"), ("C", "rent"))
    cell = '<c r="{}{}" t="str"><v>{}</v></c>'.format
    rows = ""
    for row, low, high in ((1, 0, 1), (3, 1, 2), (4, 2, 5), (5, 2, 5)):
        cells = "".join(cell(column, row, word) for column, word in words[low:high])
        rows += f'<row r="{row}">{cells}</row>'
    found = xlsx.read(workbook(rows), "a.xlsx")
    assert found.markdown == (
        "# Costs\n\n\\# Annual report\n\nall in €\n\n"
        "| plot | t | rent |\n| --- | --- | --- |\n| plot | t | rent |\n"
    )
    at = [cells_at(found.sheet_rows, line, line) for line in (3, 5, 7, 8, 9)]
    assert at == [f"Costs!A{row}:C{row}" if row else None for row in (1, 3, 4, 0, 5)]


def test_shares_and_amounts_are_as_shown() -> None:
    """A percentage and a currency are part of what a cell says; its digits stay as stored."""
    forms = (
        ("9", ""),
        ("164", "0.0\\%"),
        ("165", "0.0%"),
        ("166", "#,##0.00 [$€-407];[RED]-#,##0.00 [$€-407]"),
        ("167", "&quot;£&quot;#,##0"),
        ("168", "[$CHF] 0.00"),
        ("169", "0.00"),
    )
    codes = "".join(f'<numFmt numFmtId="{i}" formatCode="{code}"/>' for i, code in forms[1:])
    styles = "".join(f'<xf numFmtId="{i}"/>' for i, _ in forms)
    cells = "".join(f'<c s="{at}"><v>0.125</v></c>' for at in range(len(forms)))
    parts = workbook_parts(f"<row>{cells}</row>")
    parts["xl/styles.xml"] = f"<s><numFmts>{codes}</numFmts><cellXfs>{styles}</cellXfs></s>"
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>",
        '<Relationship Id="r2" Type="x/styles" Target="styles.xml"/></Relationships>',
    )
    found = xlsx.read(zipped(parts), "a.xlsx")
    shown = found.markdown.split("\n")[2]
    assert shown == "| 12% | 0.125 | 12.5% | €0.125 | £0.125 | CHF 0.125 | 0.125 |"


def test_a_million_empty_rows_are_nothing() -> None:
    """Rows without values make no line, and the workbook is known by its name."""
    found = xlsx.read(workbook("<row/>" * 1_048_576), "a.xlsx")
    assert (found.title, found.markdown, found.by_name) == ("a", "Workbook without text\n", True)


def test_a_document_without_text_is_known_by_its_name() -> None:
    """As slides that are pictures are; the pictures are counted."""
    slide = '<s xmlns:x="x"><cSld><spTree><pic/></spTree></cSld></s>'
    picture = {f"ppt/media/image{n}.jpg": "" for n in (1, 2)}
    found = pptx.read(zipped(slides(slide) | picture), "Trip to Graz.pptx")
    assert (found.title, found.by_name) == ("Trip to Graz", True)
    assert found.markdown == "Slides without text, 2 pictures\n"
    empty = odf.read(zipped({"content.xml": "<d><body><text/></body></d>"}), "Empty.odt")
    assert (empty.title, empty.markdown) == ("Empty", "Document without text\n")


@pytest.mark.parametrize(
    ("stated", "title"),
    [
        ("PowerPoint Presentation", "Weirs"),
        ("PowerPoint-Präsentation", "Weirs"),
        ("Présentation PowerPoint", "Weirs"),
        ("PowerPoint プレゼンテーション", "Weirs"),
        ("Presentation", "Weirs"),
        ("weirs-final.pptx", "Weirs"),
        ("Intro to PowerPoint", "Intro to PowerPoint"),
    ],
)
def test_what_a_program_calls_new_slides_is_no_title(stated: str, title: str) -> None:
    """The title of the first slide is; in each language."""
    body = "<txBody><p><r><t>Weirs</t></r></p></txBody>"
    slide = (
        f"<s><cSld><spTree><sp><nvSpPr><nvPr>{TITLE}</nvPr></nvSpPr>{body}</sp></spTree></cSld></s>"
    )
    core = {"docProps/core.xml": f"<c><title>{stated}</title></c>"}
    assert pptx.read(zipped(slides(slide) | core), "a.pptx").title == title


def test_slides_of_an_open_presentation_that_say_nothing_have_no_heading() -> None:
    """The numbers of the others stay."""
    content = "<d><body><presentation><page/><page><p>Weirs</p></page></presentation></body></d>"
    assert odf.read(zipped({"content.xml": content}), "a.odp").markdown == "# Slide 2\n\nWeirs\n"


def test_charts_are_tables_and_diagrams_are_lists() -> None:
    """A row for each category, a column for each series; a diagram has words alone."""
    point = '<pt idx="{}"><v>{}</v></pt>'.format
    series = "<ser><tx><v>{}</v></tx><cat>{}</cat><val>{}</val></ser>".format
    months = point(0, "May") + point(1, "June")
    chart = (
        "<c><chart><title><t>Milk</t></title><plotArea>"
        + series("2025", months, point(0, 4) + point(1, 5.5))
        + series("2026", months, point(1, 7))
        + "</plotArea></chart></c>"
    )
    diagram = "<d><p><t>Plan</t></p><p><t>Do</t></p></d>"
    parts = slides('<s xmlns:x="x"><cSld><spTree/></cSld></s>') | {
        "ppt/slides/_rels/s.xml.rels": '<Relationships><Relationship Id="r1" Type="x/chart" '
        'Target="../charts/c.xml"/><Relationship Id="r2" Type="x/diagramData" '
        'Target="../diagrams/d.xml"/></Relationships>',
        "ppt/charts/c.xml": chart,
        "ppt/diagrams/d.xml": diagram,
    }
    assert pptx.read(zipped(parts), "a.pptx").markdown == (
        "# Slide 1\n\nChart: Milk\n\n|  | 2025 | 2026 |\n| --- | --- | --- |\n"
        "| May | 4 |  |\n| June | 5.5 | 7 |\n\n- Plan\n- Do\n"
    )


@pytest.mark.parametrize(
    ("name", "format_of"),
    [
        *((f"a.{ending}", "wordprocessingml.document") for ending in ("docx", "docm", "dotx")),
        *((f"a.{ending}", "spreadsheetml.sheet") for ending in ("xlsx", "xlsm", "xltx")),
        *(
            (f"a.{ending}", "presentationml.presentation")
            for ending in ("pptx", "pptm", "ppsx", "potx")
        ),
    ],
)
def test_documents_with_macros_and_templates_are_read_as_documents(
    name: str, format_of: str
) -> None:
    """Also where a document of another kind is in them."""
    folder = {"w": "word", "s": "xl", "p": "ppt"}[format_of[0]]
    inner = b"PK\x03\x04" + bytes(26) + b"xl/workbook.xml"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        target.writestr("[Content_Types].xml", "<Types/>")
        for part, data in ((f"{folder}/embeddings/a.xlsx", inner), (f"{folder}/a.xml", b"<a/>")):
            target.writestr(part, data)
    assert detect_mime(out.getvalue(), name).endswith(format_of)
    assert detect_mime(out.getvalue(), "download").endswith(format_of)


def test_slides_have_their_numbers_and_notes() -> None:
    """The title stands in the heading, the notes below."""
    shape = (
        "<sp><nvSpPr><nvPr>{}</nvPr></nvSpPr><txBody><p><r><t>{}</t></r></p></txBody></sp>".format
    )
    data = zipped(
        {
            "ppt/presentation.xml": f'<p {R}><sldId r:id="r1"/></p>',
            "ppt/_rels/presentation.xml.rels": rels("slide", "slides/s.xml"),
            "ppt/slides/s.xml": "<s>" + shape(TITLE, "Foxes") + shape("", "Red") + "</s>",
            "ppt/slides/_rels/s.xml.rels": rels("notesSlide", "n.xml"),
            "ppt/slides/n.xml": f"<s>{shape('', 'Say hello')}</s>",
        }
    )
    found = pptx.read(data, "a.pptx")
    assert found.title == "Foxes"
    assert found.markdown == "# Slide 1: Foxes\n\nRed\n\nNotes:\n\nSay hello\n"


def test_a_notebook_keeps_code_and_text_and_drops_images() -> None:
    """The fence names the kernel's language; no base64 gets in."""
    output = {"data": {"text/plain": ["2"], "image/png": "iVBOR"}, "output_type": "display_data"}
    book = {
        "cells": [
            {"cell_type": "markdown", "source": ["# Sums"]},
            {"cell_type": "code", "source": "1+1", "outputs": [output]},
        ],
        "metadata": {"language_info": {"name": "python"}},
    }
    found = ipynb.read(json.dumps(book).encode(), "a.ipynb")
    assert found.title == "Sums"
    assert found.markdown == "# Sums\n\n```python\n1+1\n```\n\n```text\n2\n```\n"
    with pytest.raises(Unparsable):
        ipynb.read(b"[" * 100_000, "a.ipynb")


def test_a_book_is_read_by_its_spine() -> None:
    """The spine's order counts, not the manifest's; the metadata gives title and date."""
    page = "<!DOCTYPE html><html><body><h1>{}</h1><p>Text</p></body></html>".format
    item = '<item id="{0}" href="{0}.xhtml" media-type="application/xhtml+xml"/>'.format
    opf = (
        f"<package><metadata><title>Tale</title><creator>Ann</creator><date>2020-01-02</date>"
        f"</metadata><manifest>{item('b')}{item('a')}</manifest>"
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    data = zipped(
        {
            "META-INF/container.xml": '<c><rootfile full-path="O/p.opf"/></c>',
            "O/p.opf": opf,
            "O/a.xhtml": page("One"),
            "O/b.xhtml": page("Two"),
        }
    )
    found = epub.read(data, "a.epub")
    assert (found.title, found.date) == ("Tale", "2020-01-02")
    assert found.markdown == "By Ann\n\n# One\n\nText\n\n# Two\n\nText\n"


def test_a_locked_book_is_refused_by_name() -> None:
    """A chapter whose bytes are encrypted is no text, whatever they look like; a locked font is."""
    parts = {
        "META-INF/container.xml": '<c><rootfile full-path="OEBPS/p.opf"/></c>',
        "META-INF/encryption.xml": '<e><CipherReference URI="OEBPS/a%20b.xhtml"/></e>',
        "OEBPS/p.opf": '<p><item id="c" href="a%20b.xhtml" media-type="application/xhtml+xml"/>'
        '<itemref idref="c"/></p>',
        "OEBPS/a b.xhtml": "\x8b\u0416\u2593 what no one wrote",
    }
    with pytest.raises(Encrypted, match=r"^a\.epub: its chapters are locked"):
        epub.read(zipped(parts), "a.epub")
    parts["META-INF/encryption.xml"] = '<e><CipherReference URI="OEBPS/font.otf"/></e>'
    assert "what no one wrote" in epub.read(zipped(parts), "a.epub").markdown


def test_a_mail_sets_apart_what_it_quotes() -> None:
    """Subject, sender and date come first; the attachment is named, the quote comes last."""
    mail = (
        "From: a@example.org\nSubject: =?utf-8?q?Caf=C3=A9?=\n"
        "Date: Thu, 02 Jan 2020 03:04:05 +0000\nMIME-Version: 1.0\n"
        "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\n"
        "Yes.\n\n> a\n> b\n> c\n--B\nContent-Type: image/png\n"
        "Content-Disposition: attachment; filename=p.png\n\nAAAA\n--B--\n"
    )
    found = eml.read(mail.encode(), "a.eml")
    assert (found.title, found.date) == ("Café", "2020-01-02T03:04:05+00:00")
    assert "\n\nYes.\n\nAttachments: p.png\n" in found.markdown
    assert found.markdown.endswith("\n\n## Earlier mail\n\na\nb\nc\n")
    with pytest.raises(Unparsable):
        eml.read(b"no mail", "a.eml")


def test_a_text_of_opendocument_keeps_headings_and_lists() -> None:
    """Headings by their level, items with a dash."""
    item = "<list><list-item><p>Red</p></list-item></list>"
    head = '<h outline-level="2">Foxes</h>'
    body = f"<body><text>{head}{item}</text></body>"
    found = odf.read(zipped({"content.xml": f"<d>{body}</d>"}), "a.odt")
    assert (found.title, found.markdown) == ("Foxes", "## Foxes\n\n- Red\n")


def test_rows_keep_their_header_in_each_block() -> None:
    """A passage of a long table stands alone."""
    rows = "\n".join(f"{n};x" for n in range(120))
    found = delimited.read(f"No;Kind\n{rows}\n".encode(), "a.csv")
    assert found.markdown.count("| No | Kind |") == 3
    assert found.markdown.endswith("| 119 | x |\n")


def wide(header: int, rows: int) -> bytes:
    """A CSV file whose rows are far shorter than its header."""
    return (",".join("x" * 9 for _ in range(header)) + "\n" + "a\n" * rows).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.csv", wide(10_000, 20_000)), ("b.csv", b"x" * 100_000 + b",\n" + b"a\n" * 100_000)],
)
def test_a_file_that_makes_too_much_text_is_refused(name: str, data: bytes) -> None:
    """Before the text is made: what repeats for each block counts each time."""
    with pytest.raises(Unparsable, match="makes more than 67,108,864 characters"):
        canonicalize(CanonicalizeInput(data=data, mime="text/csv", name=name))


def test_hostile_mails_and_notebooks() -> None:
    """A header that cannot be decoded stands as it is; no base64, and no fence is broken out of."""
    mail = eml.read(b"From: a@b.c\nSubject: =?utf-8?b?a?=\n\nHello\n", "a.eml")
    assert mail.title == "=?utf-8?b?a?="
    cells = [
        {"cell_type": "markdown", "source": "![cat](data:image/png;base64,AAAA) purrs"},
        {"cell_type": "code", "source": "1", "outputs": []},
    ]
    language = {"language_info": {"name": "x\n```\n# Title"}}
    data = json.dumps({"cells": cells, "metadata": language}).encode()
    assert ipynb.read(data, "a.ipynb").markdown == "cat purrs\n\n```\n1\n```\n"


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_parser_has_a_reader(name: str) -> None:
    """The row names a function, and its formats are those that its endings mean."""
    parser = BUILT_IN[name]
    assert callable(reader(parser))
    assert set(parser.extensions.values()) <= set(parser.mimes)


def test_the_settings_name_every_ending() -> None:
    """As long as nothing else is set, folders are searched for all that kb reads."""
    endings = [ending for parser in BUILT_IN.values() for ending in parser.extensions]
    assert sorted(EXTENSIONS) == sorted(endings)
