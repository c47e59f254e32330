"""What do the files say that people export, save and draw?"""

import base64
import io
import json
import plistlib
import tarfile
import zlib
from urllib.parse import quote

import pytest

from kb.errors import NotWritten, SourceError
from kb.intake.canonicalize import CanonicalizeInput, canonicalize, detect_mime
from kb.intake.canonicalize.title import fallback_title
from kb.model.text import Canonical

ENEX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export><note><title>Boiler</title><content><![CDATA[<?xml version="1.0"?>
<!DOCTYPE en-note SYSTEM "http://xml.evernote.com/pub/enml2.dtd">
<en-note><h1>Service</h1><div>Call Lian &amp; ask</div><ul><li>filter</li></ul></en-note>]]>
</content>
<created>20240302T101500Z</created><tag>house</tag>
<resource><data encoding="base64">QUJDREVGRw==</data></resource></note></en-export>"""
FB2 = """<?xml version="1.0" encoding="utf-8"?>
<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><description><title-info>
<author><first-name>Ada</first-name><last-name>Wolf</last-name></author>
<book-title>The Mill</book-title><date>1998</date></title-info></description>
<body><section><title><p>Chapter</p><p>One</p></title><p>The we<emphasis>ir</emphasis> broke.</p>
</section></body><binary id="a.jpg">QUJDREVGRw==</binary></FictionBook>"""
VCF = """BEGIN:VCARD\r
VERSION:3.0\r
N:Wolf;Ada;;Dr.;\r
FN:Dr. Ada Wolf\r
ORG:Mill Ltd.;Weirs\r
TEL;TYPE=CELL,VOICE:+43 660 1234\r
item1.EMAIL;type=INTERNET;type=WORK:ada@exam\r
 ple.org\r
NOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:L=C3=B6ft=\r
mann\r
PHOTO;ENCODING=b:QUJDREVGRw==\r
END:VCARD\r
BEGIN:VCARD\r
FN:Lian\r
BDAY:19900503\r
END:VCARD\r
"""
OPML = """<?xml version="1.0"?><opml version="2.0"><head><title>Feeds</title></head><body>
<outline text="Water"><outline text="Weirs" xmlUrl="https://weirs.example/feed"/>
<outline text="Pumps" _note="old ones"/></outline></body></opml>"""
BOOKMARKS = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1>
<DL><p><DT><H3 ADD_DATE="1">Garden</H3>
<DL><p><DT><A HREF="https://bees.example/hive?a=1&amp;b=2" ICON="data:,A">Hives</A>
<DD>How to build one
</DL><p></DL>"""
MHTML = """From: <Saved by Blink>\r
Snapshot-Content-Location: https://weirs.example/\r
Subject: Weirs\r
MIME-Version: 1.0\r
Content-Type: multipart/related; type="text/html"; boundary="----b"\r
\r
------b\r
Content-Type: text/html; charset=utf-8\r
Content-Transfer-Encoding: quoted-printable\r
\r
<html><head><title>On weirs</title></head><body><p>A weir holds back th=\r
e river, and it is opened in spring when the snow melts.</p></body></html>\r
------b--\r
"""
PAGE = (
    b"<html><head><title>On weirs</title></head><body><p>A weir holds the river.</p></body></html>"
)
DRAWN = "<mxGraphModel><root><mxCell id='1' value='&lt;b&gt;Pump&lt;/b&gt;'/></root></mxGraphModel>"


