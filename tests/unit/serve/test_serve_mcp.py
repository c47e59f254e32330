"""The server object and its threads, in one process."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from homes import SmallHome
from mcp import Client, MCPError, types
from mcp_clients import answer_of
from msgspec import Struct

from kb.errors import KbError
from kb.home.open_home import OpenHome
from kb.home.spaces.spaces import Spaces
from kb.knowledge.topics import Topic
from kb.model.doc import OPERATOR, Scope
from kb.operations.operation import Tool
from kb.serve.executor import CallExecutor
from kb.serve.mcp import KNOWLEDGE_BYTES_MAX, make_server


class Nothing(Struct, frozen=True, kw_only=True):
    """No arguments."""


class Told(Struct, frozen=True, kw_only=True):
    """Who asked."""

    user: str | None


def tool(name: str, run: Any) -> Tool:
    return Tool(name=name, description=name, request=Nothing, output=Told, run=run)


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Spaces]:
    home = SmallHome(tmp_path / "home")

    def no_searcher() -> Any:
        raise RuntimeError("a secret place")

    yield Spaces([OpenHome(store=home.store, content=home.content, searcher=no_searcher)])
    home.close()


@pytest.fixture
def executor() -> Iterator[CallExecutor]:
    executor = CallExecutor()
    yield executor
    executor.close(5.0)


@pytest.mark.parametrize("user", ["ann", None])
def test_a_server_answers_as_its_scope(
    kit: Spaces, executor: CallExecutor, user: str | None
) -> None:
    """Whoever a client says it is, the tools are asked as the scope of the server."""
    asks = tool("who", lambda _, __, scope: Told(user=scope.user))
    server = make_server(kit, Scope(user=user), executor, [asks])

    async def main() -> Any:
        async with Client(server) as client:
            asked = await client.call_tool("who", {}, meta={"user": "eve", "scope": "operator"})
            return answer_of(asked)

    assert anyio.run(main) == ({"user": user} if user else {})


def test_a_surprise_costs_one_call_and_tells_nothing(kit: Spaces, executor: CallExecutor) -> None:
    """An error that is not kb's own is a defect to the client; its words stay here."""

    def fails(*_: object) -> Told:
        raise RuntimeError("a secret place")

    server = make_server(kit, OPERATOR, executor, [tool("fails", fails)])

    async def main() -> MCPError:
        async with Client(server) as client:
            with pytest.raises(MCPError) as error:
                await client.call_tool("fails", {})
            assert (await client.call_tool("kb_list_docs", {})).is_error is False
            return error.value

    error = anyio.run(main)
    assert error.code == types.INTERNAL_ERROR
    assert "secret" not in error.message


def test_a_call_that_is_cancelled_holds_up_no_other(kit: Spaces, executor: CallExecutor) -> None:
    """Its client waits no longer, others are answered meanwhile, its thread ends what it began."""
    begun, let_go, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(*_: object) -> Told:
        begun.set()
        let_go.wait(240)
        ended.set()
        return Told(user=None)

    server = make_server(kit, OPERATOR, executor, [tool("slow", slow)])

    async def main() -> None:
        async with Client(server) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "slow", {})
                await anyio.to_thread.run_sync(begun.wait, 20)
                assert (await client.call_tool("kb_list_docs", {})).is_error is False
                group.cancel_scope.cancel()
            assert not ended.is_set()
            let_go.set()
            assert (await client.call_tool("kb_list_docs", {})).is_error is False

    anyio.run(main)
    assert ended.wait(120)


def test_a_crew_has_bounds_and_ends_in_time() -> None:
    """Past so many waiting calls the next is refused; closing does not wait for a busy thread."""
    let_go = threading.Event()
    executor = CallExecutor()

    async def main() -> None:
        waiting = [
            asyncio.ensure_future(executor.run(lambda: let_go.wait(240))) for _ in range(1_024)
        ]
        await asyncio.sleep(0)
        with pytest.raises(KbError, match="too many calls"):
            await executor.run(lambda: None)
        assert executor.close(0.05) is False
        let_go.set()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        # Those that a thread had begun ended, the others were dropped.
        assert 0 < done.count(True) <= 8
        assert executor.close(5.0) is True

    asyncio.run(main())


def _ways(folder: Path, **files: str) -> Topic:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text)
    return Topic(id="ways", folder=folder, learned=("known*",))


def _told(kit: Spaces, executor: CallExecutor, **asked: Any) -> tuple[str, Any]:
    """The instructions, and what `learn` answers."""
    server = make_server(kit, OPERATOR, executor)

    async def main() -> tuple[str, Any]:
        async with Client(server) as client:
            given = await client.call_tool("learn", asked)
            return str(client.instructions), answer_of(given)

    return anyio.run(main)


def test_an_agent_has_what_is_learned(kit: Spaces, executor: CallExecutor, tmp_path: Path) -> None:
    """The instructions hold its text; `learn` reads it too, should a program leave them out."""
    topic = _ways(tmp_path / "ways", known="Tests first.", other="Slowly.")
    kit = kit.with_topics(lambda _: (topic,))
    instructions, learned = _told(kit, executor, topic="ways", subjects="known")
    assert "Tests first." in instructions
    assert "Slowly." not in instructions
    assert learned["text"] == "Tests first."
    _, listed = _told(kit, executor, topic="ways")
    assert listed["subjects"] == ["known", "other"]


def test_instructions_are_bounded(kit: Spaces, executor: CallExecutor, tmp_path: Path) -> None:
    """What does not fit is left out whole, they say so, and it can be learned."""
    long = "a" * (KNOWLEDGE_BYTES_MAX // 2)
    topic = _ways(tmp_path / "ways", known1=long, known2=long, known3="Short.")
    topic = msgspec.structs.replace(topic, description="b" * 1_000)
    kit = kit.with_topics(lambda _: (topic,))
    instructions, learned = _told(kit, executor, topic="ways", subjects="known2")
    assert instructions.count(long) == 1
    assert len(instructions.encode()) < KNOWLEDGE_BYTES_MAX + 1_000
    assert "the tool `learn` reads the rest" in instructions
    assert learned["text"] == long
