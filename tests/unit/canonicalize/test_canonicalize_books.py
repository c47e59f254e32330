"""What do books for Kindle and drawings of Visio say?"""

import struct
import sys
from pathlib import Path

import pytest

from kb.errors import Unparsable
from kb.intake.canonicalize import CanonicalizeInput, canonicalize, detect_mime
from kb.intake.canonicalize.kindle import unpacked
from kb.model.text import Canonical

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
from make_example_files import kindle, packed, visio


def read(data: bytes, name: str) -> Canonical:
    mime = detect_mime(data, name)
    return canonicalize(CanonicalizeInput(data=data, mime=mime, name=name))


def test_a_book_for_kindle_is_its_text() -> None:
    """Below its authors; its title and its format are its own."""
    book = read(kindle(), "B00X.azw3")
    assert book.markdown == (
        "By A. Warden\n\n# Owls\n\nThe barn owl nests in the loft from April on.\n"
    )
    assert (book.title, book.mime) == ("Birds of the loft", "application/x-mobipocket-ebook")


@pytest.mark.parametrize(("at", "value"), [(0, 17_480), (12, 2)])
def test_a_locked_book_is_known_by_its_name(at: int, value: int) -> None:
    """And so is one that Huffman's codes pack; a warning says so."""
    data = bytearray(kindle())
    struct.pack_into(">H", data, struct.unpack_from(">I", data, 78)[0] + at, value)
    book = read(bytes(data), "B00X.azw")
    assert (book.title, book.by_name, len(book.warnings)) == (
        "A. Warden \u2013 Birds of the loft",
        True,
        1,
    )


def test_a_book_that_is_cut_off_is_refused() -> None:
    """Its records lie behind its end."""
    with pytest.raises(Unparsable, match="cut off"):
        read(kindle()[:200], "a.mobi")


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (b"ab\xe3d", b"ab cd"),
        (b"\x03\xe2\x82\xac!", "\u20ac!".encode()),
        (b"abc" + (0x8000 | 3 << 3 | 4).to_bytes(2, "big"), b"abcabcabca"),
        (b"a" + (0x8000 | 9 << 3).to_bytes(2, "big") + b"b", b"ab"),
        (b"a\x80", b"a"),
    ],
)
def test_what_palmdoc_packs(stored: bytes, text: bytes) -> None:
    """Letters, a blank with a letter, bytes that are counted, and what stood before."""
    assert unpacked(stored) == text


def test_a_packed_bomb_is_bounded() -> None:
    """Two bytes make ten at most."""
    assert len(unpacked(b"aaaaaaaaaa" + (0x8000 | 1 << 3 | 7).to_bytes(2, "big") * 1000)) == 10_010


def test_a_drawing_is_its_pages() -> None:
    """The words of each shape below the name of the page."""
    drawing = read(visio(), "rain.vsdx")
    assert drawing.markdown == "# Rain water\n\nRain barrel\n\nOverflow to the pond\n"
    assert drawing.title == "rain"


def test_fields_of_shapes_are_said() -> None:
    """By their labels; empty and hidden ones are not."""
    row = "<Row N='{0}'><Cell N='Label' V='{1}'/><Cell N='Value' V='{2}'/>{3}</Row>"
    rows = (
        row.format("a", "Serial number", "X-17", "")
        + row.format("b", "Empty", "", "")
        + row.format("c", "Hidden", "y", "<Cell N='Invisible' V='1'/>")
    )
    shape = f"<Shape><Section N='Property'>{rows}</Section><Text>Pump</Text></Shape>"
    parts = {"visio/pages/page1.xml": f"<PageContents><Shapes>{shape}</Shapes></PageContents>"}
    assert read(_with(visio(), parts), "a.vsdx").markdown == (
        "# Rain water\n\nPump\n\n- Serial number: X-17\n"
    )


def test_a_drawing_without_words_is_its_name() -> None:
    """It is no failure."""
    drawing = read(_with(visio(), {"visio/pages/page1.xml": "<PageContents/>"}), "a.vsdx")
    assert (drawing.markdown, drawing.by_name) == ("Drawing without text\n", True)


def _with(data: bytes, parts: dict[str, str]) -> bytes:
    import io
    import zipfile

    whole = zipfile.ZipFile(io.BytesIO(data))
    texts = {name: whole.read(name).decode() for name in whole.namelist()} | parts
    return packed(*texts.items())
