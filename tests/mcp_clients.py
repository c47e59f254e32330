"""Clients of the Model Context Protocol, which check every answer, over either way to a server."""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from http_server import HOST
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

Story = Callable[[Client], Awaitable[None]]
PAGES_MAX: Final = 100


def by_stdio(
    argv: Sequence[str],
    story: Story,
    errors: Path,
    *,
    env: dict[str, str],
    cwd: Path | None = None,
    mode: Any = "auto",
) -> str:
    """Start a command, have a client tell the story, end it; returns standard error."""
    command, *words = argv

    async def main() -> None:
        started = StdioServerParameters(command=command, args=words, env=env, cwd=cwd)
        with errors.open("w") as file:
            async with Client(stdio_client(started, file), mode=mode) as client:
                await story(client)

    anyio.run(main)
    return errors.read_text()


def by_http(port: int, story: Story, *, token: str | None = None, mode: Any = "auto") -> None:
    """Have a client tell the story to a server that runs."""

    async def main() -> None:
        async with connected(port, token) as transport, Client(transport, mode=mode) as client:
            await story(client)

    anyio.run(main)


@contextlib.asynccontextmanager
async def connected(port: int, token: str | None = None) -> AsyncIterator[Any]:
    """A transport to a server, for the length of the block."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        yield streamable_http_client(f"http://{HOST}:{port}/mcp", http_client=http)


def text_of(result: types.CallToolResult) -> str:
    """What a tool said."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def answer_of(result: types.CallToolResult) -> dict[str, Any]:
    """What a tool answered, once: as a text that is JSON."""
    assert result.structured_content is None
    return dict(json.loads(text_of(result)))


async def failed(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The error that a call comes back with."""
    result = await client.call_tool(name, arguments)
    assert result.is_error is True
    return dict(answer_of(result)["error"])


async def every_page(client: Client) -> list[types.Resource]:
    """All resources."""
    rows: list[types.Resource] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await client.list_resources(cursor=cursor)
        assert len(page.resources) <= 100
        rows += page.resources
        cursor = page.next_cursor
        if cursor is None:
            return rows
    raise AssertionError("the pages have no end")
