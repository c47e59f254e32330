"""The guide on a machine where kb was never used, and what agents leave for a person."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import KB, Ran, run, surroundings

from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.model.config import Settings
from kb.model.doc import OPERATOR, Scope
from kb.operations import table as tools

ASKED = "how do I add a folder?"
ADA = Scope(user="ada")
LEAVE = """
import sys
from pathlib import Path
from kb.operations import table as tools
from kb.model.config import Settings
from kb.model.doc import Scope
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces

home = SpaceHome(name="user", home=Path(sys.argv[1]))
with Spaces.open([home], lambda _: Settings()) as spaces:
    arguments = {"action": "stuck", "reason": "no way on"}
    tools.call("help", arguments, spaces, Scope(user="ada"))
"""


class Person:
    """Somebody whose machine has nothing of kb's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.work.mkdir()
        folders = {"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "conf", "XDG_CACHE_HOME": "cache"}
        places = {name: str(root / folder) for name, folder in folders.items()}
        self.env = surroundings(HOME=str(root), **places)
        self.mine = root / "data" / "kb"
        self.core = self.mine / "knowledge" / "kb"

    def kb(self, *args: str, cwd: Path | None = None, **env: str) -> Ran:
        return run([KB, *args], cwd=cwd or self.work, env=self.env | env)

    def guide(self, question: str, **options: Any) -> Any:
        ran = self.kb("guide", question, "--json", **options)
        assert (ran.code, ran.err) == (0, "")
        return ran.json


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_the_guide_answers_before_anything_was_made(person: Person) -> None:
    """From the right entry, without the network; no home is made, and no note is touched."""
    said = person.guide(ASKED, http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
    assert set(said) == {"found", "chunks", "suggestion"}
    assert said["found"] is True
    assert 1 <= len(said["chunks"]) <= 3
    best = said["chunks"][0]
    assert set(best) == {"zettel_id", "title", "content", "score", "source"}
    assert (best["zettel_id"], best["source"]) == ("kb-add", "kb")
    scores = [chunk["score"] for chunk in said["chunks"]]
    assert scores == sorted(scores, reverse=True)
    assert len({chunk["zettel_id"] for chunk in said["chunks"]}) == len(scores)
    assert not person.mine.exists()
    shown = person.kb("guide", ASKED).out
    assert shown.startswith("Adding files, folders and web pages  kb-add  kb\n")

    nothing = person.guide("who won the world cup in 1998")
    assert set(nothing) == {"found", "message", "suggestion"}
    assert nothing["found"] is False
    told = person.kb("guide", "asdf qwer zxcv")
    assert (told.code, told.out) == (0, "")
    assert "no entry answers this" in told.err


def test_the_guide_needs_no_cache_folder(person: Person) -> None:
    """Where that cannot be made, a temporary home answers, and nothing of it is left."""
    (person.root / "cache").write_text("a file")
    (person.root / "tmp").mkdir()
    said = person.kb("guide", ASKED, "--json", TMPDIR=str(person.root / "tmp"))
    assert said.json["chunks"][0]["zettel_id"] == "kb-add"
    assert list((person.root / "tmp").iterdir()) == []


def test_a_damaged_cache_is_passed_by(person: Person) -> None:
    """Its home cannot be read, so one of this call answers."""
    person.guide(ASKED)
    (store,) = (person.root / "cache" / "kb").glob("guide-*/store/data.mdb")
    store.write_bytes(b"\0" * store.stat().st_size)
    assert person.guide(ASKED)["chunks"][0]["zettel_id"] == "kb-add"


def test_a_guide_that_was_killed_is_made_whole_by_the_next(person: Person) -> None:
    """Killed at a commit while its home is filled, it answers at the next call."""
    for armed in ("store.after_commit=kill@4", "ingest.after_commit=kill"):
        killed = person.kb("guide", ASKED, KB_FAILPOINTS=armed)
        assert killed.code == -signal.SIGKILL
    assert person.guide(ASKED)["chunks"][0]["zettel_id"] == "kb-add"


def test_the_manual_is_not_among_ones_notes(person: Person) -> None:
    """Searches and answers leave guides out, unless they are asked for; the guide has them."""
    assert person.kb("init").code == 0
    assert person.kb("search", ASKED, "--json").json["hits"] == []
    assert person.kb("ask", ASKED, "--json").json["sources"] == []
    named = person.kb("search", ASKED, "--kind", "entry", "--json").json["hits"]
    assert named[0]["zettel_id"] == "kb-add"
    assert person.guide(ASKED)["chunks"][0]["zettel_id"] == "kb-add"


def test_init_writes_once_and_leaves_edits_alone(person: Person) -> None:
    """Five lines each time; run again it changes nothing; an edit stays and is named."""
    made = person.kb("init")
    assert (made.code, made.err, len(made.out.splitlines())) == (0, "", 5)
    assert made.out.startswith(f"{person.mine}: made\n{person.core}: 11 entries about kb: 11 writ")
    for name in ("store", "raw", "md", "index", "tmp", "knowledge"):
        assert (person.mine / name).is_dir()
    listed = person.kb("entries", "--json").json["entries"]
    assert [row["dangling"] for row in listed] == [[]] * 11
    ids = person.kb("ls", "--json").out

    again = person.kb("init")
    assert (again.code, again.err) == (0, "")
    assert "11 unchanged" in again.out
    assert person.kb("ls", "--json").out == ids

    edited = person.core / "kb-add.md"
    mine = edited.read_text() + "\n## Also\n\nWe add every Friday.\n"
    edited.write_text(mine)
    kept = person.kb("init")
    assert (kept.code, len(kept.out.splitlines())) == (0, 5)
    assert kept.err == "kb: edited here, so left as they are: kb-add\n"
    assert edited.read_text() == mine
    assert person.kb("check").code == 0

    assert person.kb("sync-all", "--interval-min", "0").code == 0
    best = person.guide("do we add every Friday?")["chunks"][0]
    assert (best["zettel_id"], best["source"]) == ("kb-add", str(edited))
    assert "Friday" in best["content"]


def test_init_makes_a_project_in_a_project(person: Person) -> None:
    """Each has its own home, the inner one says where it lies; the entries go to the user's."""
    inner = person.work / "inner"
    inner.mkdir()
    made = person.kb("init", "--project")
    assert made.out.splitlines()[:2] == [
        f"{person.work / '.kb'}: made",
        f"{person.core}: 11 entries about kb: 11 written",
    ]
    nested = person.kb("init", "--project", cwd=inner)
    assert nested.code == 0
    assert str(person.work / ".kb") in nested.err
    assert (inner / ".kb" / "knowledge").is_dir()
    assert not list((inner / ".kb" / "knowledge").iterdir())
    assert "was there already" in person.kb("init", "--project", cwd=inner).out
    assert person.kb("--home", "x", "init", "--project").code == 2
    assert person.kb("--space", "user", "init").code == 2


def test_a_projects_entry_wins(person: Person) -> None:
    """Of an entry that several have the project's copy is given, and none but entries."""
    person.kb("init", "--project")
    folder = person.work / ".kb" / "knowledge"
    text = "---\nzettel_id: kb-add\ntitle: Adding here\n---\n## Add a folder\n\n"
    (folder / "add.md").write_text(text + "In this project you add a folder by a ticket.\n")
    (person.work / "note.md").write_text("# How do I add a folder\n\nHow do I add a folder?\n")
    assert person.kb("sync-all").code == 0
    assert person.kb("add", "note.md").code == 0
    chunks = person.guide(ASKED)["chunks"]
    assert [one["source"] for one in chunks if one["zettel_id"] == "kb-add"] == [
        str(folder / "add.md")
    ]
    assert all(one["zettel_id"] for one in chunks)


def ask(spaces: Spaces, scope: Scope = ADA, **arguments: object) -> Any:
    return msgspec.json.decode(tools.call("help", arguments, spaces, scope))


def test_an_agent_is_helped(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guidance for a named caller; signals with his name; a backup by a checkpoint."""
    monkeypatch.setenv("XDG_CACHE_HOME", person.env["XDG_CACHE_HOME"])
    person.kb("init")
    homes = [SpaceHome(name="user", home=person.mine)]
    with Spaces.open(homes, lambda _: Settings()) as spaces:
        assert tools.HELP in tools.tools_of(spaces, OPERATOR)
        alone = Spaces(spaces.homes)
        assert tools.HELP not in tools.tools_of(alone, OPERATOR)
        unknown = msgspec.json.decode(tools.call("help", {"action": "stuck"}, alone, ADA))
        assert unknown["error"]["code"] == "unknown_tool"
        said = ask(spaces, action="guidance", query=ASKED)
        # The user's own copies are private; what ships is for everybody.
        assert (said["found"], said["chunks"][0]["source"]) == (True, "kb")
        mine = ask(spaces, OPERATOR, action="guidance", topic="backup")
        assert mine["chunks"][0]["source"] == str(person.core / "kb-care.md")
        assert ask(spaces, action="guidance", query="why do cats purr")["found"] is False
        assert ask(spaces, action="guidance")["error"]["field"] == "query"
        assert ask(spaces, action="stuck")["error"]["field"] == "reason"
        assert ask(spaces, action="stuck", reason="r" * 1001)["error"]["code"] == "invalid_input"
        wide = ask(spaces, action="stuck", reason="r", context={"a": "x" * 20_000})
        assert wide["error"]["field"] == "context"

        stuck = ask(spaces, action="stuck", reason="no way on", context={"tried": ["a"]})
        assert set(stuck) == {"signal_id", "message"}
        point = ask(spaces, Scope(user=None), action="checkpoint", reason="before the move")
        assert point["backup"] in point["message"]
    (backup,) = person.kb("backup", "list", "--json").json["backups"]
    assert (backup["name"], backup["reason"]) == (point["backup"], "before the move")

    rows = person.kb("signals", "--json").json["signals"]
    assert [(row["kind"], row["user"], row["backup"]) for row in rows] == [
        ("stuck", "ada", None),
        ("checkpoint", None, backup["name"]),
    ]
    assert json.loads(rows[0]["context"]) == {"tried": ["a"]}
    assert "  stuck  " in person.kb("signals").out
    done = person.kb("signals", "done", rows[0]["signal_id"][:6])
    assert (done.code, done.out) == (0, f"{rows[0]['signal_id']} is closed\n")
    assert [row["kind"] for row in person.kb("signals", "--json").json["signals"]] == ["checkpoint"]
    assert len(person.kb("signals", "--all", "--json").json["signals"]) == 2
    assert person.kb("signals", "done", "gffff").code == 4


def test_without_a_home_a_signal_is_refused(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be lost; the answer says so, and guidance is still given."""
    monkeypatch.setenv("XDG_CACHE_HOME", person.env["XDG_CACHE_HOME"])
    homes = [SpaceHome(name="user", home=person.mine)]
    with Spaces.open(homes, lambda _: Settings()) as spaces:
        assert ask(spaces, OPERATOR, action="guidance", query=ASKED)["found"] is True
        refused = ask(spaces, OPERATOR, action="escalate", reason="r")["error"]
        assert (refused["code"], "kb init" in refused["message"]) == ("unavailable", True)
        assert ask(spaces, action="escalate", reason="r")["error"]["code"] == "unavailable"
    assert not person.mine.exists()


@pytest.mark.parametrize(("armed", "kept"), [("before", 0), ("after", 1)])
def test_a_signal_survives_a_kill(person: Person, armed: str, kept: int) -> None:
    """Killed right after its commit it is there, right before it is not; the store is whole."""
    person.kb("new", "A note", "--no-wait")
    failpoint = f"store.{armed}_commit=kill"
    environment = {**os.environ, **person.env, "KB_FAILPOINTS": failpoint}
    argv = [sys.executable, "-c", LEAVE, str(person.mine)]
    killed = subprocess.run(argv, env=environment, capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    rows = person.kb("signals", "--json").json["signals"]
    assert [row["reason"] for row in rows] == ["no way on"] * kept
    assert person.kb("check").code == 0
