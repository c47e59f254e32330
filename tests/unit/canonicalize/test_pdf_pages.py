"""What of a PDF is not in the text of its pages, and which pages have no text that is one?"""

import pypdf
import pytest
from pdf_shapes import (
    at,
    check_box,
    drawn,
    font,
    lines,
    text_field,
    with_fields,
    with_notes,
    writer,
    written,
)
from pypdf.generic import DecodedStreamObject, NameObject

from kb.errors import EmptySource
from kb.intake.canonicalize import CanonicalizeInput, canonicalize, page_time
from kb.intake.canonicalize.page_time import PageTime
from kb.intake.canonicalize.pdf import pages as pdf_pages
from kb.intake.canonicalize.pdf.noise import is_noise
from kb.intake.canonicalize.pdf.pdfium_file import PdfiumFile
from kb.model.doc import Coverage
from kb.model.text import Canonical

WORDS = lines(["The roof was mended in spring, and the cellar is dry since then."])
NO_NAMES = font({65: "/uniE001", 66: "/uniE002", 67: "/uniE003"})
GLYPHS = lines(["ABCABC ABBA CAB BACA"] * 3)


def read(data: bytes) -> Canonical:
    return canonicalize(CanonicalizeInput(data=data, mime="application/pdf", name="page.pdf"))


def test_fields_of_a_form_are_read() -> None:
    """A field is a line with its name and value; boxes count if checked, passwords never."""
    fields = [
        text_field("form.street[0]", "Mill Lane 4\nOldtown"),
        text_field("f7", "1931", shown_name="Year of building"),
        text_field("pin", "hidden", flags=1 << 13),
        text_field("phone", ""),
        check_box("insured", is_on=True),
        check_box("rented", is_on=False),
    ]
    assert read(with_fields(writer(WORDS), fields)).markdown.split("\n\n")[1] == (
        "street: Mill Lane 4\nOldtown\nYear of building: 1931\ninsured: Yes\n"
    )


def test_a_form_alone_is_no_scan() -> None:
    """A form whose page has no text of its own is read, by its fields' names if none is filled."""
    assert read(with_fields(writer(""), [text_field("owner", "Ada")])).markdown == "owner: Ada\n"
    assert read(with_fields(writer(""), [text_field("owner", "")])).markdown == "owner\n"


def test_notes_are_read_and_links_are_not() -> None:
    """What someone noted on a page ends it."""
    assert read(with_notes(writer(WORDS))).markdown.split("\n\n")[1] == (
        "Ask the surveyor\nRoof is new\n"
    )


def test_attached_files_are_named() -> None:
    """Names of attached files are found; that the files are not read is said."""
    made = writer(WORDS)
    made.add_attachment("costs.csv", b"1,2")
    result = read(written(made))
    assert result.markdown.endswith("\n\nAttached file: costs.csv\n")
    assert result.warnings == ("1 attached file is not read",)


@pytest.mark.parametrize(
    ("stated", "date"),
    [
        ("D:20220506153012+02'00'", "2022-05-06T15:30:12+02:00"),
        ("D:20220506153012Z", "2022-05-06T15:30:12Z"),
        ("D:20220506", "2022-05-06"),
        ("D:20221399", None),
        ("2022-05-06", "2022-05-06"),
        ("yesterday", None),
    ],
)
def test_the_date_is_the_files_own(stated: str, date: str | None) -> None:
    """The day of creation in the metadata dates the document, where it is a day."""
    made = writer(WORDS)
    made.add_metadata({"/CreationDate": stated})
    assert read(written(made)).date == date


def test_what_pdfium_cannot_open_pypdf_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that pdfium refuses is read all the same."""
    monkeypatch.setattr(PdfiumFile, "__init__", refuse)
    assert read(drawn(WORDS)).markdown.startswith("The roof was mended")


def refuse(_file: PdfiumFile, _data: bytes) -> None:
    raise RuntimeError("Data format error")


def test_glyphs_without_letters_are_left_out() -> None:
    """A page of glyphs is left out and said; one of words beside it is read."""
    made = writer(WORDS, GLYPHS)
    made.pages[1]["/Resources"]["/Font"][NameObject("/F1")] = NO_NAMES
    result = read(written(made))
    assert result.markdown.split("\f")[1].strip() == ""
    assert result.coverage == Coverage(pages=2, pages_with_text=1)
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith(
        "1 of 2 pages is left out, since the letters make no words"
    )
    with pytest.raises(EmptySource, match=r"its fonts do not say which letters.*--force-ocr"):
        read(drawn(GLYPHS, fonts=NO_NAMES))


def test_the_other_reader_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pdfium finds noise and pypdf words, the words are taken, and nothing is said."""
    data = drawn(WORDS)
    monkeypatch.setattr(pdf_pages, "is_noise", lambda text: "roof" in text and "\n" not in text)
    monkeypatch.setattr(
        pypdf.PageObject, "extract_text", lambda _page: "The roof is\nread by the other"
    )
    result = read(data)
    assert result.markdown == "The roof is read by the other\n"
    assert result.warnings == ()


