"""What do sounds, films, archives and books say of themselves?"""

import contextlib
import gzip
import io
import tarfile
import zipfile

import media_files as media
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import SourceError
from kb.intake.canonicalize.media.named_file import read
from kb.intake.canonicalize.mime import detect_mime
from kb.store.content.ends import HEAD_BYTES, TAIL_BYTES

SONG = (("title", "Nachtlied"), ("artist", "Ada Wolf"), ("album", "Ufer"), ("date", "1998-05-02"))
WHOLE = {
    "song.mp3": media.mp3(
        ("TIT2", "Nachtlied"), ("TPE1", "Ada Wolf"), ("TALB", "Ufer"), ("TDRC", "1998-05-02")
    ),
    "song.flac": media.flac(*SONG),
    "song.opus": media.opus(*((name.upper(), text) for name, text in SONG)),
    "song.m4a": media.mp4(
        (b"\xa9nam", "Nachtlied"),
        (b"\xa9ART", "Ada Wolf"),
        (b"\xa9alb", "Ufer"),
        (b"\xa9day", "1998-05-02"),
    ),
    "song.mkv": media.mkv(
        "Nachtlied", ("ARTIST", "Ada Wolf"), ("ALBUM", "Ufer"), ("DATE_RELEASED", "1998-05-02")
    ),
    "song.wav": media.wav(
        (b"INAM", "Nachtlied"), (b"IART", "Ada Wolf"), (b"IPRD", "Ufer"), (b"ICRD", "1998-05-02")
    ),
}
LENGTHS = {
    "mp3": "0:26",
    "flac": "1:01",
    "opus": "0:30",
    "m4a": "1:30",
    "mkv": "3:20",
    "wav": "0:02",
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_sound_says_what_it_is(name: str) -> None:
    """Title, artist, album, day and length, in each format; a title is a name, and no text."""
    doc = read(WHOLE[name], name)
    ending = name.partition(".")[2]
    assert doc.title == "Ada Wolf – Nachtlied"
    assert (doc.date, doc.by_name) == ("1998-05-02", True)
    assert f", {LENGTHS[ending]}  \nTitle: Nachtlied  \nBy: Ada Wolf  \nAlbum: Ufer" in doc.markdown
    assert detect_mime(WHOLE[name], name) == doc.mime


def test_what_aiff_and_windows_media_say() -> None:
    """Title, artist and length; a description is text."""
    doc = read(media.aiff((b"NAME", "Nachtlied"), (b"AUTH", "Ada Wolf")), "a.aif")
    assert (doc.title, doc.by_name) == ("Ada Wolf – Nachtlied", True)
    assert doc.markdown.startswith("AIF audio, 0:03")
    for name, what in (("a.wma", "WMA audio"), ("a.wmv", "WMV video")):
        doc = read(media.asf("Nachtlied", "Ada Wolf"), name)
        assert (doc.title, doc.by_name) == ("Ada Wolf – Nachtlied", True)
        assert doc.markdown.startswith(f"{what}, 0:04")
    told = read(media.asf("Nachtlied", "Ada Wolf", "Sung by the weir."), "a.wma")
    assert (told.by_name, told.markdown.splitlines()[0]) == (False, "Sung by the weir.")


def test_the_ends_of_a_film_are_enough() -> None:
    """What stands behind gigabytes of film is found in the last bytes."""
    film = media.mp4((b"\xa9nam", "Weir in flood"), seconds=3_700, film=3_000_000)
    doc = read(film[:HEAD_BYTES] + film[-TAIL_BYTES:], "weir.mp4")
    assert (doc.title, doc.by_name) == ("Weir in flood", True)
    assert doc.markdown.startswith("MP4 video, 1:01:40")
    film = media.mkv("Weir", ("DESCRIPTION", "The whole valley under water."), film=3_000_000)
    doc = read(film[:HEAD_BYTES] + film[-TAIL_BYTES:], "weir.mkv")
    assert (doc.title, doc.by_name) == ("Weir", False)
    assert doc.markdown.startswith("The whole valley under water.")


def test_a_phone_says_when_it_filmed() -> None:
    """From the head of the movie, whose clock may never have been set."""
    assert read(media.mp4(made=3_639_715_200), "IMG_0042.MOV").date == "2019-05-03T08:00:00Z"
    assert read(media.mp4(made=0), "IMG_0042.MOV").date is None
    assert read(media.mp4(made=(1 << 32) - 1), "IMG_0042.MOV").date == "2040-02-06T06:28:15Z"


def test_old_tags_at_the_end() -> None:
    """ID3v1, where there is nothing in front."""
    data = media.mp3(old={"title": "Nachtlied", "artist": "Ada Wolf", "year": "1998"})
    doc = read(data, "a.mp3")
    assert (doc.title, doc.date) == ("Ada Wolf – Nachtlied", "1998")


def test_a_lyric_is_text_and_what_programs_note_is_not() -> None:
    """A comment of iTunes is a row of digits."""
    doc = read(media.mp3(("TIT2", "Lied"), ("USLT", "Die Nacht ist kühl\nund still")), "a.mp3")
    assert (doc.by_name, doc.markdown.splitlines()[:2]) == (
        False,
        ["Die Nacht ist kühl", "und still"],
    )
    assert read(media.mp3(("COMM", " 00000A2B 00000C3D 000049F1")), "a.mp3").by_name


def zipped(names: list[str]) -> bytes:
    """A zip with a short text under each name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return out.getvalue()


def test_an_archive_lists_what_is_in_it() -> None:
    """The names, without folders and what macOS puts beside them; of many the first."""
    names = ["letters/mill.txt", "letters/", "__MACOSX/letters/._mill.txt", "Über uns.md"]
    doc = read(zipped(names), "backup.zip")
    assert "\n\n- letters/mill.txt\n- Über uns.md\n" in doc.markdown
    assert doc.by_name
    many = read(zipped([f"folder/{n}.txt" for n in range(3_000)]), "backup.zip")
    assert "In it are 3,000 files, the first 500:" in many.markdown
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in ("a/one.txt", "a/two.txt"):
            archive.addfile(tarfile.TarInfo(name))
    listed = "It begins with:\n\n- a/one.txt\n- a/two.txt\n"
    assert listed in read(out.getvalue(), "a.tar").markdown
    assert listed in read(gzip.compress(out.getvalue()), "a.tgz").markdown


def test_the_end_of_a_long_list_is_read() -> None:
    """Of a zip whose list is longer than what is read of it, the last names."""
    data = zipped([f"a-rather-long-name-of-a-folder/{n:05}.txt" for n in range(9_000)])
    doc = read(data[:HEAD_BYTES] + data[-TAIL_BYTES:], "a.zip")
    assert "In it are 9,000 files, the first 500:" in doc.markdown


def test_a_book_for_kindle_names_itself() -> None:
    """Its title and its author."""
    assert (
        read(media.mobi("The Old Mill", "Ada Wolf"), "B00X.mobi").title == "Ada Wolf – The Old Mill"
    )


def test_a_name_is_enough() -> None:
    """Of formats that say nothing, of other bytes, and of a private key no byte is shown."""
    for name in ("a.ttf", "a.stl", "a.psd", "a.mp3", "a.zip", "server.key", "a.mkv"):
        doc = read(b"-----BEGIN PRIVATE KEY-----\nMIIEvQ\n", name)
        assert (doc.title, doc.by_name) == (name.partition(".")[0], True)
        assert "MIIEvQ" not in doc.markdown
        assert doc.markdown != "KEY slides\n"
        assert detect_mime(b"-----BEGIN PRIVATE KEY-----\nMIIEvQ\n", name) == doc.mime


def test_a_wrong_name_does_not_hide_a_text() -> None:
    """A PDF that is called a drawing is read, and a backup that holds documents is an archive."""
    assert detect_mime(b"%PDF-1.7\n...", "poster.ai") == "application/pdf"
    assert detect_mime(zipped(["word/document.xml"]), "backup.zip") == "application/zip"
    document = zipped(["[Content_Types].xml", "word/document.xml"])
    assert detect_mime(document, "report.zip").endswith("wordprocessingml.document")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_files_are_read_or_refused(data: st.DataObject) -> None:
    """No bytes make a reader fail otherwise."""
    name = data.draw(st.sampled_from([*WHOLE, "a.mobi", "a.zip", "a.tgz", "a.aiff", "a.wma"]))
    whole = {**WHOLE, "a.mobi": media.mobi("x", "y"), "a.zip": zipped(["a", "b"])}.get(name, b"")
    stored = bytearray(whole or data.draw(st.binary(min_size=1, max_size=400)))
    for _ in range(data.draw(st.integers(0, 6))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SourceError):
        read(bytes(stored[: data.draw(st.integers(1, len(stored)))]), name)
