"""What kind of bytes are these?"""

import pytest

from kb.intake.canonicalize import detect_mime

PDF_HEAD = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
CONTROLS = bytes(range(32)) * 20


@pytest.mark.parametrize(
    ("data", "name", "mime"),
    [
        (b"# hi\n", "a.md", "text/markdown"),
        (b"# hi\n", "A.MARKDOWN", "text/markdown"),
        (b"# hi\n", "notes/a.mdx", "text/markdown"),
        (b"hi\n", "a.txt", "text/plain"),
        (b"hi\n", None, "text/plain"),
        (b"hi\n", "-", "text/plain"),
        (b"hi\n", "Makefile", "text/plain"),
        (b"hi\n", "a.zzz", "text/plain"),
        (b"", "a.md", "text/markdown"),
        (b"", None, "text/plain"),
        (b"a,b\n", "a.csv", "text/csv"),
        (b"{}", "a.ipynb", "application/x-ipynb+json"),
        (
            b"PK\x03\x04......",
            "a.docx",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (b"PK\x03\x04......", "a.zip", "application/zip"),
        (
            b"PK\x03\x04....mimetypeapplication/vnd.oasis.opendocument.textPK",
            "a.bin",
            "application/vnd.oasis.opendocument.text",
        ),
        (b"<p>part of a page</p>", "a.html", "text/html"),
        (b"<!DOCTYPE html><p>x", "page", "text/html"),
        (b"\xef\xbb\xbf \n<!-- <svg> -->\n<HTML lang=en>", None, "text/html"),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "x"><html/>', "a.xml", "text/html"),
        ("<html><body>x".encode("utf-16"), None, "text/html"),
        (b"<htmlish>", None, "text/plain"),
        (b"<!doctype html><p>", "a.md", "text/markdown"),
        (b"<!doctype html><p>", "template.py", "text/x-source-python"),
        (b'<?xml version="1.0"?><rss/>', "feed.xml", "text/plain"),
        (b"<svg xmlns='x'/>", "a.svg", "image/svg+xml"),
        (PDF_HEAD, "a.pdf", "application/pdf"),
        (PDF_HEAD, "a.md", "application/pdf"),
        (b"junk before\n" + PDF_HEAD, None, "application/pdf"),
        (b"A PDF starts with %PDF-1.7.\n", "pdf.md", "text/markdown"),
        (b"not really", "a.pdf", "application/pdf"),
        (b"<!doctype html><title>404</title>", "a.pdf", "text/html"),
        (CONTROLS, "a.pdf", "application/pdf"),
        (CONTROLS, "a.md", "application/octet-stream"),
        (CONTROLS, "a.zzz", "application/octet-stream"),
        (b"one\x00two\x00three", "a.txt", "application/octet-stream"),
        (b"\x89PNG\r\n\x1a\n" + CONTROLS, "a.txt", "image/png"),
        (b"\xff\xd8\xff\xe0" + CONTROLS, None, "image/jpeg"),
        (b"\x1f\x8b\x08" + CONTROLS, "a.txt.gz", "application/gzip"),
        (b"PK\x03\x04" + CONTROLS, "a.zip", "application/zip"),
        (b"PK\x03\x04....mimetypeapplication/epub+zip", "a.bin", "application/epub+zip"),
        (b"\x7fELF\x02\x01\x01" + CONTROLS, "tool", "application/x-executable"),
        (b"MZ" + CONTROLS, "a.exe", "application/x-msdownload"),
        (b"BMW and MZ are names", "cars", "text/plain"),
        (b"{\\rtf1\\ansi hi}", "a.rtf", "application/rtf"),
        ("日本語のメモ".encode("utf-16"), "a.txt", "text/plain"),
        ("plain words".encode("utf-16-le"), "a.txt", "text/plain"),
        ("plain words".encode("utf-32"), "a.txt", "text/plain"),
        ("déjà vu".encode("latin-1"), "a.txt", "text/plain"),
        (b"\x1b[31mred\x1b[0m\n" * 9, "build.log", "text/plain"),
    ],
)
def test_bytes_decide_and_the_name_settles(data: bytes, name: str | None, mime: str) -> None:
    """The bytes decide what they can; the name settles the rest."""
    assert detect_mime(data, name) == mime


def test_docx_is_named() -> None:
    """A zip with word/ in it is a Word document, unless it is called an archive."""
    mime = detect_mime(b"PK\x03\x04" + b"\0" * 26 + b"word/document.xml", "a.bin")
    assert mime.endswith("wordprocessingml.document")


def test_a_character_cut_by_the_sample_is_still_text() -> None:
    """UTF-8 that the 64 KiB sample cuts inside a character stays text."""
    assert detect_mime(b"a" + "é".encode() * 40_000, "a") == "text/plain"
