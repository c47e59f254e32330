"""Write the files of examples/formats/ that are no text: the same bytes on every run.

    python scripts/make_example_files.py [FOLDER]

They are put together by hand with the standard library, each as small as its format allows. The
text files beside them are written by people.
"""

import io
import re
import struct
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Final

from make_ole import mail, workbook

TARGET: Final = Path(__file__).resolve().parent.parent / "examples/formats"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006/relationships"
_W: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A: Final = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P: Final = "http://schemas.openxmlformats.org/presentationml/2006/main"
_S: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_V: Final = "http://schemas.microsoft.com/office/visio/2012/main"
_ODF: Final = "urn:oasis:names:tc:opendocument:xmlns"
_MOMENT: Final = (2026, 3, 1, 0, 0, 0)


def packed(*parts: tuple[str, str]) -> bytes:
    """A zip of text files in this order, not compressed: compressors differ in their bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for name, text in parts:
            target.writestr(zipfile.ZipInfo(name, _MOMENT), text)
    return out.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    """A part that says what another one leads to."""
    each = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}">{each}</Relationships>'


def docx() -> bytes:
    """Rules of an association, with a heading."""
    heading = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    rule = "A bonfire is lit in November only, and never on a Sunday."
    lines = (
        f"<w:p>{heading}<w:r><w:t>Rules of the allotment association</w:t></w:r></w:p>",
        f"<w:p><w:r><w:t>{rule}</w:t></w:r></w:p>",
    )
    body = f'<w:document xmlns:w="{_W}"><w:body>{"".join(lines)}</w:body></w:document>'
    return packed(
        ("_rels/.rels", relations(("officeDocument", "word/document.xml"))),
        ("word/document.xml", body),
    )


def xlsx() -> bytes:
    """Who has which plot."""
    rows = (("plot", "tenant", "rent"), ("17", "Okonkwo", "84"), ("18", "Lindqvist", "91"))
    cells = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{v}</t></is></c>' for v in row) + "</row>"
        for row in rows
    )
    sheet = f'<worksheet xmlns="{_S}"><sheetData>{cells}</sheetData></worksheet>'
    tabs = f'<sheets><sheet name="Tenants" sheetId="1" r:id="r1" xmlns:r="{_OFFICE}"/></sheets>'
    return packed(
        ("_rels/.rels", relations(("officeDocument", "xl/workbook.xml"))),
        ("xl/workbook.xml", f'<workbook xmlns="{_S}">{tabs}</workbook>'),
        ("xl/_rels/workbook.xml.rels", relations(("worksheet", "worksheets/sheet1.xml"))),
        ("xl/worksheets/sheet1.xml", sheet),
    )


def pptx() -> bytes:
    """One slide."""
    words = "Grafting: cut the scion in January, when the apple sleeps"
    text = f"<p:txBody><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody>"
    tree = f"<p:cSld><p:spTree><p:sp>{text}</p:sp></p:spTree></p:cSld>"
    slides = f'<p:sldIdLst><p:sldId id="256" r:id="r1" xmlns:r="{_OFFICE}"/></p:sldIdLst>'
    return packed(
        ("_rels/.rels", relations(("officeDocument", "ppt/presentation.xml"))),
        ("ppt/presentation.xml", f'<p:presentation xmlns:p="{_P}">{slides}</p:presentation>'),
        ("ppt/_rels/presentation.xml.rels", relations(("slide", "slides/slide1.xml"))),
        ("ppt/slides/slide1.xml", f'<p:sld xmlns:p="{_P}" xmlns:a="{_A}">{tree}</p:sld>'),
    )


def opendocument(kind: str, inner: str) -> bytes:
    """A document of text, spreadsheet or presentation."""
    spaces = " ".join(
        f'xmlns:{short}="{_ODF}:{name}:1.0"'
        for short, name in (
            ("office", "office"),
            ("text", "text"),
            ("table", "table"),
            ("draw", "drawing"),
        )
    )
    body = f"<office:body><office:{kind}>{inner}</office:{kind}></office:body>"
    return packed(
        ("mimetype", f"application/vnd.oasis.opendocument.{kind}"),
        ("content.xml", f"<office:document-content {spaces}>{body}</office:document-content>"),
    )


def ods() -> bytes:
    """A row of a table below its header."""
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{v}</text:p></table:table-cell>" for v in row)
        + "</table:table-row>"
        for row in (("well", "litres"), ("Rhubarb pump", "640"))
    )
    return opendocument("spreadsheet", f'<table:table table:name="Water">{rows}</table:table>')


def odp() -> bytes:
    """One slide."""
    box = "<text:p>Hedgehogs need a gap of thirteen centimetres in the fence</text:p>"
    frame = f"<draw:frame><draw:text-box>{box}</draw:text-box></draw:frame>"
    return opendocument("presentation", f'<draw:page draw:name="one">{frame}</draw:page>')


def epub() -> bytes:
    """A book of one chapter."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/>'
        "</rootfiles></container>"
    )
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<metadata><dc:title>A year among bees</dc:title></metadata><manifest>"
        '<item id="c" href="one.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="c"/></spine></package>'
    )
    page = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>Swarms</h1><p>A swarm that hangs in '
        "the plum tree is caught at dusk, with a wet sheet and an empty hive.</p></body></html>"
    )
    return packed(
        ("mimetype", "application/epub+zip"),
        ("META-INF/container.xml", container),
        ("book.opf", book),
        ("one.xhtml", page),
    )


