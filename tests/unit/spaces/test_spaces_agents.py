"""The tools of agents over several stores: one answer of all of them, whoever asks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from packs_folder import doc as pack_doc
from packs_folder import pack_of

from kb.home.app import App
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import AddOptions
from kb.model.config import Settings, load
from kb.model.doc import OPERATOR, Scope, Visibility
from kb.operations.table import call

ANYBODY = Scope(user=None)
NOTES = {
    "boats": "# Boats\n\nThe harbour master paints boats for #summer.\n",
    "rope": "# Rope\n\nThe harbour sells rope in #summer.\n",
    "both": "# Both\n\nThe harbour wall.\n",
}


class Two:
    """A project's home and a user's, with the notes that lie beside them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.homes = tuple(SpaceHome(name=name, home=root / name) for name in ("project", "user"))
        for name, text in NOTES.items():
            self.write(name, text)
        self.add("project", "boats", "both")
        self.add("user", "rope", "both")

    def write(self, name: str, text: str) -> None:
        (self.root / f"{name}.md").write_text(text)

    def settings(self, home: Path) -> Settings:
        found = [home / "kb.toml"] if (home / "kb.toml").exists() else []
        return load(found, ["embed.kind=hashing"])

    def add(self, space: str, *names: str, visibility: Visibility = "private") -> None:
        home = self.root / space
        with App.open(home, self.settings(home)) as app, app.parser() as parser:
            options = AddOptions(ingest_options=IngestOptions(visibility=visibility))
            app.adder(parser, options).add([str(self.root / f"{name}.md") for name in names])
            pool = app.pool()
            pool.start()
            pool.drain()
            pool.shutdown()

    def open(self) -> Spaces:
        return Spaces.open(self.homes, self.settings)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


@pytest.fixture
def spaces(two: Two) -> Iterator[Spaces]:
    with two.open() as opened:
        yield opened


def told(spaces: Spaces, name: str, scope: Scope = OPERATOR, /, **arguments: Any) -> Any:
    return msgspec.json.decode(call(name, arguments, spaces, scope))


def test_hits_of_all_spaces_say_whose_they_are(spaces: Spaces) -> None:
    """By the tool as by `Spaces.search`, also where they are like a doc of the other space."""
    hits = told(spaces, "kb_search", query="harbour")["hits"]
    whose = {hit["title"]: hit["source_space"] for hit in hits}
    assert whose == {"Boats": "project", "Both": "project", "Rope": "user"}
    (rope,) = [hit["doc_id"] for hit in hits if hit["title"] == "Rope"]
    like = told(spaces, "kb_similar", id=rope)["hits"]
    assert {hit["source_space"] for hit in like} == {"project"}
    sources = told(spaces, "kb_ask", question="What does the harbour sell?")["sources"]
    assert "Rope" in {source["title"] for source in sources}
    (summer,) = told(spaces, "kb_search_entities", prefix="#")["entities"]
    assert (summer["surface"], summer["docs"]) == ("#summer", 2)


def test_docs_are_listed_once_and_page_by_page(two: Two) -> None:
    """What both have is the project's; every doc is on one page, the newest change first."""
    two.write("both", "# Both\n\nThe wall fell.")
    two.add("project", "both")
    with two.open() as spaces:
        whole = told(spaces, "kb_list_docs")
        titles = [doc["title"] for doc in whole["docs"]]
        assert titles[0] == "Both"
        assert sorted(titles) == ["Boats", "Both", "Rope"]
        assert whole["total"] == 3
        (both,) = [doc for doc in whole["docs"] if doc["title"] == "Both"]
        assert both["version"] == 2
        paged: list[Any] = []
        cursor: dict[str, str] = {}
        while len(paged) < 10:
            page = told(spaces, "kb_list_docs", limit=1, **cursor)
            paged += page["docs"]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert paged == whole["docs"]


