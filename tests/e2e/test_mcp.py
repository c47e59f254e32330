"""`kb mcp`: the real command, and the protocol's own client, which checks every answer."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import Home, surroundings
from loopback import HOST, Answer, serving
from mcp import Client, MCPError, types
from mcp_clients import Story, answer_of, by_stdio, every_page, failed, text_of

from kb import __version__
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.knowledge.topics import without_learned
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.operations.table import HELP, LEARN, TOOLS, answer
from kb.serve.mcp_tools import answer_text

MISSING = "d0123456789abcdef0123"
CONFIG = """\
[embed]
kind = "hashing"

[kb.topic.ways]
visibility = "shared"
title = "How we work"
subjects = "ways"
learned = ["quality"]
"""
FILES = {
    "home/kb.toml": CONFIG,
    "home/ways/quality.md": "# Quality\n\nTests first.\n",
    "home/ways/people/jean (she).md": "Jean brews.\n",
    "home/ways/.keys.md": "Under the mat.\n",
    "notes/tea.md": "# Tea\n\nGreen tea wants cool water. #tea\n",
    "notes/diary.md": "# Diary\n\nI buried the treasure.\n",
    "pack/leave.md": "---\ntitle: Leave\n---\nAsk early, see [days](days.md).\n",
    "pack/days.md": "---\ntitle: Days\n---\nTen.\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a shared doc, a private one, a topic and a pack; nothing changes it."""
    root = tmp_path_factory.mktemp("mcp")
    write(root, FILES)
    home = Home(root / "home")
    assert home.run("add", root / "notes/tea.md", "--visibility", "shared").code == 0
    assert home.run("add", root / "notes/diary.md", "--visibility", "private").code == 0
    assert home.run("pack", "build", root / "pack").code == 0
    assert home.run("pack", "add", root / "pack").code == 0
    return home


