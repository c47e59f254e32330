"""Every operation that is asked, and the one way in which agents call them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.errors import KbError
from kb.model.decoding import decode_json
from kb.model.doc import Scope
from kb.operations import (
    ask,
    docs,
    entities,
    facets,
    fetch,
    growth,
    guide,
    help,  # noqa: A004  it is called so
    learn,
    list_docs,
    pack_list,
    pack_neighbors,
    pack_read,
    pack_search,
    search,
    show,
    similar,
    topics,
)
from kb.operations.failure import Failed, failed, failed_by
from kb.operations.operation import Operation, Tool, wrong_value

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces

_ARGUMENTS_BYTES_MAX: Final = 256 * 1024
_NAME_CHARS_MAX: Final = 64
_OF_PACKS: Final = ("packs", "with_neighbors")

OPERATIONS: Final[tuple[Operation, ...]] = (
    search.SEARCH,
    ask.ASK,
    ask.SOURCES,
    fetch.FETCH,
    list_docs.LIST_DOCS,
    similar.SIMILAR,
    entities.ENTITIES,
    pack_list.PACK_LIST,
    pack_read.PACK_READ,
    pack_search.PACK_SEARCH,
    pack_neighbors.PACK_NEIGHBORS,
    docs.DOCS,
    show.SHOW,
    facets.FACETS,
    growth.GROWTH,
    topics.TOPICS,
    guide.GUIDE,
    help.HELP,
    learn.LEARN,
)


def _tool_of(operation: Operation) -> Tool:
    assert operation.tool is not None
    return operation.tool


HELP: Final = _tool_of(help.HELP)
"""Not every caller has it: it needs entries to answer from, and writes."""
LEARN: Final = _tool_of(learn.LEARN)
"""Not every home has it; `tools_of` says what its topics are."""
TOOLS: Final[tuple[Tool, ...]] = tuple(
    operation.tool
    for operation in OPERATIONS
    if operation.tool is not None and operation.tool not in (HELP, LEARN)
)
_BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TOOLS}


def tools_of(spaces: "Spaces", scope: Scope) -> tuple[Tool, ...]:
    """The tools that homes have for a scope.

    Those of TOOLS that have something to say, `help` where there is a guide, and `learn` where
    there is something for the scope to learn. Raises ConfigError where a topic's folder is not
    there.
    """
    description = learn.description(spaces.topics(scope))
    tools = tuple(tool for tool in TOOLS if _has_answers(tool, spaces, scope))
    if spaces.guide is not None:
        tools = (*tools, HELP)
    if not description:
        return tools
    return (*tools, msgspec.structs.replace(LEARN, description=description))


def _tools_listed(spaces: "Spaces", scope: Scope) -> tuple[Tool, ...]:
    try:
        return tools_of(spaces, scope)
    except KbError:
        return TOOLS


def _has_answers(tool: Tool, spaces: "Spaces", scope: Scope) -> bool:
    try:
        return tool.has_answers is None or tool.has_answers(spaces, scope)
    except KbError:
        # What cannot be read now is told by a call.
        return True


def listing(tools: Iterable[Tool] = TOOLS) -> bytes:
    """Each tool with its description and the schemas of input and output, as one JSON array."""
    rows = [
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": msgspec.Raw(tool.input_schema),
            "outputSchema": msgspec.Raw(tool.output_schema),
        }
        for tool in tools
    ]
    return msgspec.json.encode(rows)


def call(
    name: str, arguments: Mapping[str, object] | bytes, spaces: "Spaces", scope: Scope
) -> bytes:
    """What `answer` says, as JSON: equal calls on an equal store give equal bytes."""
    return msgspec.json.encode(answer(name, arguments, spaces, scope), order="deterministic")


def answer(
    name: str, arguments: Mapping[str, object] | bytes, spaces: "Spaces", scope: Scope
) -> Struct:
    """The tool's output, or `Failed`. `arguments` come from the agent, `scope` never does.

    Every error of kb's own becomes a `Failed`; others are faults of the code and go to the caller.
    """
    others = {LEARN.name: LEARN} if spaces.guide is None else {LEARN.name: LEARN, HELP.name: HELP}
    tool = others.get(name) or _BY_NAME.get(name)
    if tool is None:
        names = ", ".join(tool.name for tool in _tools_listed(spaces, scope))
        return failed("unknown_tool", f"no tool is called {name[:_NAME_CHARS_MAX]!r}; try {names}")
    return answer_by(tool, arguments, spaces, scope)


def answer_by(
    tool: Tool, arguments: Mapping[str, object] | bytes, spaces: "Spaces", scope: Scope
) -> Struct:
    """As `answer`, by a tool that is at hand."""
    request = _decoded(tool, arguments, lambda: told_fields(tool, _tools_listed(spaces, scope)))
    if isinstance(request, Failed):
        return request
    try:
        result: Struct = tool.run(spaces, request, scope)
    except KbError as error:
        return failed_by(error, scope)
    return result


def told_fields(tool: Tool, tools: Iterable[Tool]) -> tuple[str, ...]:
    """The fields that an agent is told of which is given these tools: of packs only with theirs."""
    has_packs = any(other.name.startswith("kb_pack_") for other in tools)
    left_out = {*tool.untold, *(() if has_packs else _OF_PACKS)}
    fields = msgspec.structs.fields(tool.input)
    return tuple(field.encode_name for field in fields if field.name not in left_out)


def _said(text: bytes) -> bytes:
    """Arguments without those that are null: some agents send all that there are."""
    if b"null" not in text:
        return text
    fields = msgspec.json.decode(text)
    if not isinstance(fields, dict):
        return text
    said = {name: value for name, value in fields.items() if value is not None}
    return msgspec.json.encode(said)


def _decoded(
    tool: Tool, arguments: Mapping[str, object] | bytes, told: Callable[[], Sequence[str]]
) -> Struct:
    """The typed input; `Failed`, naming the field, where the arguments are not one."""
    try:
        # What comes as objects is held to the same rules as what comes as text.
        text = arguments if isinstance(arguments, bytes) else msgspec.json.encode(arguments)
        if len(text) > _ARGUMENTS_BYTES_MAX:
            return failed("invalid_input", f"the arguments are over {_ARGUMENTS_BYTES_MAX} bytes")
        return decode_json(_said(text), tool.input)
    except msgspec.ValidationError as error:
        return failed("invalid_input", wrong_value(tool.input, error, told))
    except (msgspec.MsgspecError, UnicodeError, TypeError, RecursionError):
        return failed("invalid_input", "the arguments are not a JSON object in UTF-8")