def test_rare_characters_do_not_move_the_others() -> None:
    """Characters outside of the first plane are read, and columns after them are found."""
    rows = (at(50, 700, "AAAA"), at(300, 700, "first"), at(50, 686, "AA"), at(300, 686, "second"))
    made = writer("".join(rows))
    codes = DecodedStreamObject()
    codes.set_data(
        b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange "
        b"1 beginbfchar <41> <D835DC65> endbfchar endcmap"
    )
    made.pages[0]["/Resources"]["/Font"]["/F1"][NameObject("/ToUnicode")] = made._add_object(codes)
    rare = "\U0001d465"
    assert read(written(made)).markdown == f"{rare * 4} | first\n{rare * 2} | second\n"


def test_letters_spaced_apart_become_words() -> None:
    """Words are made of lone letters where wider spaces part them; else the page is left out."""
    spaced = lines(["H e l l o  w o r l d  o f  l e t t e r s"] * 2)
    assert read(drawn(spaced)).markdown == "Hello world of letters\nHello world of letters\n"
    with pytest.raises(EmptySource, match="none with text that makes words"):
        read(drawn(lines(["H e l l o w o r l d o f l e t t e r s"] * 2)))


ENGLISH = "The quick brown fox jumps over the lazy dog while the cat sleeps on the mat. " * 6


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        (ENGLISH, False),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy v čtvrtek ráno. " * 8, False),
        ("Trăm năm trong cõi người ta chữ tài chữ mệnh khéo là ghét nhau. " * 8, False),
        ("Съешь ещё этих мягких французских булок, да выпей чаю. " * 5, False),
        ("天地玄黃 宇宙洪荒 日月盈昃 " * 10, False),
        ("你 好 世 界 再 见 朋 友 们 大 家", False),
        ("1,204 | 3,551 | 7.25 % | 12\n" * 20, False),
        ("f(x) = a x + b where a and b are the numbers of the line and x is free", False),
        ("\\index . . . . . . . 7, 9\n" * 20, False),
        ("a | b | c | d\n" * 20, False),
        ("A\nB\nC\nD\n" * 20, False),
        ("Donaudampfschifffahrtsgesellschaftskapitän heißt er", False),
        ("", False),
        ("/g3/g152/g77 /g3/g152 /g77/g3/g3/g152", True),
        ("(cid:3)(cid:41)(cid:12) (cid:7)", True),
        ("\ue001\ue002\ue003 \ue001\ue004", True),
        ("\ufffd\ufffd\ufffd a \ufffd\ufffd", True),
        ("H e l l o w o r l d o f l e t t e r s", True),
        (ENGLISH.replace(" ", ""), True),
        (
            "".join(chr((ord(c) - 94) % 26 + 97) if c.isalpha() else c for c in ENGLISH.lower()),
            True,
        ),
    ],
)
def test_noise_is_told_from_text(text: str, noise: bool) -> None:
    """Text of any script, numbers and formulas are text; glyphs and wrong letters are not."""
    assert is_noise(text) is noise


def test_a_long_file_is_cut_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that were read are kept, and how many they are is said."""
    page_time.bound(PageTime(30, lambda _cpu_s: None))
    spent = iter([False, False, True])
    monkeypatch.setattr(PageTime, "is_spent", lambda _self: next(spent))
    try:
        result = read(drawn(*[WORDS] * 9))
    finally:
        page_time.bound(None)
    assert result.markdown.count("\f") == 2
    assert result.warnings == ("cut after 3 pages of 9: reading took 31 s of processor time",)
    assert result.coverage == Coverage(pages=9, pages_with_text=3)


def test_pages_that_were_read_give_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page gives a hundredth of the start's time, up to twenty times as much in all."""
    used = [0.0]
    monkeypatch.setattr(page_time.time, "process_time", lambda: used[0])
    armed: list[float] = []
    clock = PageTime(30, armed.append)
    for _ in range(100):
        clock.page_read()
    assert clock.limit_s == 60
    used[0] = 53.0
    assert not clock.is_spent()
    used[0] = 55.0
    assert clock.is_spent()
    for _ in range(5_000):
        clock.page_read()
    assert clock.limit_s == 600
    assert (armed[0], armed[100], armed[-1]) == (30, 60, 545)
    used[0] = 900.0
    clock.page_read()
    assert armed[-1] > 0