@pytest.fixture
def fresh(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def talk(home: Home, story: Story, *options: str, mode: Any = "auto") -> str:
    """Start the command, have a client tell the story, end it; returns standard error."""
    said = home.root.with_name("mcp-errors.txt")
    return by_stdio(home.argv("mcp", *options), story, said, env=surroundings(), mode=mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_server_and_its_tools_are_known(home: Home, mode: str) -> None:
    """With and without a handshake; names, descriptions and schemas are the catalogue's."""
    seen: list[types.Tool] = []

    async def story(client: Client) -> None:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("kb", __version__)
        assert "kb_search" in str(client.instructions)
        assert '<subject "quality">\n# Quality\n\nTests first.' in str(client.instructions)
        offered = client.server_capabilities
        assert None not in (offered.tools, offered.resources, offered.prompts)
        seen.extend((await client.list_tools()).tools)

    assert talk(home, story, mode=mode) == ""
    known = {tool.name: tool for tool in (*TOOLS, HELP, LEARN)}
    assert [tool.name for tool in seen] == list(known)
    for tool in seen:
        mine = known[tool.name]
        whole = json.loads(mine.input_schema)
        assert tool.input_schema["properties"].keys() == whole["properties"].keys()
        assert tool.input_schema.get("required") == whole.get("required")
        assert tool.output_schema is None
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name != "help")
        assert tool.annotations.destructive_hint is (False if tool.name == "help" else None)
        if mine is not LEARN:
            assert tool.description == mine.description
    assert "ways (How we work)" in str(seen[-1].description)


def test_every_reading_tool_answers_as_the_catalogue_does(home: Home) -> None:
    """Each tool answers once: what `answer` says, in a text."""
    tea = home.ids()["tea.md"]
    asked: dict[str, dict[str, Any]] = {
        "kb_search": {"query": "how is tea made?", "tags": ["tea"], "explain": True},
        "kb_ask": {"question": "What does green tea want?"},
        "kb_fetch": {"id": tea},
        "kb_list_docs": {"limit": 1},
        "kb_similar": {"id": tea},
        "kb_search_entities": {"prefix": "#"},
        "kb_pack_list": {"pack": "pack"},
        "kb_pack_read": {"pack": "pack", "doc": "leave"},
        "kb_pack_search": {"pack": "pack", "query": "leave"},
        "kb_pack_neighbors": {"pack": "pack", "doc": "leave"},
        "help": {"query": "how do I add a folder?"},
        "learn": {"topic": "ways", "subjects": "**"},
    }
    told: dict[str, types.CallToolResult] = {}

    async def story(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert sorted(names) == sorted(asked)
        for name in names:
            told[name] = await client.call_tool(name, asked[name])

    talk(home, story)
    here = SpaceHome(name="home", home=home.root)
    with Spaces.open([here], lambda _: load([home.root / "kb.toml"], [])) as spaces:
        # To an agent, subjects that its instructions hold are as any others.
        topics = without_learned(spaces.topics(OPERATOR))
        kit = spaces.with_topics(lambda _: topics)
        for name, result in told.items():
            assert result.is_error is False, result
            assert text_of(result) == answer_text(answer(name, asked[name], kit, OPERATOR))
            assert result.structured_content is None


def test_wrong_calls_are_answers_with_an_error(home: Home) -> None:
    """Wrong arguments, unknown ids and unknown tools come back with the catalogue's codes."""

    async def story(client: Client) -> None:
        assert (await failed(client, "kb_search", query="tea", limit=0))["field"] == "limit"
        assert (await failed(client, "kb_search", query="tea", scope="operator"))[
            "field"
        ] == "scope"
        assert (await failed(client, "kb_search"))["code"] == "invalid_input"
        assert (await failed(client, "kb_fetch", id=MISSING))["code"] == "not_found"
        assert (await failed(client, "kb_add", text="x"))["code"] == "unknown_tool"
        # A call that was wrong does not spoil the line.
        assert (await client.call_tool("kb_search", {"query": "tea"})).is_error is False

    talk(home, story)


def test_a_user_cannot_tell_a_hidden_doc_from_a_missing_one(home: Home) -> None:
    """By tools and by resources another's private doc answers as an id that never was."""
    ids = home.ids()
    hidden = ids["diary.md"]

    async def story(client: Client) -> None:
        for name in ("kb_fetch", "kb_similar"):
            there = text_of(await client.call_tool(name, {"id": hidden}))
            gone = text_of(await client.call_tool(name, {"id": MISSING}))
            assert there.replace(hidden, MISSING) == gone
        said = []
        for ident in (hidden, MISSING):
            with pytest.raises(MCPError) as error:
                await client.read_resource(f"kb://doc/{ident}")
            said.append((error.value.code, error.value.message.replace(hidden, MISSING)))
        assert said[0] == said[1]
        assert said[0][0] == types.INVALID_PARAMS
        found = text_of(await client.call_tool("kb_search", {"query": "buried treasure"}))
        assert "diary" not in found
        listed = [str(row.uri) for row in (await client.list_resources()).resources]
        assert f"kb://doc/{ids['tea.md']}" in listed
        assert f"kb://doc/{hidden}" not in listed

    talk(home, story, "--user", "bob")


def test_docs_topics_and_the_prompt_can_be_read(home: Home) -> None:
    """Every listed resource can be read; a hidden subject by its exact name alone."""
    tea = home.ids()["tea.md"]

    async def story(client: Client) -> None:
        async def read(uri: str) -> list[str]:
            contents = (await client.read_resource(uri)).contents
            assert all(isinstance(one, types.TextResourceContents) for one in contents)
            return [getattr(one, "text", "") for one in contents]

        rows = {row.uri: row for row in await every_page(client)}
        for uri in rows:
            assert "".join(await read(uri))
        assert rows[f"kb://doc/{tea}"].name == "Tea"
        assert await read(f"kb://doc/{tea}") == [FILES["notes/tea.md"]]
        subjects = [uri for uri in rows if uri.startswith("kb://topic/")]
        assert subjects == ["kb://topic/ways/people/jean%20%28she%29", "kb://topic/ways/quality"]
        assert await read(subjects[0]) == ["Jean brews.\n"]
        assert await read("kb://topic/ways/keys") == ["Under the mat.\n"]
        for wrong in (
            "kb://topic/ways/nobody",
            "kb://topic/ways/*",
            "kb://topic/ways/../kb",
            "kb://topic/none/quality",
            "kb://doc/",
            "kb://doc/c0123456789abcdef0123",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError) as error:
                await client.read_resource(wrong)
            assert error.value.code == types.INVALID_PARAMS, wrong
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="7")
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.name for one in templates] == ["doc", "subject"]
        # The one prompt is what `kb prompt` prints.
        (prompt,) = (await client.list_prompts()).prompts
        assert prompt.name == "knowledge"
        (message,) = (await client.get_prompt("knowledge")).messages
        assert isinstance(message.content, types.TextContent)
        assert message.content.text == section.out
        with pytest.raises(MCPError, match="'other'"):
            await client.get_prompt("other")

    section = home.run("prompt")
    talk(home, story)


