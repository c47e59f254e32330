"""Exports of services by the real command: each conversation is a doc, and stays it."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
from commands import Home, record_counts, record_rows, surroundings

from kb.store import docs
from kb.store.meta import PARSERS, set_word
from kb.store.store import Store


def talk(number: int, said: str = "", **fields: Any) -> dict[str, Any]:
    """A conversation as assistants export it."""
    messages = [
        {"sender": who, "text": f"Ibex{number} {said} {who}.", "created_at": f"2026-03-0{day}"}
        for day, who in enumerate(("human", "assistant"), 1)
    ]
    month = f"2026-{number % 12 + 1:02}-01"
    named = {"uuid": f"talk-{number}", "name": f"Talk {number}", "created_at": month}
    return {**named, "chat_messages": messages, **fields}


def write(path: Path, *talks: dict[str, Any]) -> Path:
    """An export of these conversations."""
    path.write_text(json.dumps(talks))
    return path


def test_each_conversation_is_a_doc_that_stays_the_same(tmp_path: Path) -> None:
    """A later export adds what is new, and embeds that alone; a title may change."""
    home, file = Home(tmp_path / "home"), tmp_path / "in" / "conversations.json"
    file.parent.mkdir()
    write(file, *map(talk, range(1, 6)))
    added = home.run("add", file.parent)
    assert added.out.startswith("1 added of 1 scanned\nrecords: 5 added\n")
    before = record_rows(home)
    assert {key: title for key, (title, _) in before.items()} == {
        f"talk-{n}": f"Talk {n}" for n in range(1, 6)
    }
    assert list(record_rows(home, "--on", "2026-04")) == ["talk-3"]
    hit = home.run("search", "ibex4 assistant", "--json", "-k", "1").json["hits"][0]
    assert (hit["title"], hit["source"]) == ("Talk 4", f"{file}#talk-4")
    assert hit["freshness"] == "fresh"
    vectors = home.run("stats", "--json").json["vectors"]
    write(file, *map(talk, range(2, 5)), talk(5, name="Another title"), talk(6))
    report = home.run("sync-all", "--interval-min", "0", "--json").json
    assert record_counts(report) == {"added": 1, "updated": 1, "unchanged": 3, "removed": 1}
    after = record_rows(home)
    assert {key for key, row in after.items() if before.get(key) == row} == {
        *("talk-2", "talk-3", "talk-4")
    }
    assert after["talk-5"][0] == "Another title"
    assert home.run("stats", "--json").json["vectors"] <= vectors + 2
    moved = file.rename(file.with_name("talks.json"))
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert record_rows(home) == after
    assert record_rows(home, "--source", str(moved)) == after
    assert home.run("check").out.endswith("all is well\n")


def test_an_export_that_has_no_file_is_one_doc(tmp_path: Path) -> None:
    """Nothing of it is lost, since there is nothing that its parts could be parts of."""
    home, file = Home(tmp_path / "home"), write(tmp_path / "a.json", talk(1), talk(2))
    home.run("add", "-", stdin=file.read_text())
    assert record_rows(home) == {}
    for number in (1, 2):
        text = home.run("search", f"ibex{number}", "--json").json["hits"][0]["text"]
        assert f"Ibex{number}" in text


def test_a_kill_in_the_middle_of_an_export(tmp_path: Path) -> None:
    """The next call goes on behind what was committed: the file counts when all of it is in."""
    home = Home(tmp_path / "home")
    file = write(tmp_path / "a.json", *map(talk, range(300)))
    armed = surroundings(KB_FAILPOINTS="ingest.after_commit=kill@2")
    assert home.run("add", file, "--no-wait", env=armed).code == -9
    kept = record_rows(home)
    assert 0 < len(kept) < 300
    went_on = home.run("add", file, "--no-wait", "--json").json
    assert record_counts(went_on) == {"added": 300 - len(kept), "unchanged": len(kept)}
    assert record_rows(home).items() > kept.items()
    assert len(record_rows(home)) == 300


def channel(root: Path) -> Path:
    """The export of a chat with a channel; its people and channels are codes there."""
    messages = [
        {"type": "message", "user": user, "text": text, "ts": f"1700000{n}00.000100"}
        for n, (user, text) in enumerate(
            (
                ("U012ADA", "Ask <@U034BEA>, see <https://x.org/a?b=1&amp;c=2|the page> &lt;3"),
                ("U034BEA", "In <#C012GEN> and <#C034X|random>, <!here>; <@U099GONE>."),
            )
        )
    ]
    people = [
        {"id": "U012ADA", "name": "ada", "profile": {"real_name": "Ada Lovelace"}},
        {"id": "U034BEA", "name": "bea", "real_name": "Bea Berg", "deleted": True},
    ]
    (root / "general").mkdir(parents=True)
    (root / "users.json").write_text(json.dumps(people))
    (root / "channels.json").write_text(json.dumps([{"id": "C012GEN", "name": "general"}]))
    file = root / "general" / "2023-11-14.json"
    file.write_text(json.dumps(messages))
    return file


def test_people_and_channels_of_a_chat_have_names(tmp_path: Path) -> None:
    """Those that another file of the export states; others stay codes."""
    home, file = Home(tmp_path / "home"), channel(tmp_path / "in")
    said = (
        "## 2023-11-14\n\n"
        "**Ada Lovelace** 22:13: Ask @Bea Berg, see [the page](https://x.org/a?b=1&c=2) <3\n\n"
        "**Bea Berg** 22:15: In #general and #random, @here; @U099GONE.\n"
    )
    home.run("add", tmp_path / "in")
    assert home.run("export", str(file)).out.endswith(said)
    assert home.run("search", "bea", "--json", "-k", "1").json["hits"]
    doc_id = home.ids()[file.name]
    with Store.open(home.root / "store") as store, store.write() as txn:
        doc = docs.get(txn, doc_id)
        assert doc is not None
        docs.replace(txn, msgspec.structs.replace(doc, canonicalizer="structured-3"))
        set_word(txn, PARSERS, "before")
    shutil.rmtree(tmp_path / "in")
    assert home.run("worker", "--drain").code == 0
    assert home.run("export", str(file)).out.endswith(said)
    doc_id = home.ids()[file.name]
    with Store.open(home.root / "store") as store, store.read() as txn:
        doc = docs.get(txn, doc_id)
        assert doc is not None
        assert doc.canonicalizer == "structured-4"