def test_a_text_is_read_where_it_is(two: Two) -> None:
    """By the id of a doc or a passage; of what both have the project's text, also by an old id."""
    with two.open() as spaces:
        ids = {doc["title"]: doc["doc_id"] for doc in told(spaces, "kb_list_docs")["docs"]}
        assert told(spaces, "kb_fetch", id=ids["Rope"])["text"] == NOTES["rope"]
        assert told(spaces, "kb_fetch", id=ids["Boats"][:8])["text"] == NOTES["boats"]
        (hit,) = told(spaces, "kb_search", query="rope", mode="lexical")["hits"]
        assert told(spaces, "kb_fetch", id=hit["chunk_id"])["doc_id"] == ids["Rope"]
        assert told(spaces, "kb_fetch", id="d" + "0" * 20)["error"]["code"] == "not_found"
    two.write("both", "# Both\n\nThe wall fell.")
    two.add("project", "both")
    with two.open() as spaces:
        old = told(spaces, "kb_fetch", id=ids["Both"])
        assert "fell" in old["text"]
        assert "older version" in old["warnings"][0]


def test_what_an_asker_may_not_see_hides_nothing(two: Two) -> None:
    """A private copy in the project leaves the user's public one to be listed and read."""
    two.write("open", "# Open\n\nThe quay.")
    two.add("project", "open")
    two.add("user", "open", visibility="public")
    with two.open() as spaces:
        (listed,) = told(spaces, "kb_list_docs", ANYBODY)["docs"]
        assert listed["title"] == "Open"
        assert told(spaces, "kb_fetch", ANYBODY, id=listed["doc_id"])["text"].endswith("quay.\n")
        hidden = told(spaces, "kb_list_docs")["docs"]
        (rope,) = [doc["doc_id"] for doc in hidden if doc["title"] == "Rope"]
        missing = "d" + "0" * (len(rope) - 1)
        there = call("kb_fetch", {"id": rope}, spaces, ANYBODY)
        gone = call("kb_fetch", {"id": missing}, spaces, ANYBODY)
        assert there.replace(rope.encode(), missing.encode()) == gone


def test_a_space_that_cannot_be_read_is_named(two: Two) -> None:
    """The other answers; only the operator hears where it lies."""
    (two.root / "user" / "store" / "data.mdb").write_bytes(b"not a store at all" * 1000)
    with two.open() as spaces:
        for name in ("kb_search", "kb_list_docs", "kb_search_entities", "kb_pack_list"):
            arguments = {"query": "harbour"} if name == "kb_search" else {}
            assert str(two.root) in told(spaces, name, **arguments)["warnings"][0], name
            said = told(spaces, name, ANYBODY, **arguments)["warnings"][0]
            assert said == "the user space cannot be read at the moment"
        (first, *_) = told(spaces, "kb_list_docs")["docs"]
        assert str(two.root) in told(spaces, "kb_fetch", id=first["doc_id"])["warnings"][0]
        assert told(spaces, "kb_fetch", id="d" + "0" * 20)["error"]["code"] == "damaged"


def test_packs_and_topics_of_all_spaces(two: Two) -> None:
    """A pack is read where it is; of two topics with one id the project's is learned."""
    pack_of(two.root / "pack", pack_doc("hull", related=[("references", "keel")]), pack_doc("keel"))
    with App.open(two.root / "user", two.settings(two.root / "user")) as app:
        app.packs.place(app.packs.read(str(two.root / "pack")))
    for space, topics in {"project": ("ways",), "user": ("ways", "tea")}.items():
        lines = []
        for topic in topics:
            folder = two.root / space / topic
            folder.mkdir()
            (folder / "first.md").write_text(f"{topic} of the {space}")
            lines.append(f'[kb.topic.{topic}]\nsubjects = "{folder}"\n')
        (two.root / space / "kb.toml").write_text("".join(lines))
    with two.open() as spaces:
        (pack,) = told(spaces, "kb_pack_list")["packs"]
        name = pack["pack_id"]
        listed = told(spaces, "kb_pack_list", pack=name)["docs"]
        assert [one["selector"] for one in listed] == ["hull", "keel"]
        assert told(spaces, "kb_pack_read", pack=name, doc="hull")["text"]
        assert told(spaces, "kb_pack_search", pack=name, query="keel")["total"] == 1
        (edge,) = told(spaces, "kb_pack_neighbors", pack=name, doc="hull")["edges"]
        assert edge["target"]["selector"] == "keel"
        assert told(spaces, "kb_pack_read", pack="none", doc="x")["error"]["code"] == "not_found"
        assert (
            "ways of the project" in told(spaces, "learn", topic="ways", subjects="first")["text"]
        )
        assert "tea of the user" in told(spaces, "learn", topic="tea", subjects="first")["text"]
