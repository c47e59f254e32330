"""Mailboxes: read in a bounded way, and not at all where nothing has changed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import SmallHome

from kb.errors import Unparsable
from kb.intake.canonicalize import Parser
from kb.intake.canonicalize.mbox import MailBytes, mails_of
from kb.intake.sync import mailbox
from kb.intake.sync.add import Adder, AddOptions
from kb.intake.sync.report import AddReport

_HEAD = "From ada Mon Nov  2 10:00:00 2026\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def mail(number: int, text: str = "It hums.") -> str:
    head = f"{_HEAD}From: ada@example.org\nSubject: {number}\nMessage-ID: <{number}@x>\n"
    return f"{head}\n{text}\n\n"


def add(home: SmallHome, path: Path) -> AddReport:
    with Parser() as parser:
        return Adder(home.store, home.ingestor, parser, AddOptions()).add([str(path)])


def split(data: bytes, block: int, limit: int) -> list[MailBytes]:
    blocks = (data[at : at + block] for at in range(0, len(data), block))
    return list(mails_of(blocks, limit, "a.mbox"))


@pytest.mark.parametrize("block", [7, 100, 600, 5_000, 1 << 20])
def test_mails_do_not_depend_on_the_blocks(block: int) -> None:
    """However the file comes: the same mails, without what the mailbox adds to them."""
    texts = ["It hums.\n\n>From here on.", "long " * 3_000, "End.\n\nFrom now\nnothing begins"]
    text = "".join(mail(n, text) for n, text in enumerate(texts))
    text = text.replace("Subject: 0", "X-Mozilla-Status: 0001\nStatus: RO\nSubject: 0")
    mails = split(text.encode(), block, 10_000)
    assert [mail.message_id for mail in mails] == ["0@x", "1@x", "2@x"]
    assert [mail.is_over for mail in mails] == [False, True, False]
    assert mails[1].size_bytes > 15_000
    assert b"\nFrom here on.\n" in mails[0].data
    assert b"tatus" not in mails[0].data
    assert mails[2].data.endswith(b"End.\n\nFrom now\nnothing begins\n")
    crlf = split(text.replace("\n", "\r\n").encode(), block, 10_000)
    assert [mail.message_id for mail in crlf] == ["0@x", "1@x", "2@x"]


def test_a_large_mail_is_not_held() -> None:
    """Of a mail over the limit no more is held than the limit, a block and its head."""

    def blocks() -> Iterator[bytes]:
        yield mail(1).encode() + _HEAD.encode() + b"Message-ID: <2@x>\n\n"
        for _ in range(100):
            yield b"x" * 20_000
        yield b"\n\n" + mail(3).encode()

    import tracemalloc

    tracemalloc.start()
    mails = [(mail.message_id, mail.is_over) for mail in mails_of(blocks(), 50_000, "a.mbox")]
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert mails == [("1@x", False), ("2@x", True), ("3@x", False)]
    assert peak_bytes < 500_000


def test_what_is_no_mailbox() -> None:
    """It is refused by its first line."""
    with pytest.raises(Unparsable):
        split(b"kettles\n" * 1_000, 100, 10_000)


def test_an_unchanged_mailbox_is_not_opened(
    home: SmallHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stamp tells; a touched one is read, and its mails are unchanged without a parser."""
    box = tmp_path / "a.mbox"
    box.write_text(mail(1) + mail(2))
    # The stamp of a file that has only just changed proves nothing.
    home.clock.advance(box.stat().st_ctime_ns // 1_000_000 + 60_000 - home.clock.now_ms())
    assert add(home, box).mails.added == 2

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(mailbox, "opened", refuse)
    report = add(home, box)
    assert (report.unchanged, report.mails.scanned) == (1, 0)
    monkeypatch.undo()
    os.utime(box, ns=(1, 1))
    monkeypatch.setattr(Parser, "parse", refuse)
    report = add(home, box)
    assert (report.unchanged, report.mails.unchanged) == (1, 2)
