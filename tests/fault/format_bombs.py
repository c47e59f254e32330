"""Small files that would be huge, endless or deep if somebody believed them, one of each kind."""

import io
import json
import zipfile
import zlib
from collections.abc import Callable
from typing import Final

_R: Final = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_W: Final = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_LAUGHS: Final = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
_ENTITIES: Final = f'<!DOCTYPE d [<!ENTITY e0 "laughing ">{_LAUGHS}]>'
_DEEP: Final = 200_000


def zipped(parts: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in parts.items():
            target.writestr(name, text)
    return out.getvalue()


def document(body: str, before: str = "") -> bytes:
    return zipped(
        {"word/document.xml": f"{before}<w:document {_W}><w:body>{body}</w:body></w:document>"}
    )


def workbook(rows: str, strings: str = "") -> bytes:
    links = (("worksheet", "s.xml"), ("sharedStrings", "t.xml"))
    related = "".join(
        f'<Relationship Id="r{at}" Type="x/{kind}" Target="{target}"/>'
        for at, (kind, target) in enumerate(links)
    )
    return zipped(
        {
            "xl/workbook.xml": f'<w {_R}><sheet name="S" r:id="r0"/></w>',
            "xl/_rels/workbook.xml.rels": f"<Relationships>{related}</Relationships>",
            "xl/s.xml": f"<worksheet>{rows}</worksheet>",
            "xl/t.xml": f"<sst>{strings}</sst>",
        }
    )


def show(slide: str, before: str = "") -> bytes:
    relation = '<Relationship Id="r0" Type="x/slide" Target="s.xml"/>'
    return zipped(
        {
            "ppt/presentation.xml": f'<p {_R}><sldId r:id="r0"/></p>',
            "ppt/_rels/presentation.xml.rels": f"<Relationships>{relation}</Relationships>",
            "ppt/s.xml": f"{before}<s>{slide}</s>",
        }
    )


def open_document(body: str, before: str = "") -> bytes:
    return zipped({"content.xml": f"{before}<d><body>{body}</body></d>"})


def book(chapter: str, before: str = "") -> bytes:
    items = '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/><itemref idref="c"/>'
    return zipped(
        {
            "META-INF/container.xml": '<c><rootfile full-path="p.opf"/></c>',
            "p.opf": f"{before}<package>{items}</package>",
            "c.xhtml": chapter,
        }
    )


def pdf(*objects: bytes) -> bytes:
    """A file of objects from 1 on, the first of which is its catalogue."""
    out, at = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        at.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(at) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in at)
    out += b"trailer <</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(at) + 1, start)
    return bytes(out)


def stream(packed: bytes, extra: bytes = b"/Filter /FlateDecode") -> bytes:
    return b"<</Length %d %s>>\nstream\n%s\nendstream" % (len(packed), extra, packed)


def page_of(contents: bytes, *more: bytes, resources: bytes = b"") -> bytes:
    """A PDF of one page with this stream; `more` are objects from 5 on."""
    return pdf(
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
        b" /Resources <<%s>>>>" % resources,
        contents,
        *more,
    )


def nested_packing(size: int, times: int) -> bytes:
    packed = bytes(size)
    for _ in range(times):
        packed = zlib.compress(packed, 9)
    return packed


