"""What stands in the contract: names, types, schemas, and no word of who asks."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kb.model.doc import Scope
from kb.operations.operation import Tool
from kb.operations.table import TOOLS, listing

GOLDEN = Path(__file__).parent / "tools_listing.json"
NAMES = (
    "kb_search",
    "kb_ask",
    "kb_fetch",
    "kb_list_docs",
    "kb_similar",
    "kb_search_entities",
    "kb_pack_list",
    "kb_pack_read",
    "kb_pack_search",
    "kb_pack_neighbors",
)
OF_A_CALLER = re.compile(
    r"scope|user|owner|operator|visib|caller|audience|tenant|auth", re.IGNORECASE
)


def test_the_tools_are_these() -> None:
    """The names are those of the contract, in its order."""
    assert tuple(tool.name for tool in TOOLS) == NAMES


def test_the_schemas_are_the_golden_ones() -> None:
    """Names, descriptions and schemas are the bytes that were agreed on.

    To change the contract on purpose, write `listing()` formatted by msgspec to the file.
    """
    assert msgspec.json.format(listing(), indent=1) + b"\n" == GOLDEN.read_bytes()


def types_in(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    """A type and every type inside it."""
    yield kind
    parts: list[Any] = []
    for name in ("type", "item_type", "key_type", "value_type"):
        part = getattr(kind, name, None)
        if isinstance(part, msgspec.inspect.Type):
            parts.append(part)
    for name in ("types", "item_types"):
        parts += getattr(kind, name, ())
    if isinstance(kind, msgspec.inspect.StructType):
        parts += [field.type for field in kind.fields]
    for part in parts:
        yield from types_in(part)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_input_can_say_who_asks(tool: Tool) -> None:
    """Neither a field nor a type nor any word of the schema is about the one who asks."""
    found = list(types_in(msgspec.inspect.type_info(tool.input)))
    structs = [kind for kind in found if isinstance(kind, msgspec.inspect.StructType)]
    assert structs
    for kind in structs:
        assert kind.cls is not Scope
        assert kind.forbid_unknown_fields
        assert [f.name for f in kind.fields if OF_A_CALLER.search(f.name)] == []
    assert not any(
        isinstance(kind, msgspec.inspect.AnyType | msgspec.inspect.DictType) for kind in found
    )
    assert not OF_A_CALLER.search(tool.input_schema.decode())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_inputs_and_outputs_are_frozen_and_bounded(tool: Tool) -> None:
    """Every text, number and list of an input has its limits; nothing can be changed later."""
    for record in (tool.input, tool.output):
        assert record.__struct_config__.frozen
    for kind in types_in(msgspec.inspect.type_info(tool.input)):
        match kind:
            case msgspec.inspect.StrType():
                assert kind.max_length is not None
            case msgspec.inspect.IntType():
                assert kind.ge is not None
                assert kind.le is not None
            case msgspec.inspect.VarTupleType():
                assert kind.max_length is not None


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_scope_is_an_argument_of_its_own(tool: Tool) -> None:
    """Each tool runs on a kit, a request and a scope."""
    assert list(inspect.signature(tool.run).parameters)[:3] == ["spaces", "request", "scope"]
    assert inspect.signature(tool.run).parameters["scope"].annotation is Scope


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_describes_one_closed_object(tool: Tool) -> None:
    """A client reads fields at the top; what is not among them is refused."""
    schema = msgspec.json.decode(tool.input_schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    fields = set(tool.input.__struct_encode_fields__)
    assert set(schema["properties"]) == fields - set(tool.untold)
    assert msgspec.json.decode(tool.output_schema)["type"] == "object"
    assert tool.input_schema == tool.input_schema
