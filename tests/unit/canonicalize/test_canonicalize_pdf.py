"""What does a PDF say?"""

import io
from typing import Any

import pypdf
import pytest
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from kb.errors import EmptySource, Encrypted, Unparsable
from kb.intake.canonicalize import CanonicalizeInput, canonicalize
from kb.intake.canonicalize.pdf import pages as pdf_pages
from kb.intake.canonicalize.pdf.layout import mended
from kb.intake.canonicalize.pdf.page import PdfPage, clean_line
from kb.intake.canonicalize.pdf.pdfium_file import PdfiumFile
from kb.intake.canonicalize.pdf.pypdf_file import PypdfFile
from kb.model.doc import Coverage
from kb.model.text import Canonical

FONT = DictionaryObject(
    {
        NameObject("/Type"): NameObject("/Font"),
        NameObject("/Subtype"): NameObject("/Type1"),
        NameObject("/BaseFont"): NameObject("/Helvetica"),
        NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
    }
)


def make_pdf(*pages: str, title: str | None = None, password: str | None = None) -> bytes:
    """A PDF with one line of text per line of each page."""
    writer = pypdf.PdfWriter()
    for text in pages:
        page = writer.add_blank_page(width=600, height=800)
        fonts = DictionaryObject({NameObject("/F1"): FONT})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        shown = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n") if line)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 50 750 Td {shown} ET".encode("cp1252") if shown else b"")
        page[NameObject("/Contents")] = writer._add_object(stream)
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def read(data: bytes, name: str = "scan.pdf") -> Canonical:
    return canonicalize(CanonicalizeInput(data=data, mime="application/pdf", name=name))


def test_pages_are_parted_by_form_feeds() -> None:
    """Page n is the n-th part of the markdown; coverage counts all and those with text."""
    result = read(make_pdf("First page", "Second page", title="A Report"))
    assert result == Canonical(
        markdown="First page\n\f\nSecond page\n",
        title="A Report",
        mime="application/pdf",
        coverage=Coverage(pages=2, pages_with_text=2),
    )


def test_pages_without_text_keep_their_number() -> None:
    """An empty page is counted, said, and still parts the others."""
    result = read(make_pdf("One", "", "Three"))
    assert result.markdown.split("\f")[2].strip() == "Three"
    assert result.coverage == Coverage(pages=3, pages_with_text=2)
    assert result.warnings == ("1 of 3 pages has no text",)


def test_scanned_pdf_is_an_empty_source() -> None:
    """No text at all is no success; the error says how many pages, and what to do."""
    with pytest.raises(EmptySource, match=r"2 pages, none with text.*ocrmypdf"):
        read(make_pdf("", ""))


def test_password() -> None:
    """An empty user password is tried; another one is asked for."""
    assert read(make_pdf("Locked lightly", password="")).markdown == "Locked lightly\n"
    with pytest.raises(Encrypted, match="password"):
        read(make_pdf("Locked", password="secret"))


@pytest.mark.parametrize("keep", [9, 200, 0.5])
def test_damage_is_unparsable(keep: float) -> None:
    """A cut or garbled file is refused in one line, never with another exception."""
    whole = make_pdf("Text")
    cut = whole[: int(keep if keep > 1 else keep * len(whole))]
    with pytest.raises((Unparsable, EmptySource)) as caught:
        read(cut)
    assert "\n" not in str(caught.value)


def fail_on(page: int | None, of: type[PdfiumFile | PypdfFile], patch: pytest.MonkeyPatch) -> None:
    """Have a reader fail on the page of this number, on each of them if None."""
    read_page = of.read_page

    def read_others(file: Any, number: int) -> PdfPage:
        if page in (None, number):
            raise KeyError("/Font")
        return read_page(file, number)

    patch.setattr(of, "read_page", read_others)


def test_one_bad_page_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that no reader reads counts as one without text; all of them are Unparsable."""
    data = make_pdf("Good", "Bad", "Fine")
    fail_on(1, PdfiumFile, monkeypatch)
    assert read(data).markdown == "Good\n\f\nBad\n\f\nFine\n"
    fail_on(1, PypdfFile, monkeypatch)
    result = read(data)
    assert result.markdown == "Good\n\f\n\n\f\nFine\n"
    assert result.warnings == ("page 2 cannot be read", "1 of 3 pages has no text")
    fail_on(None, PdfiumFile, monkeypatch)
    fail_on(None, PypdfFile, monkeypatch)
    with pytest.raises(Unparsable, match="not one of its pages"):
        read(data)


def test_bounds_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many pages or characters are cut, with a warning each."""
    monkeypatch.setattr(pdf_pages, "PAGES_MAX", 2)
    assert read(make_pdf("a", "b", "c")).warnings == ("only the first 2 of 3 pages were read",)
    monkeypatch.setattr(pdf_pages, "CHARS_MAX", 5)
    result = read(make_pdf("aaa", "bbb"))
    assert result.markdown == "aaa\n"
    assert result.warnings == ("cut after 1 page of 2: more than 5 characters",)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("A hyphen-\nated word", "A hyphenated word"),
        ("Pages 10-\n20", "Pages 10-\n20"),
        ("New-\nYork", "New-\nYork"),
        ("a line\nruns on", "a line runs on"),
        ("It ends.\nnext", "It ends.\nnext"),
        ("Title\nText", "Title\nText"),
        ("para\n\nother", "para\n\nother"),
        ("soft\u00ad\nhyphen", "soft\u00ad\nhyphen".replace("\u00ad\n", "")),
        ("o\ufb03ce \ufb01le", "office file"),
        ("a\x0cb\x00\ud800", "a b\ufffd"),
        ("--- * ---", ""),
    ],
)
def test_lines_are_mended(raw: str, clean: str) -> None:
    """Broken words and running sentences are joined, anything doubtful is left."""
    assert mended([clean_line(line) for line in raw.split("\n")]) == clean


@pytest.mark.parametrize(
    ("stated", "title"),
    [
        ("Geometry", "Geometry"),
        ("untitled", "Shown line"),
        ("Microsoft Word - report.doc", "Shown line"),
        ("thesis_final.tex", "Shown line"),
        ("(anonymous)", "Shown line"),
        ("0001759509-22-000016", "Shown line"),
        ("  ", "Shown line"),
        (None, "Shown line"),
    ],
)
def test_title(stated: str | None, title: str) -> None:
    """Metadata names the PDF unless it names a file or a program; then the first line does."""
    assert read(make_pdf("Shown line\nMore Text", title=stated)).title == title


def test_long_first_line_is_no_title() -> None:
    """A first line that is a paragraph leaves the name to the file."""
    assert read(make_pdf("word " * 30), "dir/paper.pdf").title == "paper"
