"""`/v1/`: every operation at its addresses, derived from the table of operations.

An operation answers to GET where it can be read by address; to POST at `/v1/NAME`, with all that
its command may ask; and as a tool to POST at `/v1/tools/NAME`, with the bounds of agents.
"""

import functools
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from kb.home.opening import search_fingerprint
from kb.home.spaces.homes import SpaceAsked
from kb.model.search import SpaceName
from kb.operations import list_docs
from kb.operations.failure import Failed
from kb.operations.fields import ROWS_MAX, Tags
from kb.operations.list_docs import Cursor
from kb.operations.notes import Notes, note_row
from kb.operations.operation import Address, Operation, Tool, parameters
from kb.operations.table import OPERATIONS, answer
from kb.serve.http_reply import Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Served, answered, has_model, never

InSpace = Annotated[
    SpaceAsked, Meta(description="Which of the spaces that you read: one of them, or all.")
]
Readable = Annotated[
    tuple[SpaceName, ...],
    Meta(description="All that you read, asked or not; first the one that anything new goes to."),
]
OwnOrIn = Annotated[
    SpaceAsked | None,
    Meta(description="Which of the spaces that you read; without it the server's own home."),
]
Fingerprint = Annotated[
    Annotated[str, Meta(max_length=128)] | None,
    Meta(
        description="Of the home and the settings that are meant; a server with others does not "
        "answer."
    ),
]


class NotesRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of the notes is wanted."""

    tags: Tags = ()
    limit: Annotated[int, Meta(ge=1, le=ROWS_MAX, description="How many are wanted.")] = 50
    cursor: Cursor | None = None


def operation_routes() -> tuple[Route, ...]:
    """The routes to every operation."""
    addresses = [
        operation_or_address
        for operation in OPERATIONS
        for operation_or_address in operation.addresses
    ]
    return (
        *(
            _tool_route(operation_or_address, operation_or_address.tool)
            for operation_or_address in OPERATIONS
            if operation_or_address.tool is not None
        ),
        *(_address_route(address) for address in addresses),
        _NOTES,
        *(_command_route(operation) for operation in OPERATIONS),
    )


def _tool_route(operation: Operation, tool: Tool) -> Route:
    def run(served: Served, body: Any, caller: Caller) -> Reply:
        return answered(answer(tool.name, body, served.asked_by(caller), caller.scope))

    return Route(
        method="POST",
        path=f"/v1/tools/{tool.name}",
        role="reader",
        summary=tool.description,
        run=run,
        input=tool.input,
        schema=tool.schema,
        is_raw=True,
        outputs=(tool.output,),
        is_long=has_model if operation.asks_model else never,
    )


def _address_route(address: Address) -> Route:
    record = _with_fields(address.input, "InSpace", ("space", InSpace, "all"))

    def run(served: Served, request: Any, caller: Caller) -> Reply:
        space: SpaceAsked = request.space if address.by_space else "all"
        spaces = served.spaces_of(caller, space)
        result = address.run(spaces, request, caller.scope)
        if isinstance(result, Failed):
            return answered(result)
        if not address.tells_spaces or not isinstance(result, address.result):
            return json_of(result)
        readable = served.spaces_of(caller).names
        with_spaces = told_spaces(address.result)
        return json_of(with_spaces(**msgspec.structs.asdict(result), spaces=readable))

    result = told_spaces(address.result) if address.tells_spaces else address.result
    return Route(
        method="GET",
        path=address.path,
        role="reader",
        summary=address.summary,
        run=run,
        input=record if address.by_space else address.input,
        names=parameters(address.request),
        outputs=(*address.others, result),
    )


def _command_route(operation: Operation) -> Route:
    record = _with_fields(
        operation.request, "Sent", ("space", OwnOrIn, None), ("fingerprint", Fingerprint, None)
    )

    def run(served: Served, request: Any, caller: Caller) -> Reply:
        _check_fingerprint(served, request.fingerprint)
        spaces = served.asked_by(caller, request.space, or_own=True)
        result = operation.run(spaces, request, caller.scope)
        if isinstance(result, Failed):
            return answered(result)
        # In the order in which a command prints it, which is not that of sorted keys.
        return Reply(body=msgspec.json.encode(result))

    return Route(
        method="POST",
        path=f"/v1/{operation.name}",
        role=operation.role,
        summary=operation.summary,
        run=run,
        input=record,
        outputs=operation.results,
        is_long=has_model if operation.asks_model else never,
    )


def _check_fingerprint(served: Served, fingerprint: str | None) -> None:
    """Pass where no other home and no other settings are meant. Raises Refusal."""
    if fingerprint is None:
        return
    app = served.app
    own = search_fingerprint(app.settings, app.paths.root, served.spaces.names[0])
    if fingerprint != own:
        raise Refusal(409, "other_settings", "this server has another home or other settings")


@functools.cache
def told_spaces(record: type[Struct]) -> type[Struct]:
    """What comes back, and which spaces its reader reads."""
    return msgspec.defstruct(
        f"{record.__name__}AndSpaces",
        [("spaces", Readable)],
        bases=(record,),
        frozen=True,
        kw_only=True,
    )


@functools.cache
def _with_fields(record: type[Struct], suffix: str, *fields: tuple[str, Any, Any]) -> type[Struct]:
    return msgspec.defstruct(
        f"{record.__name__}{suffix}",
        fields,
        bases=(record,),
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _notes(served: Served, request: NotesRequest, caller: Caller) -> Reply:
    list_request = list_docs.ListDocsRequest(
        tags=request.tags,
        kinds=("notebook",),
        limit=request.limit,
        cursor=request.cursor,
        max_tokens=_NOTES_TOKENS,
    )
    # Of the server's own notebook alone, for `/content` reads no other.
    page = list_docs.run(served.spaces, list_request, caller.scope)
    rows = tuple(note_row(served.app, doc) for doc in page.docs)
    return json_of(Notes(notes=rows, total=page.total, next_cursor=page.next_cursor))


_NOTES_TOKENS: Final = 8_000
_NOTES: Final = Route(
    method="GET",
    path="/v1/notes",
    role="reader",
    summary="List notes of the notebook, page by page.",
    run=_notes,
    input=NotesRequest,
    names=(("tag", "tags"),),
    outputs=(Notes,),
)
