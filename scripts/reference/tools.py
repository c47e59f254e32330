"""The page of the tools that agents have, from their descriptions and schemas."""

from collections.abc import Iterator
from typing import cast

import msgspec

from kb.home.app import App
from kb.operations.table import HELP, LEARN, TOOLS
from kb.serve.writing import writers
from reference.markdown import page, part, said_of, table


def pages() -> Iterator[tuple[str, str]]:
    """The one page."""
    blocks = []
    # What they are called and take does not depend on the home that they write to.
    for tool in (*TOOLS, HELP, LEARN, *writers(cast("App", None))):
        schema = msgspec.json.decode(tool.input_schema)
        must = schema.get("required", ())
        rows = [
            [
                f"`{name}`",
                said_of(field, schema.get("$defs", {})) + (" Required." if name in must else ""),
            ]
            for name, field in schema["properties"].items()
        ]
        writes = "" if tool.reads_only else "It writes."
        blocks += [f"## `{tool.name}`", tool.description, writes]
        blocks.append(table(("argument", "what it says"), rows))
    yield "mcp.md", page("MCP tools", part("mcp"), *blocks)
