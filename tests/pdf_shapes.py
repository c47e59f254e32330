"""Small PDFs of many shapes, drawn for a test."""

import io
from collections.abc import Mapping, Sequence

import pypdf
from pypdf.annotations import FreeText, Link, Text
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

SIZE = 12
HEIGHT = 800


def font(names: Mapping[int, str] | None = None) -> DictionaryObject:
    """Helvetica; with names of glyphs, one whose glyphs have no other names."""
    made = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
            NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
        }
    )
    if names:
        differences = ArrayObject()
        for code, name in names.items():
            differences += [NumberObject(code), NameObject(name)]
        made[NameObject("/Encoding")] = DictionaryObject(
            {NameObject("/Type"): NameObject("/Encoding"), NameObject("/Differences"): differences}
        )
    return made


def at(x: float, y: float, text: str, size: int = SIZE) -> str:
    """The operators that show a line of text there."""
    return f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET\n"


def lines(texts: Sequence[str], *, x: float = 50, y: float = 700, pitch: float = 14) -> str:
    """The operators that show lines below each other."""
    return "".join(at(x, y - pitch * number, text) for number, text in enumerate(texts))


def writer(*pages: str, fonts: DictionaryObject | None = None) -> pypdf.PdfWriter:
    """A PDF of pages given by their operators, to put more into."""
    made = pypdf.PdfWriter()
    for operators in pages:
        page = made.add_blank_page(width=600, height=HEIGHT)
        resources = DictionaryObject({NameObject("/F1"): fonts or font()})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): resources})
        stream = DecodedStreamObject()
        stream.set_data(operators.encode("cp1252"))
        page[NameObject("/Contents")] = made._add_object(stream)
    return made


def written(made: pypdf.PdfWriter) -> bytes:
    """The bytes of the file."""
    out = io.BytesIO()
    made.write(out)
    return out.getvalue()


def drawn(*pages: str, fonts: DictionaryObject | None = None) -> bytes:
    """The bytes of a PDF of pages given by their operators."""
    return written(writer(*pages, fonts=fonts))


def scanned(pgm: bytes) -> bytes:
    """The bytes of a PDF whose one page is this grey picture."""
    width, height = map(int, pgm.split(b" ", 3)[1:3])
    made = writer(f"q 600 0 0 {HEIGHT} 0 0 cm /Im0 Do Q\n")
    picture = DecodedStreamObject()
    picture.set_data(pgm[-width * height :])
    picture.update(
        {
            NameObject("/Type"): NameObject("/XObject"),
            NameObject("/Subtype"): NameObject("/Image"),
            NameObject("/Width"): NumberObject(width),
            NameObject("/Height"): NumberObject(height),
            NameObject("/ColorSpace"): NameObject("/DeviceGray"),
            NameObject("/BitsPerComponent"): NumberObject(8),
        }
    )
    pictures = DictionaryObject({NameObject("/Im0"): made._add_object(picture)})
    resources = made.pages[0]["/Resources"]
    assert isinstance(resources, DictionaryObject)
    resources[NameObject("/XObject")] = pictures
    return written(made)


def with_fields(made: pypdf.PdfWriter, fields: Sequence[DictionaryObject]) -> bytes:
    """The bytes with a form on the first page."""
    page = made.pages[0]
    kept = ArrayObject()
    for field in fields:
        field[NameObject("/Type")] = NameObject("/Annot")
        field[NameObject("/Subtype")] = NameObject("/Widget")
        field[NameObject("/Rect")] = ArrayObject(map(NumberObject, (50, 50, 250, 70)))
        if "/AS" in field:
            # pdfium knows the states of a box by their looks.
            faces = DictionaryObject(
                {
                    NameObject(face): made._add_object(DecodedStreamObject())
                    for face in ("/Yes", "/Off")
                }
            )
            field[NameObject("/AP")] = DictionaryObject({NameObject("/N"): faces})
        field[NameObject("/P")] = page.indirect_reference
        kept.append(made._add_object(field))
    page[NameObject("/Annots")] = kept
    made._root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): kept})
    return written(made)


def text_field(name: str, value: str, *, shown_name: str = "", flags: int = 0) -> DictionaryObject:
    """A field of a form that holds text."""
    made = DictionaryObject(
        {
            NameObject("/FT"): NameObject("/Tx"),
            NameObject("/T"): TextStringObject(name),
            NameObject("/V"): TextStringObject(value),
            NameObject("/Ff"): NumberObject(flags),
        }
    )
    if shown_name:
        made[NameObject("/TU")] = TextStringObject(shown_name)
    return made


def check_box(name: str, *, is_on: bool) -> DictionaryObject:
    """A box of a form, checked or not."""
    state = NameObject("/Yes" if is_on else "/Off")
    return DictionaryObject(
        {
            NameObject("/FT"): NameObject("/Btn"),
            NameObject("/T"): TextStringObject(name),
            NameObject("/V"): state,
            NameObject("/AS"): state,
        }
    )


def with_notes(made: pypdf.PdfWriter) -> bytes:
    """The bytes with a note, a text box and a link on the first page."""
    made.add_annotation(0, Text(text="Ask the surveyor", rect=(50, 50, 70, 70)))
    made.add_annotation(0, FreeText(text="Roof is new", rect=(50, 100, 200, 120)))
    made.add_annotation(0, Link(url="https://example.org/hidden", rect=(50, 150, 200, 170)))
    return written(made)
