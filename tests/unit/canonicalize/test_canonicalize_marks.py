"""What looks like markdown in a source that is none is text."""

import io
import zipfile

import pytest
from growth import assert_linear

from kb.intake.canonicalize import CanonicalizeInput, canonicalize, detect_mime
from kb.intake.canonicalize.blocks import escaped
from kb.intake.canonicalize.pdf.layout import LaidPage, page_text
from kb.intake.canonicalize.pdf.outline import with_headings

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
)
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)


def zipped(**parts: str) -> bytes:
    """An archive whose parts are named with `__` for a slash and `_x` for a dot."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in {"[Content_Types].xml": "<Types/>", **parts}.items():
            archive.writestr(name.replace("__", "/").replace("_x", ".x"), text)
    return buffer.getvalue()


def paragraph(text: str) -> str:
    """A paragraph of Word."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


SOURCES = {
    "a.eml": b"From: a@b.c\nTo: d@e.f\nSubject: S\n\nHi\n\n# 5 weirs\n",
    "a.html": b"<body><p># 5 weirs</p><p>x<br># 5 weirs</p></body>",
    "a.rtf": rb"{\rtf1 Hello\par # 5 weirs\par x\par}",
    "a.ics": b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:S\nDESCRIPTION:x\\n# 5 weirs\nEND:VEVENT\n",
    "a.vcf": b"BEGIN:VCARD\nFN:Ada\nNOTE:x\\n# 5 weirs\nEND:VCARD\n",
    "a.bib": b"@misc{a, title = {T}, abstract = {# 5 weirs}}",
    "a.docx": zipped(
        word__document_xml=f"<w:document {W}><w:body>{paragraph('# 5 weirs')}{paragraph('~~~')}"
        f"<w:tbl><w:tr><w:tc>{paragraph('# 7')}</w:tc></w:tr></w:tbl></w:body></w:document>"
    ),
    "a.odt": zipped(
        mimetype="application/vnd.oasis.opendocument.text",
        content_xml=f"<office:document-content {ODF}><office:body><office:text>"
        "<text:p># 5 weirs</text:p><table:table><table:table-row><table:table-cell><text:p># 7"
        "</text:p></table:table-cell></table:table-row></table:table></office:text></office:body>"
        "</office:document-content>",
    ),
    "a.pptx": zipped(
        ppt__presentation_xml=f'<p:presentation {A} xmlns:r="{RELATED}"><p:sldIdLst>'
        '<p:sldId r:id="r1"/></p:sldIdLst></p:presentation>',
        **{
            "ppt/_rels/presentation.xml.rels": "<Relationships "
            'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship '
            'Id="r1" Target="slides/slide1.xml" Type="x/slide"/></Relationships>'
        },
        ppt__slides__slide1_xml=f"<p:sld {A}><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r>"
        "<a:t># 5 weirs</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_text_that_looks_like_a_heading_is_none(name: str) -> None:
    """In no format whose own marks say what is a heading; in a cell it looks like none."""
    data = SOURCES[name]
    source = CanonicalizeInput(data=data, mime=detect_mime(data, name), name=name)
    lines = canonicalize(source).markdown.split("\n")
    assert "\\# 5 weirs" in lines
    assert "# 5 weirs" not in lines
    if name in ("a.docx", "a.odt"):
        assert "| # 7 |" in lines


def test_a_line_of_a_pdf_is_no_heading() -> None:
    """Only what a bookmark names is one."""
    pages = with_headings([LaidPage(["Before", "", "# 5 weirs", "", "After"], ())], ())
    assert page_text(pages[0]) == "Before\n\n\\# 5 weirs\n\nAfter"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a # b\n#tag\n    # code", "a # b\n#tag\n    # code"),
        ("# a\n###### b\n#\n####### c", "\\# a\n\\###### b\n\\#\n####### c"),
        ("```sh\n# code\n```\n# a", "```sh\n# code\n```\n\\# a"),
        ("~~~\n# a\n```\nb", "\\~~~\n\\# a\n\\```\nb"),
    ],
)
def test_code_between_fences_stays(text: str, plain: str) -> None:
    """A fence that nothing closes is text."""
    assert escaped(text) == plain
    assert escaped(plain) == plain


def test_marks_are_escaped_in_linear_time() -> None:
    """However many fences are left open."""
    text = "```a\n~~~b\n# c\n" * 10_000
    assert_linear(escaped, text, text * 2)
