"""`/mcp` of `kb serve`: the protocol's own client over HTTP, asking the real command."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import Home, surroundings
from http_server import ConfiguredHome, Running, serving, settings, until
from loopback import HOST, Answer, Handler, reply
from loopback import serving as pages
from mcp import Client, MCPError
from mcp_clients import answer_of, by_http, by_stdio, connected, every_page, failed, text_of
from msgspec import Struct
from test_mcp import FILES, MISSING, write

from kb.operations.table import HELP, LEARN, TOOLS

CANARY = "a canary that nobody may log"
CALLED: dict[str, dict[str, Any]] = {
    "kb_search": {"query": "how is tea made?", "tags": ["tea"], "explain": True},
    "kb_ask": {"question": "What does green tea want?"},
    "kb_fetch": {"id": "TEA"},
    "kb_list_docs": {"limit": 1},
    "kb_similar": {"id": "TEA"},
    "kb_search_entities": {"prefix": "#"},
    "kb_pack_list": {"pack": "pack"},
    "kb_pack_read": {"pack": "pack", "doc": "leave"},
    "kb_pack_search": {"pack": "pack", "query": "leave"},
    "kb_pack_neighbors": {"pack": "pack", "doc": "leave"},
    "help": {"action": "guidance", "query": "how do I add a folder?"},
    "learn": {"topic": "ways", "subjects": "**"},
}


class Asked(Struct):
    """A server, its home, its tokens by name, and docs by the names of their files."""

    home: Home
    server: Running
    tokens: dict[str, str]
    ids: dict[str, str]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Ada reads, Bob and Eve write; the operator's diary is private, the tea shared."""
    root = tmp_path_factory.mktemp("mcp-http")
    write(root, FILES)
    said = (*settings(concurrency_max=64, body_bytes_max=65_536), "--cfg", f"fetch.allow+={HOST}")
    home = ConfiguredHome(root / "home", said)
    assert home.run("add", root / "notes/tea.md", "--visibility", "shared").code == 0
    assert home.run("add", root / "notes/diary.md", "--visibility", "private").code == 0
    assert home.run("pack", "build", root / "pack").code == 0
    assert home.run("pack", "add", root / "pack").code == 0
    tokens = {}
    for name, role in {
        "ada": "reader",
        "bob": "writer",
        "eve": "writer",
        "local": "reader",
    }.items():
        made = home.run("token", "add", name, "--user", name, "--role", role)
        tokens[name] = made.out.strip()
    ids = home.ids()
    with serving(home, "--log", "json") as server:
        yield Asked(home=home, server=server, tokens=tokens, ids=ids)


async def session(client: Client, ids: dict[str, str]) -> dict[str, Any]:
    """Everything that a client can ask, and what it hears."""
    told: dict[str, Any] = {
        "server": str(client.server_info),
        "can": str(client.server_capabilities),
        "instructions": client.instructions,
        "version": client.protocol_version,
        "tools": [tool.model_dump() for tool in (await client.list_tools()).tools],
        "templates": (await client.list_resource_templates()).model_dump(),
        "prompts": (await client.list_prompts()).model_dump(),
        "prompt": (await client.get_prompt("knowledge")).model_dump(),
    }
    for name, arguments in CALLED.items():
        given = {key: ids["tea.md"] if one == "TEA" else one for key, one in arguments.items()}
        told[name] = (await client.call_tool(name, given)).model_dump()
    rows = await every_page(client)
    told["resources"] = [row.model_dump() for row in rows]
    told["texts"] = [(await client.read_resource(row.uri)).model_dump() for row in rows]
    told["errors"] = [
        await failed(client, "kb_search", query="tea", k=0),
        await failed(client, "kb_fetch", id=ids["diary.md"]),
        await failed(client, "kb_add", text="x"),
        await failed(client, "nothing"),
    ]
    for uri in (f"kb://doc/{ids['diary.md']}", "kb://topic/none/x", "file:///etc/passwd"):
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri)
        told["errors"].append((error.value.code, error.value.message))
    return told


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_ways_to_a_server_say_the_same(asked: Asked, mode: str) -> None:
    """Each message of a whole session has one answer, over HTTP and on standard input."""
    told: list[dict[str, Any]] = []

    async def story(client: Client) -> None:
        told.append(await session(client, asked.ids))

    by_http(asked.server.port, story, token=asked.tokens["ada"], mode=mode)
    errors = asked.home.root.with_name("mcp-errors.txt")
    argv = asked.home.argv("mcp", "--user", "ada")
    by_stdio(argv, story, errors, env=surroundings(), mode=mode)
    over_http, on_stdio = told
    assert over_http == on_stdio
    names = [tool["name"] for tool in over_http["tools"]]
    assert names == [tool.name for tool in (*TOOLS, HELP, LEARN)]
    assert sorted(names) == sorted(CALLED)
    assert not any(over_http[name]["is_error"] for name in names)
    assert len(over_http["texts"]) > len(FILES["notes/tea.md"]) // 100
    assert len({str(error) for error in over_http["errors"]}) == len(over_http["errors"])


