"""Which bytes stand for a file that is never read whole?"""

import os
import struct
from pathlib import Path

import pytest

from kb.intake.canonicalize.media.named_file import read
from kb.store.content.ends import HEAD_BYTES, TAIL_BYTES, WHOLE_BYTES_MAX, ends_of

INDEX = bytes(700_000)


def box(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body) + 8) + name + body


def wide_box(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I4sQ", 1, name, len(body) + 16) + body


TITLE = box(b"\xa9nam", box(b"data", struct.pack(">II", 1, 0) + b"Regatta at the weir"))
USER = box(b"udta", box(b"meta", bytes(4) + box(b"ilst", TITLE)))
HEAD = box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 1_000, 90_000) + bytes(80))
START = box(b"ftyp", b"isom" + bytes(4))


def ends(path: Path, data: bytes) -> bytes:
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        return ends_of(fd, len(data))
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    "film",
    [
        START + box(b"moov", HEAD + box(b"trak", INDEX) + USER) + box(b"mdat", INDEX),
        START + wide_box(b"mdat", INDEX) + box(b"moov", HEAD + box(b"trak", INDEX) + USER),
        START + box(b"mdat", INDEX) + box(b"moov", HEAD + USER + box(b"trak", INDEX)),
    ],
)
def test_a_film_says_what_it_is_however_long_its_index_is(film: bytes, tmp_path: Path) -> None:
    """Wherever its boxes lie between its ends; its first and last bytes stay where they are."""
    found = ends(tmp_path / "a.mp4", film)
    assert found[:HEAD_BYTES] == film[:HEAD_BYTES]
    assert found[-TAIL_BYTES:] == film[-TAIL_BYTES:]
    doc = read(found, "a.mp4")
    assert doc.title == "Regatta at the weir"
    assert "1:30" in doc.markdown


@pytest.mark.parametrize(
    "film",
    [
        START + struct.pack(">I4s", 8, b"free") * 100_000,
        START + box(b"moov", struct.pack(">I4s", 4, b"trak") + INDEX),
        START + box(b"moov", box(b"udta", INDEX) * 20),
        START + struct.pack(">I4sQ", 1, b"moov", 1 << 63) + INDEX,
        bytes(900_000),
    ],
)
def test_hostile_films_are_bounded(film: bytes, tmp_path: Path) -> None:
    """Boxes without end, of no length, too many, or longer than the file."""
    assert (
        WHOLE_BYTES_MAX <= len(ends(tmp_path / "a.mp4", film)) <= WHOLE_BYTES_MAX + 2 * TAIL_BYTES
    )