def packed(drawing: str) -> str:
    """A page of draw.io as it packs it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(quote(drawing).encode()) + packer.flush()).decode()


def read(data: bytes | str, name: str) -> Canonical:
    """The file as kb reads it, by what its bytes and its name say."""
    stored = data.encode() if isinstance(data, str) else data
    return canonicalize(CanonicalizeInput(data=stored, mime=detect_mime(stored, name), name=name))


def test_evernote() -> None:
    """A section a note, with its day and tags; attached files are left out."""
    doc = read(ENEX, "export.enex")
    assert (doc.title, doc.date) == ("Boiler", "2024-03-02T10:15:00Z")
    assert doc.markdown == (
        "## Boiler\n\n2024-03-02T10:15:00Z  \nTags: house\n\n"
        "# Service\n\nCall Lian & ask\n\n- filter\n"
    )


def test_fictionbook() -> None:
    """Chapters by their titles, words whole, pictures left out."""
    doc = read(FB2, "mill.fb2")
    assert (doc.title, doc.date) == ("The Mill", "1998")
    assert doc.markdown == "By Ada Wolf\n\n## Chapter One\n\nThe weir broke.\n"


def test_address_book() -> None:
    """A section a person; folded and quoted lines are whole."""
    doc = read(VCF, "people.vcf")
    assert doc.markdown == (
        "## Dr. Ada Wolf\n\nOrganization: Mill Ltd., Weirs  \nPhone: +43 660 1234 (mobile)  \n"
        "E-mail: ada@example.org (work)\n\nLöftmann\n\n## Lian\n\nBorn: 1990-05-03\n"
    )


def test_outlines_and_bookmarks() -> None:
    """Folders are headings, and entries keep their addresses."""
    doc = read(OPML, "feeds.opml")
    assert doc.title == "Feeds"
    assert doc.markdown == "## Water\n\n- Weirs https://weirs.example/feed\n- Pumps old ones\n"
    marks = read(BOOKMARKS, "bookmarks.html")
    assert marks.markdown == (
        "## Garden\n\n- Hives https://bees.example/hive?a=1&b=2\n\nHow to build one\n"
    )


@pytest.mark.parametrize("name", ["weirs.mhtml", "weirs.mht", "weirs.webarchive"])
def test_saved_pages(name: str) -> None:
    """The main page, read as a page is."""
    archive = plistlib.dumps(
        {"WebMainResource": {"WebResourceData": PAGE, "WebResourceTextEncodingName": "UTF-8"}},
        fmt=plistlib.FMT_BINARY,
    )
    doc = read(archive if name.endswith("archive") else MHTML, name)
    assert doc.title == "On weirs"
    assert doc.markdown.startswith("A weir holds")


def test_links_to_pages() -> None:
    """Of Windows, macOS, in both forms of a property list, and Linux."""
    assert read("[InternetShortcut]\r\nURL=https://a.example/\r\n", "Mill.url").markdown == (
        "Mill\n\nhttps://a.example/\n"
    )
    for form in (plistlib.FMT_XML, plistlib.FMT_BINARY):
        data = plistlib.dumps({"URL": "https://a.example/"}, fmt=form)
        assert read(data, "Mill.webloc").markdown == "Mill\n\nhttps://a.example/\n"
    desktop = "[Desktop Entry]\nType=Link\nName=The mill\nURL=https://a.example/\n"
    assert read(desktop, "x.desktop").title == "The mill"


def test_boards() -> None:
    """Texts from top to bottom; what is deleted is left out, and packed pages are opened."""
    canvas = {
        "nodes": [
            {"type": "text", "text": "Second", "x": 0, "y": 90},
            {"type": "text", "text": "# First", "x": 0, "y": 0},
            {"type": "file", "file": "notes/Mill.md", "x": 0, "y": 200},
        ],
        "edges": [{"label": "leads to"}],
    }
    doc = read(json.dumps(canvas), "Plan.canvas")
    assert (doc.title, doc.markdown) == (
        "Plan",
        "# First\n\nSecond\n\n![[notes/Mill.md]]\n\nleads to\n",
    )
    drawing = {
        "elements": [
            {"type": "text", "text": "Gone", "isDeleted": True},
            {"type": "text", "text": "Weir", "y": 5},
        ]
    }
    assert read(json.dumps(drawing), "a.excalidraw").markdown == "Weir\n"
    for inner in (DRAWN, packed(DRAWN)):
        page = f'<mxfile><diagram name="Plan">{inner}</diagram></mxfile>'
        assert read(page, "a.drawio").markdown == "## Plan\n\nPump\n"


def test_drawings_of_text() -> None:
    """The texts of an SVG; one without any is its name."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><title>Weir</title>'
        "<text>in <tspan>flood</tspan></text></svg>"
    )
    doc = read(svg, "a.svg")
    assert (doc.title, doc.markdown, doc.by_name) == (
        "Weir",
        "Weir\n\nin flood\n\nSVG picture\n",
        False,
    )
    assert read('<svg xmlns="http://www.w3.org/2000/svg"><path/></svg>', "icon.svg").by_name


