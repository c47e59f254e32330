"""`kb mcp` in a project's folder reads both stores, as the other commands there do."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import HASHING, KB, Home
from http_server import serving
from mcp import Client
from mcp_clients import Story, answer_of, by_stdio, every_page, failed
from person import Person

ENTRY = """\
---
zettel_id: mooring-a-boat
title: Mooring
---
Two lines to the harbour wall.
"""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """A note in each store, a file that both have, an entry and a topic of the user's."""
    person = Person(tmp_path_factory.mktemp("mcp-spaces"))
    person.project_home.mkdir(parents=True)
    for name in ("boats", "rope", "both"):
        text = f"# {name.title()}\n\nThe harbour of {name} in #summer.\n"
        (person.project / f"{name}.md").write_text(text)
    assert person.kb("--space", "user", "add", "rope.md", "both.md").code == 0
    assert person.kb("add", "boats.md", "both.md").code == 0
    knowledge = person.user_home / "knowledge"
    knowledge.mkdir(exist_ok=True)
    (knowledge / "mooring.md").write_text(ENTRY)
    assert person.kb("--space", "user", "sync-all", "--interval-min", "0").code == 0
    ways = person.user_home / "ways"
    ways.mkdir()
    (ways / "knots.md").write_text("A bowline holds.\n")
    (person.user_home / "kb.toml").write_text('[kb.topic.ways]\nsubjects = "ways"\n')
    return person


def talk(person: Person, story: Story, *options: str) -> str:
    said = person.root / "mcp-errors.txt"
    argv = [KB, *HASHING, *options, "mcp"]
    return by_stdio(argv, story, said, env=person.env, cwd=person.project)


def tool(client: Client, name: str) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        result = await client.call_tool(name, arguments)
        assert result.is_error is False, result
        return answer_of(result)

    return call


def test_both_stores_answer(person: Person) -> None:
    """Hits are those of `kb search`, docs those of `kb ls`, and each can be read."""
    searched = person.kb("search", "harbour", "-k", "10", "--json").json
    listed = person.kb("ls", "--json").json["docs"]

    async def story(client: Client) -> None:
        found = await tool(client, "kb_search")(query="harbour", limit=10)
        for field in ("doc_id", "source_space", "rank", "score"):
            theirs = [hit[field] for hit in searched["hits"]]
            assert [hit[field] for hit in found["hits"]] == theirs
        assert {hit["source_space"] for hit in found["hits"]} == {"project", "user"}
        docs = (await tool(client, "kb_list_docs")())["docs"]
        ids = {doc["doc_id"] for doc in docs}
        assert len(ids) == len(docs) == 4
        assert ids == {doc["doc_id"] for doc in listed}
        assert {row.uri for row in await every_page(client)} >= {f"kb://doc/{one}" for one in ids}
        for ident in ids:
            assert (await tool(client, "kb_fetch")(id=ident))["text"]
        (summer,) = (await tool(client, "kb_search_entities")(prefix="#s"))["entities"]
        assert summer["surface"] == "#summer"
        answer = await tool(client, "kb_ask")(question="What does the harbour of rope have?")
        assert answer["found"] is True

    assert talk(person, story) == ""


def test_an_entry_is_read_by_its_own_id(person: Person) -> None:
    """Of whichever space, with the answer of its doc's id; an unknown one is not found."""

    async def story(client: Client) -> None:
        fetch = tool(client, "kb_fetch")
        by_name = await fetch(id="mooring-a-boat")
        assert by_name["title"] == "Mooring"
        assert await fetch(id=by_name["doc_id"]) == by_name
        assert (await failed(client, "kb_fetch", id="unmooring"))["code"] == "not_found"

    talk(person, story)


def test_topics_of_the_users_space_are_learned(person: Person) -> None:
    """By the tool, as a resource, and in the prompt."""

    async def story(client: Client) -> None:
        learned = await tool(client, "learn")(topic="ways", subjects="knots")
        assert "bowline" in learned["text"]
        assert "kb://topic/ways/knots" in {row.uri for row in await every_page(client)}
        assert [one.name for one in (await client.list_prompts()).prompts] == ["knowledge"]

    talk(person, story)


def test_one_space_alone_where_it_is_named(person: Person) -> None:
    """By `--space`, and by `--home`, here of `kb serve`."""

    async def story(client: Client) -> None:
        docs = (await tool(client, "kb_list_docs")())["docs"]
        assert {doc["title"] for doc in docs} == {"Rope", "Both", "Mooring"}

    talk(person, story, "--space", "user")
    with serving(Home(person.project_home), env=person.env) as server:
        docs = server.get("/v1/docs").json["docs"]
        assert {doc["title"] for doc in docs} == {"Boats", "Both"}


def test_a_space_that_cannot_be_read_is_left_out(person: Person, tmp_path: Path) -> None:
    """With a warning in the answer; the other space is read all the same."""
    shutil.copytree(person.root, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    copy = Person(tmp_path / "copy")
    copy.trust()
    (copy.user_home / "store" / "data.mdb").write_bytes(b"no store" * 1_000)

    async def story(client: Client) -> None:
        docs = await tool(client, "kb_list_docs")()
        assert {doc["title"] for doc in docs["docs"]} == {"Boats", "Both"}
        assert "the user space is left out" in docs["warnings"][0]

    talk(copy, story)


def test_what_is_written_never_goes_to_another_space(person: Person, tmp_path: Path) -> None:
    """Where the project's store is damaged, a server that may write there does not start."""
    shutil.copytree(person.root, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
    copy = Person(tmp_path / "copy")
    copy.trust()
    (copy.project_home / "store" / "data.mdb").write_bytes(b"no store" * 1_000)
    refused = copy.kb("mcp", "--write")
    assert refused.code == 5
    assert str(copy.project_home) in refused.err

    async def story(client: Client) -> None:
        docs = await tool(client, "kb_list_docs")()
        assert "the project space is left out" in docs["warnings"][0]

    talk(copy, story)
