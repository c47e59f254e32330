"""What does a word processor's document say?"""

import contextlib
import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import Encrypted, SourceError, Unparsable
from kb.intake.canonicalize import archive
from kb.intake.canonicalize.docx import read

NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def zipped(**parts: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in parts.items():
            target.writestr(name, text)
    return out.getvalue()


def rel(ident: str, target: str) -> str:
    kind = target.partition(".")[0].rpartition("/")[2]
    return f'<Relationship Id="{ident}" Type="http://x/{kind}" Target="{target}"/>'


def docx(body: str, **more: str) -> bytes:
    rels = "".join(rel(f"r{i}", f"{n}.xml") for i, n in enumerate(more))
    parts = {f"word/{n}.xml": f"<w:{n} {NS}>{text}</w:{n}>" for n, text in more.items()}
    return zipped(
        **{
            "word/document.xml": f"<w:document {NS}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": f"<Relationships>{rels}</Relationships>",
        },
        **parts,
    )


def p(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_headings_lists_tables_notes_and_comments_are_kept() -> None:
    """Each comes as markdown, in order, and the first heading is the title."""
    cell = "<w:tc>{}</w:tc>".format
    row = f"<w:tr>{cell(p('Name'))}{cell(p('a|b'))}</w:tr><w:tr>{cell(p('x'))}{cell(p('y'))}</w:tr>"
    number = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="1"/></w:numPr>'.format
    body = (
        p("Foxes", '<w:pStyle w:val="H1"/>')
        + p("one", number(0))
        + p("two", number(1))
        + f"<w:tbl>{row}</w:tbl>"
        + '<w:p><w:r><w:t>Red</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    )
    found = read(
        docx(
            body,
            styles='<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>',
            footnotes=f'<w:footnote w:id="2">{p("A note")}</w:footnote>',
            comments=f'<w:comment w:id="0" w:author="Ann">{p("Why?")}</w:comment>',
        ),
        "a.docx",
    )
    assert found.title == "Foxes"
    assert found.markdown == (
        "# Foxes\n\n- one\n\n  - two\n\n| Name | a\\|b |\n| --- | --- |\n| x | y |\n\n"
        "Red[^2]\n\n[^2]: A note\n\n[^c0]: Ann: Why?\n"
    )


def test_tracked_insertions_stay_and_deletions_go() -> None:
    """What the author sees with all changes accepted."""
    body = (
        "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    )
    assert read(docx(body), "a.docx").markdown == "new\n"


def test_a_doctype_a_password_and_a_bomb_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entity is followed, and each refusal is one of the documented errors."""
    evil = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'
    with pytest.raises(Unparsable, match="DOCTYPE"):
        read(zipped(**{"word/document.xml": evil}), "a.docx")
    with pytest.raises(Encrypted):
        read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a.docx")
    monkeypatch.setattr(archive, "UNPACKED_BYTES_MAX", 10_000)
    with pytest.raises(Unparsable, match="unpacks"):
        read(docx(p("a" * 20_000)), "a.docx")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_garbage_raises_only_documented_errors(noise: bytes, at: int) -> None:
    """Bytes changed anywhere give text or a SourceError."""
    data = docx(p("Foxes"))
    for broken in (noise, data[:at] + noise + data[at + len(noise) :]):
        with contextlib.suppress(SourceError):
            read(broken, "a.docx")


def test_boxes_in_boxes_are_read_once() -> None:
    """Nesting costs no more than its size."""
    body = "<w:r><w:t>deep</w:t></w:r>"
    for _ in range(50):
        body = f"<w:r><w:txbxContent><w:p>{body}</w:p></w:txbxContent></w:r>"
    assert read(docx(f"<w:p>{body}</w:p>"), "a.docx").markdown == "deep\n"
