"""What do the messages and notes say that programs export as JSON?"""

import json
from textwrap import dedent
from typing import Any

import pytest

from kb.intake.canonicalize import CanonicalizeInput, canonicalize, detect_mime
from kb.model.text import Canonical

MOMENT_S = 1_654_329_600
"""2022-06-04T08:00:00Z."""


def read(value: Any, name: str = "a.json", before: str = "") -> Canonical:
    data = (before + json.dumps(value)).encode()
    return canonicalize(
        CanonicalizeInput(data=data, mime=detect_mime(data, name), name=f"/home/ada/{name}")
    )


def message(text: object, at_s: int, **fields: object) -> dict[str, object]:
    return {"type": "message", "text": text, "user": "U1", "ts": f"{at_s}.0002", **fields}


def test_messages_are_lines_below_their_day_in_the_order_of_time() -> None:
    """Whoever wrote is named; what programs keep beside a text for themselves is left out."""
    ada = {"user_profile": {"real_name": "Ada Wolf", "image_72": "https://x.example/a.png"}}
    blocks = {"blocks": [{"type": "rich", "elements": [{"type": "text", "text": "The weir"}]}]}
    file = {"files": [{"id": "F123", "title": "Plan of the mill", "mimetype": "image/png"}]}
    chat = read([
        message("Who has the key?", MOMENT_S + 86_400),
        message("The weir leaks\nbelow the gate", MOMENT_S, **ada, **blocks),
        message("See the plan", MOMENT_S + 60, team="T1", **ada, **file),
    ])  # fmt: skip
    assert chat.markdown == dedent("""\
        ## 2022-06-04

        **Ada Wolf** 08:00:

        The weir leaks
        below the gate

        **Ada Wolf** 08:01: See the plan (title: Plan of the mill)

        ## 2022-06-05

        **U1** 08:00: Who has the key?
        """)
    assert chat.date == "2022-06-05T08:00:00Z"


def test_a_chat_says_when_its_last_message_came() -> None:
    """A text may be in parts, and what happened without a text is said."""
    parts = ["See ", {"type": "link", "text": "https://weir.example"}, " first"]
    chat = read({
        "name": "Hikers",
        "messages": [
            {"id": 1, "type": "message", "date": "2022-06-04T08:00:00", "from": "Ada",
             "text": parts},
            {"id": 2, "type": "service", "date": "2022-06-05T08:00:00", "actor": "Lian",
             "action": "pin_message", "text": ""},
        ],
    })  # fmt: skip
    assert chat.title == "Hikers"
    assert chat.date == "2022-06-05T08:00:00"
    assert "**Ada** 08:00: See https://weir.example first\n" in chat.markdown
    assert "**Lian** 08:00 (action: pin_message)" in chat.markdown


def test_a_conversation_with_an_assistant_reads_as_one() -> None:
    """Its messages may be nodes by their ids, and the headings of an answer head nothing else."""

    def node(name: str, role: str, text: str, at_s: float) -> dict[str, object]:
        content = {"content_type": "text", "parts": [text]}
        said = {"id": name, "author": {"role": role, "metadata": {}}, "create_time": at_s}
        return {
            "id": name,
            "parent": "r",
            "children": ["n"],
            "message": {**said, "content": content},
        }

    answer = "# Proof it\n\n```python\n# twice\n```"
    nodes = {
        "r": {"id": "r", "message": None, "parent": None, "children": ["n1"]},
        "n1": node("n1", "user", "Why is it flat?", MOMENT_S + 0.5),
        "n2": node("n2", "assistant", answer, MOMENT_S + 9.5),
    }
    talk = read([{"title": "Bread", "create_time": MOMENT_S + 0.5, "mapping": nodes}])
    assert talk.date == "2022-06-04T08:00:00Z"
    assert talk.markdown.endswith(
        dedent("""\
        ### 2022-06-04

        **user** 08:00: Why is it flat?

        **assistant** 08:00:

        **Proof it**

        ```python
        # twice
        ```
        """)
    )


def test_a_note_has_its_title_its_days_and_its_tags() -> None:
    """Instants are written as people read them, and flags that are off are left out."""
    note = read({
        "title": "Packing", "textContent": "Tent\nstove", "isTrashed": False, "isPinned": True,
        "textContentHtml": "<p>Tent</p>", "labels": [{"name": "camping"}],
        "createdTimestampUsec": MOMENT_S * 1_000_000,
        "userEditedTimestampUsec": (MOMENT_S + 60) * 1_000_000,
    })  # fmt: skip
    assert note.title == "Packing"
    assert note.tags == ("camping",)
    assert note.created == note.date == "2022-06-04T08:00:00Z"
    assert note.modified == "2022-06-04T08:01:00Z"
    assert note.markdown == "Tent\nstove\n\n2022-06-04T08:00:00Z\n\n- isPinned: true\n"


def test_entries_of_a_journal_keep_where_they_were_written() -> None:
    """What an outline has below an entry follows it."""
    journal = read({"entries": [
        {"uuid": "0A1B2C3D4E5F60718293", "creationDate": "2022-06-04T08:00:00Z", "text": "An ibex.",
         "location": {"placeName": "Grindelwald"}, "tags": ["alps"]},
        {"creationDate": "2022-06-05T08:00:00Z", "text": "Rain.", "children": [
            {"string": "all day", "create-time": (MOMENT_S + 86_400) * 1_000}]},
    ]})  # fmt: skip
    assert "08:00: An ibex. (placeName: Grindelwald; tags: alps)" in journal.markdown
    assert journal.markdown.endswith("## 2022-06-05\n\n08:00: Rain.\n\n08:00: all day\n")


