"""Notes of two users over HTTP: each has their own, and learns nothing of the other's."""

from collections.abc import Iterator
from typing import Any

import pytest
from commands import Home
from http_server import Running, serving, until
from msgspec import Struct

OAK = "# Keel\n\nThe keel is laid of old oak from the hills above the town, in spring.\n"


class Yard(Struct):
    """A server that two writers, an admin and the person at the machine use."""

    home: Home
    server: Running
    tokens: dict[str, str]

    def hand_in(self, who: str, text: str, **said: Any) -> str:
        got = self.server.post("/content", {"content": text, **said}, self.tokens[who])
        assert got.status == 202, got
        return str(got.json["job_id"])

    def job(self, who: str, job: str) -> Any:
        """The job once it is done."""
        at = f"/jobs/{job}"
        secret = self.tokens[who]
        return until(lambda: (one := self.server.get(at, secret).json)["status"] == "done" and one)

    def place(self, who: str, text: str, **said: Any) -> str:
        return str(self.job(who, self.hand_in(who, text, **said))["path"])

    def read(self, who: str, path: str) -> int:
        return self.server.get(f"/content?path={path}", self.tokens[who]).status


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    home = Home(tmp_path_factory.mktemp("yard") / "home")
    people = {"ada": "writer", "bob": "writer", "eve": "admin", "local": "writer"}
    tokens = {
        name: home.run("token", "add", name, "--user", name, "--role", role).out.strip()
        for name, role in people.items()
    }
    with serving(home) as server:
        yield Yard(home=home, server=server, tokens=tokens)


def test_a_note_belongs_to_who_handed_it_in(yard: Yard) -> None:
    """They read it, find it and see where it stands; another user does not."""
    job = yard.hand_in("ada", "# Unicorn\n\nIt is white.\n", hint="animals")
    path = yard.job("ada", job)["path"]
    assert path == "from-ada/animals/unicorn.md"
    assert [yard.read(who, path) for who in ("ada", "bob", "eve", "local")] == [200, 404, 404, 404]
    for who, count in (("ada", 1), ("bob", 0)):
        got = yard.server.get("/v1/search?q=unicorn&mode=lexical", yard.tokens[who]).json
        assert len(got["hits"]) == count
    (doc,) = [
        row for row in yard.home.run("ls", "--json").json["docs"] if row["source"].endswith(path)
    ]
    shown = yard.home.run("show", doc["doc_id"], "--json").json["doc"]
    assert (shown["owner"], shown["visibility"]) == ("ada", "private")
    assert yard.home.run("job", job, "--json").json["owner"] == "ada"


def test_notes_are_listed_for_whom_they_are(yard: Yard) -> None:
    """By the path that reads them; those of others are not counted either."""
    paths = [
        yard.place("ada", f"# List {n}\n\nOne of ada's lists, the one of {n}.\n") for n in "ab"
    ]
    rows, cursor = [], ""
    while cursor is not None:
        page = yard.server.get(f"/v1/notes?limit=1{cursor}", yard.tokens["ada"]).json
        rows += page["notes"]
        cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
    assert page["total"] == len(rows)
    assert [row["path"] for row in rows][:2] == paths[::-1]
    for path in paths:
        assert yard.server.get(f"/content?path={path}", yard.tokens["ada"]).status == 200
    others = yard.server.get("/v1/notes", yard.tokens["bob"]).json
    assert not {row["path"] for row in others["notes"]} & set(paths)


def test_a_job_is_its_writers(yard: Yard) -> None:
    """Another writer is told what is told of a job that never was; an admin sees how it stands."""
    job = yard.hand_in("ada", "# Griffin\n")
    yard.job("ada", job)
    missing = "j" + "9" * 12
    denied = yard.server.get(f"/jobs/{job}", yard.tokens["bob"])
    never = yard.server.get(f"/jobs/{missing}", yard.tokens["bob"])
    assert denied.status == never.status == 404
    told = [{k: v for k, v in one.json.items() if k != "request_id"} for one in (denied, never)]
    assert told[0]["detail"].replace(job, missing) == told[1]["detail"]
    assert told[0]["code"] == told[1]["code"]
    seen = yard.server.get(f"/jobs/{job}", yard.tokens["eve"]).json
    assert (seen["status"], "path" in seen) == ("done", False)


def test_the_same_note_of_two_users_is_two(yard: Yard) -> None:
    """Neither replaces nor renames the other's, and neither goes where the other's folders are."""
    first = yard.place("ada", OAK, hint="divorce papers")
    assert first.startswith("from-ada/")
    theirs = yard.place("ada", "# Lawyer\n", hint="divorce/lawyer")
    assert theirs == "from-ada/divorce/lawyer.md"
    mine = yard.place("bob", OAK, hint="papers on a divorce")
    assert mine == "from-bob/inbox/keel.md"
    # A hint that is a path stays inside, too.
    assert (
        yard.place("bob", "# Other\n", hint="../from-ada/divorce") == "from-bob/from-ada/other.md"
    )
    assert yard.home.run("note", "get", first).out == OAK


def test_notes_of_two_people_are_never_merged(yard: Yard) -> None:
    """Tidying says that they are alike, and leaves them apart."""
    text = "# Mast\n\nThe mast is of pine, nine metres tall, and was stepped on a silver coin.\n"
    paths = {yard.place("ada", text), yard.place("bob", text)}
    pairs = yard.home.run("note", "tidy", "--json").json["duplicates"]
    (pair,) = [one for one in pairs if {one["keep"], one["drop"]} == paths]
    assert "not of one person" in pair["held_back"]
    yard.home.run("note", "tidy", "--apply")
    assert all(yard.home.run("note", "get", path).out == text for path in paths)


def test_what_stood_there_before_says_nothing(yard: Yard) -> None:
    """A note in the place of one that was shown to others and taken back is its owner's alone."""
    job = yard.hand_in("ada", "# Anchor\n\nIron.\n", hint="gear")
    path = yard.job("ada", job)["path"]
    doc = next(ident for name, ident in yard.home.ids().items() if name == "anchor.md")
    assert yard.home.run("visibility", doc, "shared").code == 0
    assert yard.home.run("note", "undo", job).code == 0
    placed = yard.home.run("note", "add", "--wait", "--hint", path.rpartition("/")[0], "# Anchor\n")
    assert (placed.code, placed.out.strip()) == (0, path)
    assert [yard.read(who, path) for who in ("ada", "bob", "local")] == [404, 404, 200]


def test_notes_of_the_person_at_the_machine(yard: Yard) -> None:
    """Their token writes where they do; nobody else's words decide where that is."""
    yard.place("bob", "# Sails\n\nThe sails of the boat are torn.\n", hint="harbour")
    path = yard.place("local", "# More\n\nThe sails of the boat are torn again.\n")
    assert path == "inbox/more.md"
    assert yard.read("local", path) == 200
    assert "- [Sails](from-bob/harbour/sails.md)" in yard.home.run("note", "get", "INDEX.md").out
    assert yard.read("bob", "INDEX.md") == 404
