"""What do a workbook of an old Excel and a mail of Outlook say?"""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import SourceError, Unparsable
from kb.intake.canonicalize import CanonicalizeInput, Parser, detect_mime, msg, xls

ROOT = Path(__file__).parents[3]
FORMATS = ROOT / "examples/formats"
REAL = ROOT.parent / "shared/data/files"
SEEDS = (FORMATS / "seeds.xls").read_bytes()
MAIL = (FORMATS / "shed-key.msg").read_bytes()


def test_a_workbook_is_a_table_for_each_sheet() -> None:
    """As xlsx is; numbers stand as they are stored."""
    doc = xls.read(SEEDS, "seeds.xls")
    table = "| seed | grams |\n| --- | --- |\n| scorzonera | 12.5 |\n| beetroot | 30 |\n"
    assert doc.markdown == "# Seeds\n\n" + table
    assert (doc.title, doc.mime) == ("seeds", "application/vnd.ms-excel")


def test_a_mail_is_as_any_other() -> None:
    """Subject, heads, text and attachments; its date is when it was sent."""
    doc = msg.read(MAIL, "shed-key.msg")
    assert doc.markdown == (
        "# Key to the tool shed\n\nFrom: Ama Okonkwo <ama@allotment.example>  \nTo: Committee  \n"
        "Date: 2026-03-01T21:20:00+00:00\n\n"
        "The key hangs behind the third beehive now, since the padlock froze.\n\n"
        "Attachments: shed.pdf\n"
    )
    assert (doc.title, doc.date) == ("Key to the tool shed", "2026-03-01T21:20:00+00:00")
    assert doc.mail is not None
    assert doc.mail.sender == "Ama Okonkwo <ama@allotment.example>"


def test_each_is_told_by_its_ending() -> None:
    """All old offices write the same container; one of another kind is refused by name."""
    assert detect_mime(SEEDS, "a.xls") == "application/vnd.ms-excel"
    assert detect_mime(MAIL, "a.msg") == "application/vnd.ms-outlook"
    with pytest.raises(Unparsable, match="no mail of Outlook"):
        msg.read(SEEDS, "a.msg")
    with pytest.raises(Unparsable, match="it is damaged; save it again as xlsx"):
        xls.read(MAIL, "a.xls")


def test_damaged_ones_are_read_or_refused() -> None:
    """Whatever bytes change, and wherever the file ends; in the child, as all hostile files."""
    with Parser() as parser:

        @settings(max_examples=80, deadline=None)
        @given(
            st.sampled_from(((SEEDS, "a.xls"), (MAIL, "a.msg"))),
            st.integers(0, 6_000),
            st.binary(min_size=1, max_size=8),
            st.integers(0, 3_000),
        )
        def read(seed: tuple[bytes, str], at: int, wrong: bytes, cut: int) -> None:
            whole, name = seed
            at %= len(whole)
            data = (whole[:at] + wrong + whole[at + len(wrong) :])[: max(600, len(whole) - cut)]
            mime = detect_mime(whole, name)
            with contextlib.suppress(SourceError):
                assert parser.parse(CanonicalizeInput(data=data, mime=mime, name=name)).markdown

        read()


@pytest.mark.skipif(not REAL.is_dir(), reason="the real files in ../shared are not here")
@pytest.mark.parametrize("ending", ["xls", "msg"])
def test_real_ones_are_read(ending: str) -> None:
    """Each of them, as other programs wrote it."""
    read = {"xls": xls.read, "msg": msg.read}[ending]
    paths = sorted(REAL.rglob(f"*.{ending}"))
    assert len(paths) >= 4
    for path in paths:
        assert len(read(path.read_bytes(), path.name).markdown) > 40
