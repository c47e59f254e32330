"""Tools as agents know them: described in few tokens, and answered once.

A program sends the description of every tool with each conversation, and an agent reads every
answer. So a schema says what an agent needs to call a tool and no more: what it leaves out, bounds
of length, say, is still checked, and an error names it. An answer is one text.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from kb.model.search import Filters
from kb.operations.operation import Tool
from kb.operations.table import told_fields

if TYPE_CHECKING:
    from mcp import types

_LEFT_OUT: Final = frozenset(
    (
        *("additionalProperties", "title", "pattern"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
    )
)


def described(tools: Sequence[Tool]) -> "list[types.Tool]":
    """Tools as they are listed together, without a schema of their answer: that is a text.

    Filters are described in the first tool that has them. Those of packs are left out where no
    tool reads packs.
    """
    from mcp import types

    filters = {field.name for field in msgspec.structs.fields(Filters)}
    told: set[str] = set()
    rows: list[types.Tool] = []
    for tool in tools:
        schema = brief_schema(msgspec.json.decode(tool.input_schema))
        fields = schema["properties"]
        for name in fields.keys() - told_fields(tool, tools):
            del fields[name]
        for name in filters & fields.keys() & told:
            fields[name].pop("description")
        told |= filters & fields.keys()
        # Programs ask whether a tool destroys something only of one that writes.
        hints = types.ToolAnnotations(
            read_only_hint=tool.reads_only, destructive_hint=None if tool.reads_only else False
        )
        rows.append(
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=schema,
                annotations=hints,
            )
        )
    return rows


def brief_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments without what an agent can do without.

    It lets through every call that the whole schema lets through. A field that may be null may be
    left out; its type is said alone.
    """
    brief: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "anyOf":
            brief |= _without_null(value)
        elif key in ("properties", "$defs"):
            brief[key] = {name: brief_schema(field) for name, field in value.items()}
        elif key == "items":
            brief[key] = brief_schema(value)
        elif not (key in _LEFT_OUT or (key == "default" and is_nothing(value))):
            brief[key] = value
    if brief.get("type") == "object":
        # What the tool is for stands above.
        brief.pop("description", None)
    return brief


def _without_null(options: list[dict[str, Any]]) -> dict[str, Any]:
    left = [brief_schema(option) for option in options if option != {"type": "null"}]
    return left[0] if len(left) == 1 else {"anyOf": left}


def answer_text(result: Struct) -> str:
    """An answer as compact JSON, without fields that say nothing: equal ones give equal text.

    Its own lists stay where they are empty: that there are no hits is what it says.
    """
    fields = msgspec.to_builtins(result, order="deterministic")
    kept = {
        name: _without_nothing(field)
        for name, field in fields.items()
        if isinstance(field, list | tuple) or not is_nothing(field)
    }
    return msgspec.json.encode(kept).decode()


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_nothing(field) for key, field in value.items() if not is_nothing(field)
        }
    return [_without_nothing(item) for item in value] if isinstance(value, list | tuple) else value


def is_nothing(value: Any) -> bool:
    """Whether a field says nothing: it is null, false or empty."""
    return value is None or value is False or value in ("", (), [], {})
