"""The page of the HTTP interface, from the routes that the server's description is made of."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kb.serve.http_openapi import described
from kb.serve.http_server import all_routes
from reference.markdown import flat, page, part, said_of, table


def pages() -> Iterator[tuple[str, str]]:
    """The one page."""
    routes = all_routes()
    document = msgspec.json.decode(msgspec.json.encode(described(routes)))
    records = document["components"]["schemas"]
    blocks = []
    for route in routes:
        # The page of the tools has them.
        if route.path.startswith("/v1/tools/"):
            continue
        operation = document["paths"][route.path][route.method.lower()]
        who = f"Role: {route.role}." if route.role else "Anybody may ask; it needs no token."
        blocks += [f"## `{route.method} {route.path}`", f"{flat(route.summary)} {who}"]
        blocks.append(table(("parameter", "what it says"), _fields(operation, records)))
    yield "http.md", page("HTTP", part("http"), *blocks)


def _fields(operation: dict[str, Any], records: dict[str, Any]) -> Iterator[list[str]]:
    for parameter in operation.get("parameters", ()):
        must = " Required." if parameter["required"] else ""
        yield [f"`{parameter['name']}`", said_of(parameter["schema"], records) + must]
    body = operation.get("requestBody", {}).get("content", {})
    schema = body.get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = records[schema["$ref"].rpartition("/")[2]]
    for name, field in schema.get("properties", {}).items():
        must = " Required." if name in schema.get("required", ()) else ""
        yield [f"`{name}`", said_of(field, records) + must]