def form_tree() -> bytes:
    """Each form draws the next one ten times; the last would be drawn 10^20 times."""
    forms = []
    for number in range(5, 26):
        inner = b"/F Do " * 10
        extra = (
            b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</F %d 0 R>>>>"
        )
        forms.append(stream(inner, extra % (number + 1)))
    return page_of(stream(b"/F Do", b""), *forms, resources=b"/XObject <</F 5 0 R>>")


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
        )

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\0\0\0"
    body = zlib.compress(bytes(1 << 24), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def nested_mail() -> bytes:
    mark = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n"
    parts = b"".join(mark % (number, number) for number in range(5_000))
    return b"From: a@b.c\nSubject: deep\n" + parts + b"Content-Type: text/plain\n\nwords\n"


_CELL: Final = '<c t="s"><v>0</v></c>'
_REPEATS: Final = (
    '<spreadsheet><table name="t"><table-row number-rows-repeated="1048576">'
    '<table-cell number-columns-repeated="16384"><p>word</p></table-cell></table-row></table>'
    "</spreadsheet>"
)
_XHTML: Final = "<html><body><p>{}</p></body></html>"

BOMBS: Final[dict[str, Callable[[], bytes]]] = {
    "unpacks.docx": lambda: document(" " * (300 << 20)),
    "entities.docx": lambda: document("<w:p><w:r><w:t>&e9;</w:t></w:r></w:p>", _ENTITIES),
    "external.docx": lambda: document(
        "&x;", '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    ),
    "deep.docx": lambda: document("<w:p>" * _DEEP + "</w:p>" * _DEEP),
    "deep tables.docx": lambda: document(
        "<w:tbl><w:tr><w:tc>" * 80 + "</w:tc></w:tr></w:tbl>" * 80
    ),
    "members.docx": lambda: zipped({f"word/{n}.xml": "" for n in range(20_001)}),
    "rows.xlsx": lambda: workbook("<row/>" * 1_048_576),
    "one string.xlsx": lambda: workbook(
        f"<row>{_CELL * 100}</row>" * 5_000, f"<si><t>{'long ' * 6_000}</t></si>"
    ),
    "entities.xlsx": lambda: zipped({"xl/workbook.xml": f"{_ENTITIES}<w>&e9;</w>"}),
    "far away.xlsx": lambda: workbook(
        '<row r="1"><c r="A1"/><c r="XFD1048576"><v>1</v></c></row>' * 50
    ),
    "unpacks.pptx": lambda: show(" " * (300 << 20)),
    "entities.pptx": lambda: show("&e9;", _ENTITIES),
    "deep groups.pptx": lambda: show("<grpSp>" * _DEEP + "</grpSp>" * _DEEP),
    "repeats.ods": lambda: open_document(_REPEATS),
    "spaces.odt": lambda: open_document("<text><p>" + "<s/>" * 3_000_000 + "</p></text>"),
    "entities.odt": lambda: open_document("<text><p>&e9;</p></text>", _ENTITIES),
    "unpacks.odp": lambda: open_document(" " * (300 << 20)),
    "unpacks.epub": lambda: book(" " * (300 << 20)),
    "entities.epub": lambda: book(_XHTML.format("x"), _ENTITIES),
    "laughing chapter.epub": lambda: book(_ENTITIES + _XHTML.format("&e9;")),
    "deep chapter.epub": lambda: book(_XHTML.format("<b>" * _DEEP)),
    "deep.html": lambda: b"<html><body>" + b"<div>" * _DEEP + b"words",
    "wide.html": lambda: b"<html><body><table><tr>" + b"<td>a" * 2_000_000,
    "deep.json": lambda: b"[" * _DEEP,
    "wide.json": lambda: json.dumps([{str(n): "x"} for n in range(40_000)]).encode(),
    "deep.ipynb": lambda: b'{"cells":' + b"[" * _DEEP,
    "aliases.yaml": lambda: (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (n + 1, n + 1, b",".join([b"*%c" % n] * 9)) for n in range(97, 120)
        )
    ),
    "deep.yaml": lambda: b"[" * _DEEP,
    "deep.toml": lambda: b"a = " + b"[" * _DEEP,
    "wide.csv": lambda: b"," * 30_000_000 + b"a\n",
    "ragged.csv": lambda: b"a\n" * 400_000 + b"," * 60_000 + b"b\n",
    "deep.rtf": lambda: b"{\\rtf1 " + b"{" * _DEEP + b"words" + b"}" * _DEEP,
    "deep.eml": nested_mail,
    "recipients.eml": lambda: b"To: " + b"a@b.c, " * 500_000 + b"\nSubject: many\n\nwords\n",
    "one line.mbox": lambda: b"From a Mon Jan  1\n\n" + b"From " * 4_000_000,
    "folded.ics": lambda: b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:a" + b"\n b" * 2_000_000,
    "deep.ics": lambda: b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\n" * 500_000,
    "cues.srt": lambda: b"1\n00:00:01,000 --> 00:00:02,000\nx\n\n" * 300_000,
    "groups.tex": lambda: b"{" * 300_000 + b"words" + b"}" * 300_000,
    "macros.tex": lambda: b"\\newcommand{\\a}{\\a\\a}" + b"\\a" * 100_000,
    "nested.org": lambda: b"".join(b"*" * n + b" h\n" for n in range(1, 3_000)),
    "nested.rst": lambda: b"".join(b" " * n + b"* item\n\n" for n in range(3_000)),
    "nested.adoc": lambda: b"====\n" * 400_000,
    "huge.png": lambda: png(2**31 - 1, 2**31 - 1),
    "directories.tif": lambda: b"II*\0\x08\0\0\0" + b"\xff\xff" * 100_000,
    "boxes.heic": lambda: b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + b"\0\0\0\x08meta" * 500_000,
    "packed.pdf": lambda: page_of(stream(nested_packing(600 << 20, 1))),
    "packed twice.pdf": lambda: page_of(
        stream(nested_packing(1 << 30, 2), b"/Filter [/FlateDecode /FlateDecode]")
    ),
    "forms.pdf": form_tree,
    "loop.pdf": lambda: pdf(
        b"<</Type /Catalog /Pages 2 0 R>>", b"<</Type /Pages /Kids [2 0 R 2 0 R] /Count 2>>"
    ),
    "claims pages.pdf": lambda: pdf(
        b"<</Type /Catalog /Pages 2 0 R>>", b"<</Type /Pages /Kids [] /Count 2147483647>>"
    ),
    "huge picture.pdf": lambda: page_of(
        stream(b"/I Do", b""),
        stream(
            nested_packing(1 << 28, 1),
            b"/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /BitsPerComponent 8"
            b" /ColorSpace /DeviceRGB /Filter /FlateDecode",
        ),
        resources=b"/XObject <</I 5 0 R>>",
    ),
}
"""By a name whose ending is that of the format; made when they are wanted."""

LONG: Final = frozenset(
    {
        *("one string.xlsx", "spaces.odt", "wide.html", "wide.csv", "ragged.csv", "deep.eml"),
        *("recipients.eml", "one line.mbox", "cues.srt", "nested.rst", "nested.adoc", "rows.xlsx"),
        *("packed.pdf", "packed twice.pdf", "forms.pdf", "huge picture.pdf", "unpacks.docx"),
        *("unpacks.pptx", "unpacks.epub", "unpacks.odp"),
    }
)
"""Those that take more than about a second of processor time."""
