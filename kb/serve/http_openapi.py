"""The description of the routes, made of the types that decode and encode what they say."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kb import __version__
from kb.serve.http_reply import BINARY, EVENTS, JSON, PROBLEM, Problem, Reply
from kb.serve.http_routes import Caller, Route, Served, properties_of

_Schemas = dict[Any, Any]
# By the gate, or by whoever reads a request before it.
_ALWAYS: Final = (400, 403, 408, 414, 421, 431, 500, 503)
_AT: Final = "#/components/schemas/{name}"


def openapi_route(others: Iterable[Route]) -> Route:
    """The route that describes the others and itself."""

    def run(served: Served, request: Any, caller: Caller) -> Reply:  # noqa: ARG001
        return Reply(body=body)

    own = Route(
        method="GET",
        path="/openapi.json",
        role="reader",
        summary="This description.",
        run=run,
    )
    body = msgspec.json.encode(described((*others, own)), order="deterministic")
    return own


def described(routes: Iterable[Route]) -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    all_routes = tuple(routes)
    types: list[Any] = [Problem]
    for route in all_routes:
        types += [route.input] if route.has_json and not route.schema else []
        types += route.outputs
    shown, records = msgspec.json.schema_components(types, ref_template=_AT)
    schema_of: _Schemas = dict(zip(types, shown, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in all_routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "kb", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": records,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, schema_of: _Schemas) -> dict[str, Any]:
    problem = {"description": "A problem.", "content": {PROBLEM: {"schema": schema_of[Problem]}}}
    answer: dict[str, Any] = {"description": "The answer."}
    if route.outputs:
        schemas = [schema_of[output] for output in route.outputs]
        answer["content"] = {JSON: {"schema": {"anyOf": schemas} if schemas[1:] else schemas[0]}}
    elif route.media != JSON:
        answer["content"] = {route.media: {"schema": {"type": "string"}}}
    responses = {str(status): problem for status in _problems(route)} | {str(route.status): answer}
    if route.method == "GET" and route.media != EVENTS:
        responses["304"] = {"description": "It is as the reader has it already."}
    operation: dict[str, Any] = {"summary": route.summary, "responses": responses}
    if route.role is None:
        operation["security"] = []
    if parameters := list(_parameters(route)):
        operation["parameters"] = parameters
    if route.method == "POST":
        operation["requestBody"] = _body(route, schema_of)
    return operation


def _problems(route: Route) -> Iterable[int]:
    """Every status of a problem that a route may answer with."""
    yield from _ALWAYS
    yield from route.refuses
    if route.role is not None:
        yield 401
    if route.input is not None or route.is_raw:
        yield 422
    if route.method == "POST":
        yield from (413, 415)


def _body(route: Route, schema_of: _Schemas) -> dict[str, Any]:
    match route.takes:
        case "file":
            schema: object = {"type": "string", "format": "binary"}
            return {"required": True, "content": {BINARY: {"schema": schema}}}
        case "nothing":
            schema = {"type": "object", "maxProperties": 0}
            return {"required": False, "content": {JSON: {"schema": schema}}}
        case _:
            schema = msgspec.Raw(route.schema) if route.schema else schema_of[route.input]
            return {"required": True, "content": {JSON: {"schema": schema}}}


def _parameters(route: Route) -> Iterable[dict[str, Any]]:
    if route.input is None or route.has_json:
        return
    shown = {field: name for name, field in route.names}
    required = {field.name for field in msgspec.structs.fields(route.input) if field.required}
    for field, schema in properties_of(route.input).items():
        in_path = f"{{{field}}}" in route.steps
        yield {
            "name": shown.get(field, field),
            "in": "path" if in_path else "query",
            "required": field in required,
            "schema": schema,
        }
