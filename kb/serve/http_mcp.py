"""`/mcp`: the Model Context Protocol, a message to a request, without sessions and streams."""

import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from kb.errors import KbError
from kb.model.decoding import decode_json
from kb.model.token import role_allows
from kb.operations.operation import Tool
from kb.operations.table import HELP, LEARN, TOOLS
from kb.serve.executor import InlineExecutor
from kb.serve.http_reply import JSON, Refusal, Reply
from kb.serve.http_routes import Caller, Message, Route, Served, has_model
from kb.serve.mcp import check_installed, make_server, refusal_of

if TYPE_CHECKING:
    from mcp.server import Server

_HEADERS: Final = ("accept", "content-type")
_PREFIX: Final = "mcp-"
_HELLO: Final = ("initialize", "server/discover")
"""Methods whose answers hold the instructions."""
_SILENT: Final = logging.NullHandler()
_READ_AT_ONCE: Final = {tool.name for tool in (*TOOLS, HELP, LEARN)} - {"kb_ask"}
_SCHEMA: Final = msgspec.json.encode(
    {
        "type": "object",
        "description": "A request or a notification of JSON-RPC, as the protocol has it.",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
        },
        "required": ["jsonrpc"],
    },
    order="sorted",
)


def mcp_routes() -> tuple[Route, ...]:
    """Where messages are sent; there is nothing to get, and no session to delete."""
    return (
        Route(
            method="POST",
            path="/mcp",
            role="reader",
            summary="Ask the tools, docs and topics by the Model Context Protocol.",
            run=_answered,
            schema=_SCHEMA,
            is_raw=True,
            takes="message",
            refuses=(400, 404, 406, 501),
            is_long=_is_long,
        ),
    )


class _Named(Struct):
    name: str = ""


class _Called(Struct):
    method: str = ""
    params: _Named = msgspec.field(default_factory=_Named)


def _called(message: Message) -> _Called:
    """What a message asks for, as far as it can be told before it is read closely."""
    try:
        return decode_json(message.body, _Called)
    except msgspec.DecodeError:
        return _Called()


def _is_long(served: Served, message: Message) -> bool:
    """Whether it asks a model, or hands in what has to be fetched or parsed."""
    called = _called(message)
    name = called.params.name
    if called.method != "tools/call" or name in _READ_AT_ONCE:
        return False
    return name != "kb_ask" or has_model(served, message)


def _answered(served: Served, message: Message, caller: Caller) -> Reply:
    """The answer to one message, by a server of its own. Raises Refusal without the packages."""
    try:
        check_installed()
    except KbError as error:
        raise Refusal(501, "not_installed", str(error)) from error
    import anyio
    from mcp import types

    try:
        types.jsonrpc_message_adapter.validate_json(message.body, by_name=False)
    except ValueError as error:
        # The protocol's transport answers in one of its versions that parameters are wrong.
        refusal = refusal_of(error).model_dump_json(by_alias=True, exclude_unset=True)
        return Reply(status=400, body=refusal.encode(), media=JSON)
    # What it says may quote a message; what is to be said of a request, the gate says.
    quiet = logging.getLogger("mcp")
    quiet.propagate = False
    quiet.addHandler(_SILENT)
    server = make_server(
        served.asked_by(caller),
        caller.scope,
        InlineExecutor(),
        _writers(served, caller),
        says_hello=_called(message).method in _HELLO,
    )
    return anyio.run(_exchanged, server, message)


def _writers(served: Served, caller: Caller) -> tuple[Tool, ...]:
    if not role_allows(caller.role, "writer"):
        return ()
    from kb.serve.writing import writers

    return writers(served.app)


async def _exchanged(server: "Server[Any]", message: Message) -> Reply:
    """Hand the message to the protocol's own transport, and take what it answers."""
    import anyio
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=len(message.body) + 1
    )
    parts_sent: list[Any] = []
    coming = iter([{"type": "http.request", "body": message.body, "more_body": False}])

    async def receive() -> Any:
        part = next(coming, None)
        if part is None:
            # Whoever sent it may have left, but what is begun is ended.
            await anyio.sleep_forever()
        return part

    async def send(part: Any) -> None:
        parts_sent.append(part)

    async with manager.run():
        await manager.handle_request(_scope_of(message), receive, send)
    begin, *parts = parts_sent
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in begin["headers"]}
    return Reply(
        status=int(begin["status"]),
        body=b"".join(part.get("body", b"") for part in parts),
        media=headers.get("content-type", JSON),
    )


def _scope_of(message: Message) -> dict[str, Any]:
    """The request as the transport reads it: with no more of its head than the protocol's own."""
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, values in message.headers.items()
        if name in _HEADERS or name.startswith(_PREFIX)
        for value in values
    ]
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
    }
