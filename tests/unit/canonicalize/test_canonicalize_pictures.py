"""What does a picture say of itself?"""

import contextlib
import struct
import zlib

import picture_files as pictures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import SourceError, Unparsable
from kb.intake.canonicalize.pictures.picture import read
from kb.model.text import Canonical

TAKEN = "Taken 2019-05-03 12:30:00+02:00  \nCamera: Kodama K-2  \nPlace: 48.20817, 16.37382\n"


def test_a_photo_says_when_where_and_with_what() -> None:
    """From Exif; what a camera writes as description is no description."""
    doc = read(pictures.jpeg(exif=pictures.CAMERA), "IMG_1234.JPG")
    assert doc.markdown == "JPEG picture, 640 × 480 pixels  \n" + TAKEN
    assert (doc.title, doc.date, doc.mime) == (
        "IMG_1234",
        "2019-05-03T12:30:00+02:00",
        "image/jpeg",
    )
    assert (doc.by_name, doc.tags) == (True, ())
    assert doc.coverage is not None
    assert (doc.coverage.pages, doc.coverage.pages_with_text) == (1, 0)


def test_what_people_wrote_is_title_text_and_tags() -> None:
    """From XMP; the doc is then more than its name."""
    packet = pictures.xmp("The old mill", "Behind the weir, in flood.", ("mill", "River Ems"))
    doc = read(pictures.jpeg(xmp=packet), "a.jpg")
    assert (doc.title, doc.tags, doc.by_name) == ("The old mill", ("mill", "River Ems"), False)
    assert doc.markdown.startswith("Behind the weir, in flood.\n\nKeywords: mill, River Ems\n\n")


def test_a_png_has_notes_of_its_own() -> None:
    """Plain, packed and international ones; Exif and XMP stand in chunks, too."""
    packed = b"Description\0\0" + zlib.compress("Größe und Maß".encode("latin-1"))
    doc = read(
        pictures.png(
            (b"tEXt", b"Title\0Plan of the attic"),
            (b"zTXt", packed),
            (b"iTXt", "Author\0\0\0de\0\0Jürgen".encode()),
            (b"tEXt", b"Software\0a program"),
            (b"eXIf", pictures.CAMERA),
        ),
        "a.png",
    )
    assert (doc.title, doc.by_name) == ("Plan of the attic", False)
    assert doc.markdown.startswith("Größe und Maß\n\nPNG picture, 640 × 480 pixels  \nTaken")
    assert "By: Jürgen" in doc.markdown
    assert "a program" not in doc.markdown


@pytest.mark.parametrize(
    ("data", "first"),
    [
        (pictures.webp((300, 200), pictures.CAMERA), "WebP picture, 300 × 200 pixels  \n" + TAKEN),
        (
            pictures.heic((4032, 3024), pictures.CAMERA),
            "HEIC picture, 4032 × 3024 pixels  \n" + TAKEN,
        ),
        (pictures.bmp((640, -426)), "BMP picture, 640 × 426 pixels\n"),
        (
            pictures.gif((120, 90), b"Drawn by hand"),
            "Drawn by hand\n\nGIF picture, 120 × 90 pixels\n",
        ),
        (
            pictures.exif({0x100: 90, 0x101: 80, 0x10E: "A deed"}),
            "A deed\n\nTIFF picture, 90 × 80 pixels\n",
        ),
    ],
)
def test_each_format_has_its_size_and_notes(data: bytes, first: str) -> None:
    """Each by its own head; no pixel is looked at."""
    assert read(data, "a").markdown == first


def test_an_icon_and_a_phones_format_are_not_read_by_ocr() -> None:
    """They have no page that could have text."""
    assert read(pictures.png(size=(64, 64)), "a.png").coverage is None
    assert read(pictures.heic((4032, 3024), b""), "a.heic").coverage is None


def test_what_is_no_picture_is_refused() -> None:
    """Bytes under a picture's name."""
    with pytest.raises(Unparsable, match=r"^a\.png: it is damaged"):
        read(b"\0\1\2 nothing", "a.png")


@pytest.mark.parametrize(
    "moment", ["0000:00:00 00:00:00", "2019:13:45 12:00:00", "    :  :     :  :  ", "yesterday"]
)
def test_a_clock_that_was_never_set_gives_no_date(moment: str) -> None:
    """Cameras write zeros and blanks."""
    doc = read(pictures.jpeg(exif=pictures.exif({}, {0x9003: moment})), "a.jpg")
    assert doc.date is None


def test_a_packed_note_is_unpacked_up_to_a_bound() -> None:
    """A note of a gibibyte takes no more than 64 KiB, and XML with entities is not read."""
    bomb = b"Description\0\0" + zlib.compress(b"a" * (64 << 20), 9)
    assert len(read(pictures.png((b"zTXt", bomb)), "a.png").markdown) < 70_000
    entities = b'<!DOCTYPE x [<!ENTITY e "eeee">]><x><title>&e;</title></x>'
    assert read(pictures.jpeg(xmp=entities), "a.jpg").title == "a"


def test_directories_that_lead_to_themselves_end() -> None:
    """Each is read once, with at most so many tags."""
    loop = b"II*\0" + struct.pack("<IHHHIII", 8, 1, 0x8769, 4, 1, 8, 0)
    many = (
        b"II*\0" + struct.pack("<IH", 8, 65_535) + struct.pack("<HHII", 270, 2, 1 << 30, 0) * 65_535
    )
    for tags in (loop, many):
        assert read(pictures.png((b"eXIf", tags)), "a.png").by_name


SEEDS = (
    pictures.jpeg(exif=pictures.CAMERA, xmp=pictures.xmp("a", "b", ("c",))),
    pictures.png((b"zTXt", b"Title\0\0" + zlib.compress(b"x")), (b"eXIf", pictures.CAMERA)),
    pictures.webp((9, 9), pictures.CAMERA),
    pictures.gif((9, 9), b"note"),
    pictures.heic((9, 9), pictures.CAMERA),
    pictures.CAMERA,
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(SEEDS),
    st.integers(0, 700),
    st.binary(min_size=1, max_size=8),
    st.integers(0, 700),
)
def test_damaged_pictures_are_read_or_refused(seed: bytes, at: int, wrong: bytes, end: int) -> None:
    """Whatever bytes change, and wherever the file ends: a doc, or an error of ours."""
    data = (seed[:at] + wrong + seed[at + len(wrong) :])[: max(12, len(seed) - end)]
    with contextlib.suppress(SourceError):
        assert isinstance(read(data, "a.jpg"), Canonical)