def test_each_token_sees_what_its_user_sees(asked: Asked) -> None:
    """Of two tokens one reads the diary; to the other it is as an id that never was."""
    diary = asked.ids["diary.md"]

    async def of_owner(client: Client) -> None:
        found = await client.call_tool("kb_fetch", {"id": diary})
        assert answer_of(found)["title"] == "Diary"
        assert f"kb://doc/{diary}" in {row.uri for row in await every_page(client)}

    async def of_other(client: Client) -> None:
        for name in ("kb_fetch", "kb_similar"):
            there = text_of(await client.call_tool(name, {"id": diary}))
            gone = text_of(await client.call_tool(name, {"id": MISSING}))
            assert there.replace(diary, MISSING) == gone
        found = text_of(await client.call_tool("kb_search", {"query": "buried treasure"}))
        assert "diary" not in found
        assert f"kb://doc/{diary}" not in {row.uri for row in await every_page(client)}

    by_http(asked.server.port, of_owner, token=asked.tokens["local"])
    by_http(asked.server.port, of_other, token=asked.tokens["ada"])


def test_a_writer_writes_and_a_reader_does_not(asked: Asked) -> None:
    """What is written is its user's own: others neither find it nor write over it."""
    port, tokens = asked.server.port, asked.tokens
    query = {"query": "heron", "mode": "lexical"}

    async def writes(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name in ("kb_add", "note_add"):
            hints = tools[name].annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.destructive_hint) == (False, False)
        done = await client.call_tool("kb_add", {"text": "My heron.", "title": "Bird"})
        assert answer_of(done)["status"] == "added"
        with anyio.fail_after(20):
            while not answer_of(await client.call_tool("kb_search", query))["hits"]:
                await anyio.sleep(0.05)
        note = await client.call_tool("note_add", {"text": "Soup needs salt."})
        assert answer_of(note)["status"] in ("queued", "processing")
        assert (await failed(client, "kb_add", text=" \n"))["code"] == "invalid_input"
        assert (await failed(client, "kb_add", url="file:///etc/passwd"))["field"] == "url"
        assert (await failed(client, "kb_add", text="x", owner="eve"))["field"] == "owner"
        left = {"action": "escalate", "reason": "the heron is gone"}
        assert answer_of(await client.call_tool("help", left))["signal_id"]

    async def also_writes(client: Client) -> None:
        done = await client.call_tool("kb_add", {"text": "Another heron.", "title": "Bird"})
        assert answer_of(done)["status"] == "added"

    async def still_there(client: Client) -> None:
        hits = answer_of(await client.call_tool("kb_search", query))["hits"]
        assert [hit["text"] for hit in hits] == ["My heron."]

    async def reads(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert not names & {"kb_add", "note_add"}
        for name in ("kb_add", "note_add"):
            assert (await failed(client, name, text="x"))["code"] == "unknown_tool"
        for action in ("stuck", "escalate", "checkpoint"):
            refused = await failed(client, "help", action=action, reason="because")
            assert refused["code"] == "forbidden"
        assert answer_of(await client.call_tool("kb_search", query))["hits"] == []

    by_http(port, writes, token=tokens["bob"])
    by_http(port, also_writes, token=tokens["eve"])
    by_http(port, still_there, token=tokens["bob"])
    by_http(port, reads, token=tokens["ada"])
    signals = asked.home.run("signals", "--json").json["signals"]
    assert [one["reason"] for one in signals] == ["the heron is gone"]


def test_a_revoked_token_ends_a_session(asked: Asked) -> None:
    """From the next message on; a client without a token, or with a wrong one, has none."""
    secret = asked.home.run("token", "add", "brief").out.strip()

    async def story(client: Client) -> None:
        assert (await client.call_tool("kb_list_docs", {})).is_error is False
        removed = await anyio.to_thread.run_sync(lambda: asked.home.run("token", "rm", "brief"))
        assert removed.code == 0
        with pytest.raises(MCPError):
            await client.call_tool("kb_list_docs", {})

    by_http(asked.server.port, story, token=secret)
    for wrong in (None, "kb_" + "A" * 43):
        with pytest.RaisesGroup(MCPError, flatten_subgroups=True, allow_unwrapped=True):
            by_http(asked.server.port, story, token=wrong)


def message(method: str = "tools/list", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_what_is_no_message_is_refused(asked: Asked) -> None:
    """By the gate as on every route, or by the protocol; never as a defect, and never logged."""
    server, ada = asked.server, asked.tokens["ada"]
    both = "application/json, text/event-stream"

    def post(body: object, **headers: str) -> int:
        return server.post("/mcp", body, ada, **{"accept": both, **headers}).status

    assert post(message()) == 200
    assert post(message(), host="evil.example") == 421
    assert post(message(), origin="https://evil.example") == 403
    assert post(message(), sec_fetch_site="cross-site") == 403
    assert post(message(), content_type="text/plain") == 415
    assert post(message(), accept="text/html") == 406
    assert post(b"{" + CANARY.encode()) == 400
    assert post(b"[" * 50_000) == 400
    assert post([message(), message()]) == 400
    assert post({"id": 1, "method": CANARY}) == 400
    assert post({"jsonrpc": "2.0", "method": "notifications/initialized"}) == 202
    assert post(message(), mcp_protocol_version="2099-01-01") == 400
    assert post(message(CANARY)) in (200, 404)
    assert post(message("tools/call", name="kb_search", arguments={"query": "x" * 70_000})) == 413
    for method in ("GET", "DELETE", "HEAD", "PUT"):
        got = server.ask(method, "/mcp", token=ada)
        assert (got.status, got.headers["allow"]) == (405, "POST"), method
    assert post(message("tools/call", name="kb_search", arguments={"query": CANARY})) == 200


def test_a_browser_page_that_is_known_may_ask(asked: Asked) -> None:
    """Its preflight names the headers that the protocol sends."""
    said = settings(origins='["https://page.example"]')
    with serving(ConfiguredHome(asked.home.root, said)) as server:
        got = server.ask("OPTIONS", "/mcp", origin="https://page.example")
        assert got.status == 204
        allowed = got.headers["access-control-allow-headers"].split(", ")
        assert {"authorization", "content-type", "mcp-protocol-version"} <= set(allowed)


def test_fifty_clients_at_once(asked: Asked) -> None:
    """Each is answered, and with its own answer."""
    tea = asked.ids["tea.md"]

    async def one(number: int) -> None:
        who = "ada" if number % 2 else "local"
        async with (
            connected(asked.server.port, asked.tokens[who]) as transport,
            Client(transport) as client,
        ):
            found = await client.call_tool("kb_fetch", {"id": tea, "start": number % 9})
            assert answer_of(found)["start"] == number % 9
            listed = answer_of(await client.call_tool("kb_list_docs", {}))
            assert ("Diary" in str(listed)) == (who == "local")

    async def main() -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(one, number)

    anyio.run(main)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_that_is_cancelled_holds_up_no_other(asked: Asked, mode: str) -> None:
    """Its client waits no longer, others are answered meanwhile, and what was begun is ended."""
    begun, let_go = threading.Event(), threading.Event()

    def slow(handler: Handler) -> None:
        begun.set()
        let_go.wait(240)
        page = b"<p>The elm of the cancelled.</p>"
        reply(handler, Answer(page, headers={"Content-Type": "text/html"}))

    with pages() as site:
        site.routes["/slow"] = slow
        address = {"url": f"http://{HOST}:{site.port}/slow?{mode}"}
        site.routes[f"/slow?{mode}"] = slow

        async def story(client: Client) -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "kb_add", address)
                await anyio.to_thread.run_sync(begun.wait, 20)
                assert (await client.call_tool("kb_list_docs", {})).is_error is False
                group.cancel_scope.cancel()
            assert not let_go.is_set()
            assert (await client.call_tool("kb_list_docs", {})).is_error is False

        try:
            by_http(asked.server.port, story, token=asked.tokens["bob"], mode=mode)
        finally:
            let_go.set()

        def is_there() -> bool:
            listed = asked.server.get("/v1/docs", asked.tokens["bob"]).json["docs"]
            return any(doc["source"] == address["url"] for doc in listed)

        until(is_there)


@pytest.mark.skipif(sys.platform != "linux", reason="reads what a process has loaded from /proc")
def test_the_protocol_is_loaded_when_it_is_first_asked(asked: Asked) -> None:
    """A server of which nobody asks it pays nothing for it."""
    with serving(asked.home, forks=False) as server:
        maps = Path(f"/proc/{server.process.pid}/maps")
        ada = asked.tokens["ada"]
        assert server.get("/v1/search?q=tea&mode=lexical", ada).status == 200
        assert "pydantic_core" not in maps.read_text()
        got = server.post("/mcp", message(), ada, accept="application/json")
        assert len(got.json["result"]["tools"]) == len(CALLED)
        assert "pydantic_core" in maps.read_text()


def test_the_log_tells_nothing_of_what_was_asked(asked: Asked) -> None:
    """A line to a message, by its route; no word of the message, also where it was malformed."""
    with serving(asked.home, "--log", "json") as server:
        ada = asked.tokens["ada"]
        for body in (
            message("tools/call", name="kb_search", arguments={"query": CANARY}),
            message(CANARY),
            {"jsonrpc": "2.0", "method": CANARY},
            {"jsonrpc": CANARY},
            [CANARY],
        ):
            server.post("/mcp", body, ada, accept="application/json")
        code, err = server.stop()
    assert code == 0
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(line["route"], line["user"]) for line in lines] == [("/mcp", "ada")] * 5
    assert CANARY not in err