def test_an_archive_of_x_is_data() -> None:
    """Its files are scripts by name; each tweet is a dated line."""
    tweet = {"tweet": {"full_text": "At #dawn", "created_at": "Sat Jun 04 08:00:00 +0000 2022"}}
    tweets = read([tweet], "tweets.js", before="window.YTD.tweets.part0 = ")
    assert tweets.markdown == "## 2022-06-04\n\n08:00: At #dawn\n"
    assert tweets.mime == "application/json"


def test_letters_that_were_encoded_twice_are_mended() -> None:
    """As the archives of Facebook have them; other letters stay."""
    twice = "Grüße aus Österreich".encode().decode("latin-1")
    chat = read([{"sender_name": "Jürgen", "timestamp_ms": MOMENT_S * 1_000, "content": twice}])
    assert chat.markdown == "## 2022-06-04\n\n**Jürgen** 08:00: Grüße aus Österreich\n"


def test_a_log_stays_a_table() -> None:
    """Of records that name no writer no field is left out; numbers that are instants are dated."""
    log = read([
        {"time_ms": MOMENT_S * 1_000, "level": "ERROR", "message": "disk full", "code": 28},
        {"time_ms": MOMENT_S * 1_000, "level": "INFO", "message": "disk freed", "code": 0},
    ])  # fmt: skip
    assert "| 2022-06-04T08:00:00Z | ERROR | disk full | 28 |" in log.markdown


def test_settings_with_a_text_and_a_day_lose_nothing() -> None:
    """Objects that hold records of other kinds are no talk."""
    settings = read({
        "motd": {"message": "Welcome", "date": "2022-06-04"},
        "limits": {"disk": 28, "burst": {"size": 7}},
        "colours": {"bar": "red"},
    })  # fmt: skip
    for said in ("Welcome", "disk: 28", "size: 7", "bar: red"):
        assert said in settings.markdown


def test_a_long_list_of_measurements_is_said_in_a_few_lines() -> None:
    """Its fields, its span and its few words; a list of names is no such list."""
    places = [
        {"latitudeE7": 525_200_000 + n, "timestampMs": str((MOMENT_S + n) * 1_000),
         "source": "WIFI", "activity": [{"type": "STILL", "confidence": n % 100}]}
        for n in range(2_000)
    ]  # fmt: skip
    assert read({"locations": places}).markdown == dedent("""\
        ## locations

        2,000 values from 2022-06-04T08:00:00Z to 2022-06-04T08:33:19Z: latitudeE7, timestampMs, source, type, confidence

        WIFI, STILL
        """)  # noqa: E501
    names = [{"name": f"person{n}", "age": n} for n in range(2_000)]
    assert "person1999" in read(names).markdown


@pytest.mark.parametrize(
    ("lines", "day"),
    [
        (("04/06/2022, 08:00 - Secured.", "05/06/2022, 08:01 - Ada: Hi"), "2022-06-05"),
        (("6/4/22, 8:00 AM - Ada: Hi", "6/15/22, 8:01 PM - Lian: Yes"), "2022-06-15"),
        (("[04.06.22, 08:00:00] Ada: Hi", "\u200e[05.06.22, 08:01:10] Lian: Yes"), "2022-06-05"),
        (("2022-06-04, 08:00 - Ada: Hi", "2022-06-05, 08:01 - Lian: Yes"), "2022-06-05"),
        (("04/06/2022, 08:00 - Ada: Hi", "99/99/2022, 08:00 - Ada: Hi"), None),
        (("2022-06-04 was a Saturday.", "2022-06-05 was not."), None),
        (("1.2.3 is out", "and 1.2.4 is next"), None),
    ],
)
def test_a_chat_in_plain_text_is_of_its_last_day(lines: tuple[str, ...], day: str | None) -> None:
    """However the phone writes days; the text stays as it is."""
    text = "\n".join(lines) + "\n"
    source = CanonicalizeInput(data=text.encode(), mime="text/plain", name="Chat with Ada.txt")
    chat = canonicalize(source)
    assert (chat.date, chat.markdown) == (day, text)


def test_what_an_export_keeps_beside_a_picture_is_known_by_its_name() -> None:
    """As the picture is, unless somebody described it; its day is that of the picture."""
    facts: dict[str, Any] = {
        "title": "IMG_1.jpg", "description": "", "creationTime": {"timestamp": str(MOMENT_S + 9)},
        "photoTakenTime": {"timestamp": str(MOMENT_S), "formatted": "Jun 4, 2022"},
    }  # fmt: skip
    for name in ("IMG_1.jpg.json", "IMG_1.JPG.supplemental-metadata.json"):
        beside = read(facts, name)
        assert (beside.by_name, beside.date) == (True, "2022-06-04T08:00:00Z")
    assert not read({**facts, "description": "Grandma on the pier"}, "IMG_1.jpg.json").by_name
    assert not read(facts, "a.json").by_name
