"""What do formulas, remarks, units, boxes and unnamed chapters of office files and books say?"""

import struct
import sys
from pathlib import Path

import pytest
from growth import assert_linear
from test_canonicalize_formats import workbook_parts, zipped

from kb.intake.canonicalize import docx, epub, odf, xls, xlsx

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
from make_ole import _begin, _record, container

W = 'xmlns:w="urn:w" xmlns:m="urn:m"'
A = "http://schemas.openxmlformats.org/drawingml/2006/main"


def r(text: str) -> str:
    return f"<m:r><m:rPr/><m:t>{text}</m:t></m:r>"


SCRIPTS = f"<m:sub>{r('i')}</m:sub><m:sup>{r('n')}</m:sup><m:e>{r('k')}</m:e>"
PAIR = f"<m:e>{r('x')}</m:e><m:e>{r('y')}</m:e>"


def formula_of(math: str) -> str:
    body = f"<w:p><w:r><w:t>So </w:t></w:r><m:oMath>{math}</m:oMath></w:p>"
    document = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    return docx.read(zipped({"word/document.xml": document}), "a.docx").markdown


@pytest.mark.parametrize(
    ("math", "tex"),
    [
        (f"{r('E=m')}<m:sSup><m:e>{r('c')}</m:e><m:sup>{r('2')}</m:sup></m:sSup>", "E=mc^{2}"),
        (f"<m:f><m:num>{r('a')}</m:num><m:den>{r('b')}</m:den></m:f>", r"\frac{a}{b}"),
        (f"<m:rad><m:deg>{r('3')}</m:deg><m:e>{r('x')}</m:e></m:rad>", r"\sqrt[3]{x}"),
        (
            f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>{SCRIPTS}</m:nary>',
            "∑_{i}^{n} k",
        ),
        (
            f'<m:d><m:dPr><m:begChr m:val="["/></m:dPr>{PAIR}</m:d>',
            "[x, y)",
        ),
        (f"<m:m><m:mr><m:e>{r('1')}</m:e><m:e>{r('0')}</m:e></m:mr></m:m>", "1 & 0"),
    ],
)
def test_formulas_are_tex(math: str, tex: str) -> None:
    """Each part is said once, in its place in the line."""
    assert formula_of(math) == f"So ${tex}$\n"


def test_formulas_in_formulas_are_read_in_linear_time() -> None:
    """Twice the depth takes about twice the time."""

    def nested(depth: int) -> str:
        opens, closes = "<m:f><m:num>", "</m:num><m:den/></m:f>"
        return formula_of((opens * depth + r("x") + closes * depth) * 20)

    assert_linear(nested, 30, 60)


def test_remarks_of_opendocument_stand_in_brackets() -> None:
    """With who made them, and not when."""
    content = (
        "<d><body><text><p>Before<annotation><creator>Ada</creator><date>2020-01-01</date>"
        "<p>Check this</p></annotation> and after</p></text></body></d>"
    )
    found = odf.read(zipped({"content.xml": content}), "a.odt")
    assert found.markdown == "Before [Ada: Check this] and after\n"


def test_a_length_of_time_is_no_moment() -> None:
    """Hours may be more than a day has."""
    parts = workbook_parts('<row><c s="0"><v>1.5</v></c><c s="1"><v>0.25</v></c></row>')
    parts["xl/styles.xml"] = (
        '<s><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/></numFmts>'
        '<cellXfs><xf numFmtId="164"/><xf numFmtId="46"/></cellXfs></s>'
    )
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>",
        '<Relationship Id="r2" Type="x/styles" Target="styles.xml"/></Relationships>',
    )
    assert "| 36:00:00 | 6:00:00 |" in xlsx.read(zipped(parts), "a.xlsx").markdown


