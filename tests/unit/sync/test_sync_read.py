"""The bytes of one file: whole, and from one moment."""

import os
from pathlib import Path

import pytest

from kb.errors import ChangedWhileRead, TooLarge, Unreadable
from kb.intake.sync.read import read_file, read_stream


def test_bytes_and_stamp(tmp_path: Path) -> None:
    """The bytes come with the stamp of the file that they were read from."""
    path = tmp_path / "a"
    path.write_bytes(b"words" * 1000)
    data, stamp = read_file(path, 1 << 20, 7)
    found = path.stat()
    assert data == path.read_bytes()
    assert (stamp.size_bytes, stamp.mtime_ns, stamp.inode) == (
        found.st_size,
        found.st_mtime_ns,
        found.st_ino,
    )
    assert stamp.taken_ms == 7


@pytest.mark.parametrize("change", ["grows", "shrinks", "is rewritten"])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Bytes from two moments are refused, whichever way the file moved."""
    path = tmp_path / "a.md"
    path.write_bytes(b"x" * 100)
    whole = os.read
    touched: list[int] = []

    def read(fd: int, count: int) -> bytes:
        data = whole(fd, count)
        if not touched:
            touched.append(fd)
            with path.open("r+b") as file:
                if change == "grows":
                    file.seek(0, os.SEEK_END)
                    file.write(b"more")
                elif change == "shrinks":
                    file.truncate(10)
                else:
                    file.write(b"y" * 100)
            os.utime(path, ns=(1, 1))
        return data

    monkeypatch.setattr(os, "read", read)
    with pytest.raises(ChangedWhileRead) as raised:
        read_file(path, 1 << 20, 0)
    assert str(path) in str(raised.value)
    assert "add it again" in raised.value.reason


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and a pipe are refused by name, and none is waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (
        ("none", "no such file"),
        (".", "not a regular file"),
        ("pipe", "not a regular file"),
        ("a" * 300, "cannot be read (File name too long)"),
    ):
        with pytest.raises(Unreadable) as raised:
            read_file(tmp_path / name, 100, 0)
        assert raised.value.reason == reason


def test_a_file_over_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size alone refuses it; at the limit it is read."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100)
    assert len(read_file(path, 100, 0)[0]) == 100
    monkeypatch.setattr(os, "read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(TooLarge, match=r"100 bytes, over the limit of 99"):
        read_file(path, 99, 0)


def test_an_error_of_the_disk_is_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An I/O error in the middle is that source's failure."""

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    path = tmp_path / "a"
    path.write_bytes(b"x")
    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(Unreadable, match="Input/output error"):
        read_file(path, 100, 0)


def test_a_stream_is_read_to_its_end_or_limit() -> None:
    """All bytes of a pipe, and no more than the limit of an endless one."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"x" * 1000)
    os.close(write_end)
    assert read_stream(read_end, 1000, "-") == b"x" * 1000
    os.close(read_end)
    with open("/dev/zero", "rb") as zero, pytest.raises(TooLarge):
        read_stream(zero.fileno(), 1 << 21, "-")