def test_lists_are_paged_and_texts_are_cut(fresh: Home, tmp_path: Path) -> None:
    """Every doc is on one page, none on two; of a long text the start comes, and what was cut."""
    write(tmp_path, {f"many/{n}.md": f"Note number {n}." for n in range(120)})
    write(tmp_path, {"many/long.md": "word " * 50_000})
    assert fresh.run("add", "-r", tmp_path / "many").code == 0
    ids = fresh.ids()

    async def story(client: Client) -> None:
        first = await client.list_resources()
        assert first.next_cursor is not None
        uris = [row.uri for row in await every_page(client)]
        assert sorted(uris) == sorted(f"kb://doc/{ident}" for ident in ids.values())
        start, cut = (await client.read_resource(f"kb://doc/{ids['long.md']}")).contents
        assert isinstance(start, types.TextResourceContents)
        assert isinstance(cut, types.TextResourceContents)
        assert start.text == ("word " * 40_000)
        assert cut.mime_type == "text/plain"
        assert "over 50000 tokens" in cut.text

    talk(fresh, story)


def test_a_home_that_is_not_there_is_made(fresh: Home, tmp_path: Path) -> None:
    """So that what another process adds later is found, without a new start."""
    write(tmp_path, {"late.md": "The late heron."})

    async def story(client: Client) -> None:
        query = {"query": "heron", "mode": "lexical"}
        before = await client.call_tool("kb_search", query)
        assert answer_of(before)["hits"] == []
        assert (await client.list_prompts()).prompts == []
        added = await anyio.to_thread.run_sync(lambda: fresh.run("add", tmp_path / "late.md"))
        assert added.code == 0
        after = await client.call_tool("kb_search", query)
        assert [hit["title"] for hit in answer_of(after)["hits"]] == ["late"]

    talk(fresh, story)


def test_without_its_topics_the_server_still_answers(home: Home) -> None:
    """A topic whose folder is gone costs the tool `learn`, and nothing else."""

    async def story(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == [tool.name for tool in (*TOOLS, HELP)]
        assert (await client.list_prompts()).prompts == []
        assert (await client.call_tool("kb_search", {"query": "tea"})).is_error is False

    moved = Home(home.root)
    argv = moved.argv
    moved.argv = lambda *args: argv("--cfg", "kb.topic.gone.subjects=nowhere", *args)
    assert "topics cannot be read" in talk(moved, story)


def test_agents_write_where_they_may(fresh: Home) -> None:
    """With --write texts, pages and notes go in, are found, and change under their name."""

    async def story(client: Client) -> None:
        async def told(name: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(name, arguments)
            return {**answer_of(result), "failed": result.is_error}

        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name in ("kb_add", "note_add"):
            hints = tools[name].annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.destructive_hint) == (False, False)
        added = await told("kb_add", text="The oak is old.", title="Oak", tags=["trees"])
        assert (added["status"], added["indexed"]) == ("added", True)
        again = await told("kb_add", text="The oak is felled.", title="Oak")
        assert again["status"] == "updated"
        hits = (await told("kb_search", query="oak", mode="lexical"))["hits"]
        assert [(hit["text"], hit["tags"]) for hit in hits] == [("The oak is felled.", ["trees"])]
        with serving() as server:
            server.routes["/elm"] = Answer(
                b"<p>The elm is ill.</p>", headers={"Content-Type": "text/html"}
            )
            page = await told("kb_add", url=f"http://{HOST}:{server.server_port}/elm")
        assert (page["status"], page["failed"]) == ("added", False)
        assert (await told("note_add", text="Soup needs salt."))["status"] in (
            "queued",
            "processing",
        )
        for wrong in (
            {},
            {"text": "x", "url": "https://example.org/"},
            {"url": "/etc/passwd"},
            {"url": "file:///etc/passwd"},
            {"text": "x", "owner": "eve"},
        ):
            assert (await told("kb_add", **wrong))["error"]["code"] == "invalid_input", wrong
        assert (await told("kb_add", text=" \n"))["failed"] is True
        with anyio.fail_after(20):
            while not (await told("kb_search", query="salt", mode="lexical"))["hits"]:
                await anyio.sleep(0.1)

    options = fresh.argv
    fresh.argv = lambda *args: options("--cfg", f"fetch.allow+={HOST}", *args)
    talk(fresh, story, "--write")
    assert fresh.run("check").code == 0


def test_a_hundred_calls_at_once(home: Home) -> None:
    """Each is answered, and with its own answer."""
    tea = home.ids()["tea.md"]
    told: dict[int, dict[str, Any]] = {}

    async def story(client: Client) -> None:
        async def ask(number: int) -> None:
            name, arguments = (
                ("kb_search", {"query": f"tea {number}"})
                if number % 2
                else ("kb_fetch", {"id": tea, "start": number % 9})
            )
            told[number] = answer_of(await client.call_tool(name, arguments))

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(ask, number)

    talk(home, story)
    for number in range(100):
        key, expected = ("query", f"tea {number}") if number % 2 else ("start", number % 9)
        assert told[number][key] == expected