def test_what_lies_on_a_sheet_and_is_said_of_its_cells() -> None:
    """Text boxes, notes, and threads without Excel's advice."""
    parts = workbook_parts('<row><c t="str"><v>rent</v></c></row>')
    kinds = ("drawing", "comments", "threadedComment")
    lines = "".join(
        f'<Relationship Id="r{kind}" Type="x/{kind}" Target="{kind}.xml"/>' for kind in kinds
    )
    parts["xl/sheets/_rels/s.xml.rels"] = f"<Relationships>{lines}</Relationships>"
    parts["xl/sheets/drawing.xml"] = (
        f'<d xmlns:a="{A}"><a:p><a:r><a:t>Paid</a:t></a:r><a:r><a:t> late</a:t></a:r></a:p></d>'
    )
    note = '<comment ref="{}"><text><t>{}</t></text></comment>'.format
    parts["xl/sheets/comments.xml"] = (
        f"<c>{note('A1', '[Threaded comment] advice')}{note('B2', 'old note')}</c>"
    )
    thread = '<threadedComment ref="A1"><text>{}</text></threadedComment>'.format
    parts["xl/sheets/threadedComment.xml"] = f"<c>{thread('Too high?')}{thread('No.')}</c>"
    found = xlsx.read(zipped(parts), "a.xlsx").markdown
    assert found.endswith("Paid late\n\n- A1: Too high?\n\n- A1: No.\n\n- B2: old note\n")


def test_an_old_workbook_shows_shares_and_amounts() -> None:
    """By the styles of its cells; a workbook without any is not walked."""

    def style(number: int) -> bytes:
        return _record(0xE0, struct.pack("<HH16x", 0, number))

    euro = "#,##0.00 [$€-407]"
    form = struct.pack("<HHB", 164, len(euro), 1) + euro.encode("utf-16-le")
    numbers = b"".join(
        _record(0x203, struct.pack("<HHHd", 0, column, column, 0.125)) for column in range(3)
    )
    more = struct.pack("<HHHiHiH", 1, 0, 1, 50 << 2 | 2, 2, 7 << 2 | 2, 1)
    sheet = _begin(0x10) + numbers + _record(0xBD, more) + _record(0x0A, b"")
    styles = _record(0x41E, form) + style(0) + style(10) + style(164)
    bound = struct.pack("<BBBB", 0, 0, 1, 0) + b"S"
    place = len(_begin(5)) + len(styles) + 4 + 4 + len(bound) + 4
    book = _begin(5) + styles + _record(0x85, struct.pack("<I", place) + bound)
    data = container({"Workbook": book + _record(0x0A, b"") + sheet})
    assert xls.read(data, "a.xls").markdown == (
        "# S\n\n| 0.125 | 12.50% | €0.125 |\n| --- | --- | --- |\n| 5000.00% | €7 |  |\n"
    )


def test_chapters_without_a_heading_are_called_as_the_book_lists_them() -> None:
    """By the list of the newer form or of the older one; a heading of its own is enough."""
    page = "<html><body>{}<p>Text of it.</p></body></html>".format
    item = '<item id="{0}" href="{0}.xhtml" media-type="application/xhtml+xml"/>'.format
    point = '<navPoint><navLabel><text>{}</text></navLabel><content src="{}"/></navPoint>'.format
    ncx = f"<ncx><navMap>{point('The Weir', 'a.xhtml#x')}{point('Other', 'b.xhtml')}</navMap></ncx>"
    opf = (
        f"<package><manifest>{item('a')}{item('b')}{item('c')}"
        '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '</manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/></spine>'
        "</package>"
    )
    parts = {
        "META-INF/container.xml": '<c><rootfile full-path="p.opf"/></c>',
        "p.opf": opf,
        "toc.ncx": ncx,
        "a.xhtml": page(""),
        "b.xhtml": page("<h2>Its own</h2>"),
        "c.xhtml": page(""),
    }
    assert epub.read(zipped(parts), "a.epub").markdown == (
        "# The Weir\n\nText of it.\n\n## Its own\n\nText of it.\n\nText of it.\n"
    )