def kindle() -> bytes:
    """A book of one chapter, packed as PalmDOC packs: a blank and a letter are one byte."""
    words = "The barn owl nests in the loft from April on."
    page = f"<html><body><h1>Owls</h1><p>{words}</p></body></html>"
    packed_page = re.sub(rb" ([@-~])", lambda m: bytes((m[1][0] ^ 0x80,)), page.encode())
    author, title = b"A. Warden", b"Birds of the loft"
    row = struct.pack(">II", 100, len(author) + 8) + author
    exth = b"EXTH" + struct.pack(">II", 12 + len(row), 1) + row
    head = bytearray(248)
    struct.pack_into(">HHIHH", head, 0, 2, 0, len(page), 1, 4096)
    struct.pack_into(">4sIII", head, 16, b"MOBI", 232, 2, 65_001)
    struct.pack_into(">II", head, 84, len(head) + len(exth), len(title))
    first = bytes(head) + exth + title
    start = 78 + 2 * 8 + 2
    rows = struct.pack(">IIII", start, 0, start + len(first), 2)
    name = b"birds".ljust(60, b"\0") + b"BOOKMOBI" + bytes(8)
    return name + struct.pack(">H", 2) + rows + bytes(2) + first + packed_page


def visio() -> bytes:
    """A drawing of one page with two shapes."""
    shapes = "".join(
        f"<Shape ID='{n}'><Text>{words}</Text></Shape>"
        for n, words in enumerate(("Rain barrel", "Overflow to the pond"), 1)
    )
    kind = "http://schemas.microsoft.com/visio/2010/relationships"
    page = f"<Page Name='Rain water'><Rel r:id='r1' xmlns:r='{_OFFICE}'/></Page>"

    def leads(to: str, target: str) -> str:
        return relations((to, target)).replace(_OFFICE, kind)

    return packed(
        ("_rels/.rels", leads("document", "visio/document.xml")),
        ("visio/document.xml", f"<VisioDocument xmlns='{_V}'/>"),
        ("visio/_rels/document.xml.rels", leads("pages", "pages/pages.xml")),
        ("visio/pages/pages.xml", f"<Pages xmlns='{_V}'>{page}</Pages>"),
        ("visio/pages/_rels/pages.xml.rels", leads("page", "page1.xml")),
        (
            "visio/pages/page1.xml",
            f"<PageContents xmlns='{_V}'><Shapes>{shapes}</Shapes></PageContents>",
        ),
    )


def outlook() -> bytes:
    """A mail with an attachment."""
    texts = {
        "0037": "Key to the tool shed",
        "0C1A": "Ama Okonkwo",
        "0C1F": "ama@allotment.example",
        "0E04": "Committee",
        "1000": "The key hangs behind the third beehive now, since the padlock froze.",
    }
    return mail(texts, 1_772_400_000, ["shed.pdf"])


