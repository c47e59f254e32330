"""What does a picture say?"""

import shutil
import stat
from pathlib import Path

import pytest
from pdf_shapes import drawn, lines

from kb.errors import Scanned, Unparsable, Unsupported
from kb.intake.canonicalize import CanonicalizeInput, Parser
from kb.intake.canonicalize.pdf.render import PIXELS_MAX, page_picture
from kb.intake.recognize.tesseract import Tesseract, installed

needs_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="tesseract is not installed"
)
WORDS = "The garden gate was painted green"
PAGE = drawn(lines([WORDS]))


def program(folder: Path, text: str) -> str:
    """A program that stands for tesseract."""
    path = folder / "tesseract"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_page_is_drawn_in_the_child() -> None:
    """The picture is a grey map of the page, of bounded size, and dark where letters are."""
    with Parser() as parser:
        picture = parser.page_picture(PAGE, "a.pdf", 0)
        head, _, rest = picture.partition(b"\n")
        kind, width, height, most = head.split()
        assert (kind, most) == (b"P5", b"255")
        assert len(rest) == int(width) * int(height) <= PIXELS_MAX
        assert min(rest) < 60
        with pytest.raises(Unparsable, match="page 8 cannot be drawn"):
            parser.page_picture(PAGE, "a.pdf", 7)
        with pytest.raises(Unparsable, match="cannot draw"):
            parser.page_picture(b"no pdf", "a.pdf", 0)


@needs_tesseract
def test_words_of_a_picture_are_read() -> None:
    """What is drawn is read again; a picture without words has none."""
    engine = installed((), cpu_s_max=30, memory_bytes_max=2 << 30)
    assert engine is not None
    assert engine.fingerprint == "tesseract:eng"
    assert WORDS in engine.read(page_picture(PAGE, 0, "a.pdf"), "a.pdf")
    assert engine.read(b"P5 200 200 255\n" + b"\xff" * 40_000, "white") == ""


@needs_tesseract
def test_what_is_wrong_is_said() -> None:
    """A language that is not installed, and bytes that are no picture."""
    engine = installed(("xyz",), cpu_s_max=30, memory_bytes_max=2 << 30)
    assert engine is not None
    with pytest.raises(Unsupported, match=r"xyz\.traineddata"):
        engine.read(page_picture(PAGE, 0, "a.pdf"), "a.pdf")
    engine = installed((), cpu_s_max=30, memory_bytes_max=2 << 30)
    assert engine is not None
    with pytest.raises(Unparsable, match="tesseract ended with status"):
        engine.read(b"no picture", "a.png")


def test_limits_hold_for_the_program(tmp_path: Path) -> None:
    """Processor time, memory and threads are bounded before it starts, and no core is written."""
    engine = Tesseract(
        program=program(
            tmp_path, "ulimit -t; ulimit -v; ulimit -c; echo $OMP_THREAD_LIMIT $HOME a"
        ),
        cpu_s_max=7,
        memory_bytes_max=1 << 30,
    )
    assert engine.read(b"", "x").split() == ["7", str(1 << 20), "0", "1", "a"]
    engine = Tesseract(program=program(tmp_path, "while :; do :; done"), cpu_s_max=1)
    with pytest.raises(Unparsable, match="tesseract ended with status"):
        engine.read(b"", "x")


def test_it_is_not_missed_where_it_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the program there is no engine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert installed((), cpu_s_max=1, memory_bytes_max=1) is None


def test_a_scan_crosses_with_its_pages() -> None:
    """A file without text says how many pages it has, also out of the child."""
    blank = drawn("", "", "")
    with Parser() as parser, pytest.raises(Scanned) as caught:
        parser.parse(CanonicalizeInput(data=blank, mime="application/pdf", name="s.pdf"))
    assert caught.value.pages == 3