def test_flat_documents() -> None:
    """OpenDocument in one file."""
    office = "urn:oasis:names:tc:opendocument:xmlns:"
    flat = (
        f'<?xml version="1.0"?><o:document xmlns:o="{office}office:1.0" xmlns:t="{office}text:1.0">'
        '<o:body><o:text><t:h t:outline-level="1">Weirs</t:h><t:p>Open in spring.</t:p></o:text>'
        "</o:body></o:document>"
    )
    doc = read(flat, "a.fodt")
    assert (doc.title, doc.markdown) == ("Weirs", "# Weirs\n\nOpen in spring.\n")


@pytest.mark.parametrize(
    "name",
    [
        *("a.enex", "a.fb2", "a.vcf", "a.opml", "a.mht", "a.webarchive", "a.webloc", "a.url"),
        *("a.canvas", "a.excalidraw", "a.drawio", "a.svg", "a.fodt"),
    ],
)
def test_damaged_ones_are_named(name: str) -> None:
    """Other bytes under the name, and entities, are refused."""
    for data in (
        b"nothing of it",
        b"{}",
        b"[1]",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b"\0\1",
    ):
        with pytest.raises(SourceError):
            read(data, name)


def test_the_ids_of_exports_are_no_part_of_a_name() -> None:
    """Notion writes one behind each name."""
    for ending in (".md", "_all.csv"):
        assert fallback_title(f"Mill 0123456789abcdef0123456789abcdef{ending}", "") == "Mill"
    assert (
        fallback_title("0123456789abcdef0123456789abcdef.md", "")
        == "0123456789abcdef0123456789abcdef"
    )


def joplin(kind: int, ident: str, text: str, **properties: str) -> str:
    """A file of Joplin's, as it exports each."""
    said = {
        "id": ident * 32, "created_time": "2024-03-02T10:15:00.000Z",
        "updated_time": "2024-03-05T08:00:00.000Z", "source_url": "",
    } | properties  # fmt: skip
    lines = [f"{key}: {value}" for key, value in said.items()]
    return "\n".join([text, "", *lines, f"type_: {kind}"])


def test_a_note_of_joplin_has_its_title_and_its_days() -> None:
    """Its properties are no text, and what is no note is left out by rule."""
    text = joplin(1, "b", "Boiler\n\nClean: the filter", parent_id="a" * 32)
    note = read(text, f"{'b' * 32}.md")
    assert (note.title, note.markdown) == ("Boiler", "Clean: the filter\n")
    assert (note.created, note.modified) == ("2024-03-02T10:15:00Z", "2024-03-05T08:00:00Z")
    with pytest.raises(NotWritten):
        read(joplin(2, "a", "House"), f"{'a' * 32}.md")
    assert read("# A\n\nid: b\ntype_: 1\n", "a.md").title == "A"


def test_an_export_of_joplin_is_a_section_for_each_note() -> None:
    """With the names of its notebook and its tags."""
    files = [
        joplin(1, "b", "Boiler\n\n# Service\n\nfilter", parent_id="a" * 32),
        joplin(2, "a", "House"),
        joplin(5, "d", "heating"),
        joplin(6, "c", "", note_id="b" * 32, tag_id="d" * 32).lstrip("\n"),
    ]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as target:
        for number, text in enumerate(files):
            member = tarfile.TarInfo(f"{number}.md")
            member.size = len(text)
            target.addfile(member, io.BytesIO(text.encode()))
    notes = read(out.getvalue(), "export.jex")
    assert (notes.title, notes.date) == ("export", "2024-03-05T08:00:00Z")
    assert notes.markdown == (
        "## Boiler\n\nNotebook: House  \nTags: heating  \n2024-03-02T10:15:00Z\n\n"
        "**Service**\n\nfilter\n"
    )
