"""Which records of an export become docs of their own?"""

import json
from typing import Any

import pytest

from kb.intake.canonicalize import CanonicalizeInput, canonicalize, detect_mime
from kb.model.text import Canonical

LONG = "We walked along the river until it rained. " * 20


def read(value: Any, name: str = "export.json") -> Canonical:
    """The export, or one of its records, as kb reads it."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return canonicalize(CanonicalizeInput(data=data, mime=detect_mime(data, name), name=name))


def talk(number: int, **fields: Any) -> dict[str, Any]:
    """A conversation as assistants export it."""
    messages = [
        {"sender": who, "text": f"Ibex {number}, said by {who}.", "created_at": f"2026-03-0{day}"}
        for day, who in enumerate(("human", "assistant"), 1)
    ]
    named = {"uuid": f"talk-{number}", "name": f"Talk {number}", "created_at": "2026-03-01"}
    return {**named, "chat_messages": messages, **fields}


def records(value: Any, name: str = "export.json") -> dict[str, Canonical]:
    """The records of an export by their keys, each read by itself."""
    files = read(value, name).attachments
    return {file.key: read(file.data, file.name) for file in files}


def test_each_conversation_is_a_record_with_its_title_day_and_text() -> None:
    """The export itself has all of them still, for whoever takes it as one doc."""
    whole = [talk(1), talk(2, created_at="2026-04-01")]
    found = records(whole)
    assert {key: (doc.title, doc.date) for key, doc in found.items()} == {
        "talk-1": ("Talk 1", "2026-03-01"),
        "talk-2": ("Talk 2", "2026-04-01"),
    }
    assert found["talk-1"].markdown == (
        "## 2026-03-01\n\n**human**: Ibex 1, said by human.\n\n"
        "## 2026-03-02\n\n**assistant**: Ibex 1, said by assistant.\n"
    )
    assert found["talk-1"].attachments == ()
    for number in (1, 2):
        assert f"Ibex {number}, said by human." in read(whole).markdown


def test_records_are_found_below_what_an_export_says_of_itself() -> None:
    """Which stays, and is all that is left of it."""
    whole = {"about": "All your data", "chats": {"list": [talk(1), talk(2)]}}
    assert read(whole).rest == "- about: All your data"
    assert set(records(whole)) == {"talk-1", "talk-2"}


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ([{"uid": str(n), "text": LONG, "creationDate": "2026-03-01"} for n in range(3)], 3),
        ([{"title": f"N{n}", "body": LONG, "created": "2026-03-01"} for n in range(3)], 3),
        ([{"uid": str(n), "text": "A short post.", "date": "2026-03-01"} for n in range(3)], 0),
        ([{"user": "Ada", "text": LONG, "ts": "1700000000.1"} for n in range(3)], 0),
        ([{"title": f"N{n}", "text": "row", "date": "2026-03-01"} for n in range(3)], 0),
        ({"title": "A board", "cards": [talk(1), talk(2)]}, 0),
        ([talk(1)], 0),
    ],
)
def test_what_is_a_message_a_row_or_one_thing_stays_in_one_doc(value: Any, count: int) -> None:
    """Notes and conversations are docs; posts, messages and rows of a table are none."""
    assert len(records(value)) == count


def test_a_record_without_an_id_is_known_by_its_title_and_day() -> None:
    """And of two that have the same one by what they say."""
    first, second = talk(1, uuid=None), talk(2, uuid=None, name="Talk 1")
    keys = list(records([first, second]))
    assert len(set(keys)) == 2
    edited = talk(1, uuid=None, chat_messages=[*first["chat_messages"], *second["chat_messages"]])
    assert next(iter(records([edited, talk(3)]))) == keys[0]


def test_notes_of_evernote_are_records() -> None:
    """With their titles, days and tags, without the files in them."""
    notes = "".join(
        f"<note><title>Note {n}</title><content><![CDATA[<en-note><div>Ibex {n}</div></en-note>]]>"
        f"</content><created>2026030{n}T100000Z</created><tag>alps</tag><resource><data>QUJD</data>"
        "</resource></note>"
        for n in (1, 2)
    )
    whole = f"<en-export>{notes}</en-export>".encode()
    found = records(whole, "notes.enex")
    assert list(found) == ["20260301T100000Z", "20260302T100000Z"]
    note = found["20260302T100000Z"]
    assert (note.title, note.date, note.tags) == ("Note 2", "2026-03-02T10:00:00Z", ("alps",))
    assert "Ibex 2" in note.markdown
    assert all(b"QUJD" not in file.data for file in read(whole, "notes.enex").attachments)