def exif(description: str, day: str) -> bytes:
    """A TIFF of one line of black, with a description and a date: what cameras write, too."""
    fields = (
        (0x100, 4, 160),
        (0x101, 4, 80),
        (0x102, 3, 1),
        (0x103, 3, 1),
        (0x106, 3, 0),
        (0x10E, 2, description.encode() + b"\0"),
        (0x111, 4, 0),
        (0x116, 4, 80),
        (0x117, 4, 1600),
        (0x132, 2, day.encode() + b"\0"),
    )
    after = 8 + 2 + 12 * len(fields) + 4
    head, data = b"II*\0" + struct.pack("<IH", 8, len(fields)), b""
    texts = b"".join(value for _, _, value in fields if isinstance(value, bytes))
    for number, kind, value in fields:
        if isinstance(value, bytes):
            head += struct.pack("<HHII", number, kind, len(value), after + len(data))
            data += value
        else:
            at = after + len(texts) if number == 0x111 else value
            head += struct.pack("<HHII", number, kind, 1, at)
    return head + bytes(4) + texts + bytes(1600)


def png(title: str, description: str) -> bytes:
    """A white picture with a title and a description."""
    width, height = 160, 80
    rows = zlib.compress((b"\0" + b"\xff" * (width // 8)) * height, 0)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)),
        (b"tEXt", b"Title\0" + title.encode("latin-1")),
        (b"tEXt", b"Description\0" + description.encode("latin-1")),
        (b"IDAT", rows),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def mp3() -> bytes:
    """The tags of a song, and a frame of silence."""
    said = (("TIT2", "Blackbird at the water butt"), ("TPE1", "Harrowby Brass"), ("TDRC", "2019"))
    frames = b"".join(
        name.encode() + struct.pack(">IHB", len(text) + 1, 0, 3) + text.encode()
        for name, text in said
    )
    size = bytes(len(frames) >> shift & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x04\0\0" + size + frames + b"\xff\xfb\x90\0" + bytes(413)


def jex() -> bytes:
    """A note in an export of Joplin, its notebook, its tag, and what joins the two."""
    note, notebook, tag = "b" * 32, "a" * 32, "d" * 32
    said = "The spawn in the lower pond hatches about two weeks after the last frost."
    items = (
        (1, note, f"Frog spawn\n\n{said}\n\n", f"parent_id: {notebook}\n"),
        (2, notebook, "Ponds\n\n", ""),
        (5, tag, "wildlife\n\n", ""),
        (6, "c" * 32, "", f"note_id: {note}\ntag_id: {tag}\n"),
    )
    out = io.BytesIO()
    target = tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
    for kind, ident, text, more in items:
        day = "2026-04-11T09:30:00.000Z"
        data = f"{text}id: {ident}\n{more}created_time: {day}\ntype_: {kind}".encode()
        member = tarfile.TarInfo(f"{ident}.md")
        member.size = len(data)
        target.addfile(member, io.BytesIO(data))
    # Closing it would fill it up to 10 KB.
    return out.getvalue() + bytes(2 * tarfile.BLOCKSIZE)


def files() -> dict[str, bytes]:
    """Every file by its name."""
    seeds: list[list[str | float]] = [["seed", "grams"], ["scorzonera", 12.5], ["beetroot", 30.0]]
    odt = "<text:p>The compost heap is turned when a rod in its middle is cold.</text:p>"
    return {
        "frogs.jex": jex(),
        "rules.docx": docx(),
        "tenants.xlsx": xlsx(),
        "grafting.pptx": pptx(),
        "compost.odt": opendocument("text", odt),
        "water.ods": ods(),
        "hedgehogs.odp": odp(),
        "bees.epub": epub(),
        "owls.mobi": kindle(),
        "rain.vsdx": visio(),
        "seeds.xls": workbook("Seeds", seeds),
        "shed-key.msg": outlook(),
        "plan.png": png("Plan of the plots", "The drain runs below plots 3 to 9"),
        "track 07.mp3": mp3(),
        "scarecrow.tif": exif("The scarecrow that won in Harrowby", "2024:09:14 10:30:00"),
    }


def main(folder: Path) -> None:
    """Write all of them."""
    for name, data in files().items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
