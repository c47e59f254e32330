"""The routes: what may be asked, by whom, and what answers; a request is parsed here alone."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final, Literal
from urllib.parse import parse_qs, unquote

import msgspec
from msgspec import Struct

from kb.errors import KbError
from kb.home.app import App
from kb.home.spaces.homes import SpaceAsked
from kb.home.spaces.spaces import Spaces
from kb.model.decoding import convert, decode_json
from kb.model.doc import Scope
from kb.model.token import Role, role_allows
from kb.operations.failure import Failed, failed, failed_by
from kb.operations.operation import meant_by, wrong_value
from kb.serve.http_changes import Changes
from kb.serve.http_reply import JSON, Refusal, Reply, json_of, refusal_of
from kb.serve.sessions import Sessions

_QUERY_FIELDS_MAX: Final = 256
# What people type for a boolean, whatever its case.
_YES: Final = ("true", "1", "yes", "on")
_NO: Final = ("false", "0", "no", "off")


class Caller(Struct, frozen=True, kw_only=True):
    """Who asks, as the gate has found out."""

    scope: Scope
    role: Role
    holds: Callable[[], bool] = lambda: True
    """Whether they would still be let in; for answers that go on for a while."""
    at_least: str = ""
    """The token of a transaction that the answer must have seen; empty for any state."""


class Served(Struct, frozen=True, kw_only=True):
    """The one open home that is asked, in the ways that the routes need."""

    app: App
    spaces: Spaces
    """The same home alone, read with help and answers: all that a token lets anybody read."""
    every: Spaces
    """That home first, and those beside it: for the person at the machine, and nobody else."""
    changes: Changes
    """When it changed, for answers that go on for a while."""
    trouble: Callable[[], KbError | OSError | None]
    """What keeps its workers from going on, as a full disk does; None while they do."""
    counters: Callable[[], str]
    """What was asked so far, as lines of the metrics."""
    sessions: Sessions
    """Links that open the page, and the cookies that they became."""
    cookie: str = ""
    """What the cookie is called."""

    def spaces_of(self, caller: Caller, space: SpaceAsked = "all") -> Spaces:
        """What a caller reads, or the one space of it that is named.

        Raises Refusal for any other space, hidden or not there, in the same words.
        """
        mine = self.every.current() if caller.scope.operator else self.spaces
        readable = mine if space == "all" else mine.only(space)
        if readable is not None and caller.at_least:
            readable = readable.since(caller.at_least)
        if readable is None:
            detail = (
                f"you can read no {space} space here; leave out `space` to read all that you can"
            )
            raise Refusal(400, "no_such_space", detail, field="space")
        return readable

    def _own(self, caller: Caller) -> Spaces:
        return self.spaces.since(caller.at_least) if caller.at_least else self.spaces

    def asked_by(
        self, caller: Caller, space: SpaceAsked | None = "all", *, or_own: bool = False
    ) -> Spaces:
        """As `spaces_of`, for whoever may leave signals; a reader is guided, and leaves none.

        With `or_own` no space is the server's own home.
        """
        spaces = (
            self._own(caller)
            if or_own and space is None
            else self.spaces_of(caller, space or "all")
        )
        return spaces if role_allows(caller.role, "writer") else spaces.without_signals()


class Message(Struct, frozen=True, kw_only=True):
    """What was sent to a route that is a protocol of its own."""

    headers: Mapping[str, Sequence[str]]
    """By names in lower case."""
    body: bytes
    """Any JSON."""


class Upload(Struct, frozen=True, kw_only=True):
    """A file that is handed in, and the query that came with it."""

    query: Any
    """The route's input."""
    file: IO[bytes]
    """It stands at its start, and has a descriptor."""


Run = Callable[[Served, Any, Caller], Reply]


def has_model(served: Served, request: object) -> bool:  # noqa: ARG001  whatever is asked of it
    """Whether a question is put to a language model here."""
    return served.every.has_model


def never(served: Served, request: object) -> bool:  # noqa: ARG001  whatever is asked of it
    """Whether it waits for nobody else: it never does."""
    return False


class Route(Struct, frozen=True, kw_only=True):
    """A method and a path, who may ask, and what comes back."""

    method: str
    path: str
    """Parts in braces are ids, as fields of the input."""
    role: Role | None
    """None is for anybody, with no token: such a route tells nothing of what is kept."""
    summary: str
    run: Run
    input: type[Struct] | None = None
    """Of a POST of JSON the body, of any other request the query and the ids in the path."""
    takes: Literal["json", "file", "message", "nothing"] = "json"
    """What the body of a POST is. Of a file `run` is given an Upload, which it closes, and of
    JSON with the head of its request a Message."""
    schema: bytes | None = None
    """What a body looks like to who sends it, where that is not what `input` says."""
    is_raw: bool = False
    """The body is any JSON, and goes to `run` as it came."""
    names: tuple[tuple[str, str], ...] = ()
    """Query parameters that are called otherwise than their fields."""
    outputs: tuple[Any, ...] = ()
    """The types of what comes back, which is one of them; none for what is no JSON of ours."""
    media: str = JSON
    """Of what comes back."""
    status: int = 200
    refuses: tuple[int, ...] = (404, 409)
    """Statuses of its own problems, beside those that the gate and any input may have."""
    waits: bool = True
    """Takes one of the places for requests that are worked on."""
    reads_store: bool = False
    """Takes no place, and is still not for the loop: what it reads may lie on another machine."""
    is_long: Callable[[Served, Any], bool] = never
    """Whether a request may wait for a language model, a page or a parser, so that it is kept apart
    from those that do not."""

    @property
    def has_json(self) -> bool:
        """Whether its input is a body of JSON."""
        return self.method == "POST" and self.takes in ("json", "message")

    @property
    def steps(self) -> tuple[str, ...]:
        """The path's parts."""
        return tuple(self.path.split("/"))

    def ids(self, path: str) -> dict[str, str] | None:
        """The ids in a path as it was sent that is this route's; None for another's.

        Its parts are decoded one by one, so that an id may hold a slash, as %2F.
        """
        parts = [unquote(part) for part in path.split("/")]
        if len(parts) != len(self.steps):
            return None
        ids_by_name: dict[str, str] = {}
        for step, part in zip(self.steps, parts, strict=True):
            if step.startswith("{") and part:
                ids_by_name[step[1:-1]] = part
            elif step != part:
                return None
        return ids_by_name

    def request(self, ids: Mapping[str, str], query: str, body: bytes) -> Any:
        """What is asked, typed. Raises Refusal, which names the parameter or the field."""
        if self.has_json:
            return _from_body(None if self.is_raw else self.input, body)
        parsed = _parsed(query)
        return _from_query(self.input, ids, parsed, dict(self.names)) if self.input else None


@functools.cache
def properties_of(record: type[Struct]) -> dict[str, Any]:
    """The JSON Schema of each field of a record that no other is referred to by."""
    schema = msgspec.json.schema(record)["$defs"][record.__name__]
    properties: dict[str, Any] = schema["properties"]
    return properties


@functools.cache
def many_of(record: type[Struct]) -> frozenset[str]:
    """The fields that hold several values, so that their parameters may be repeated."""
    fields = properties_of(record)
    return frozenset(name for name, schema in fields.items() if schema.get("type") == "array")


@functools.cache
def _booleans_of(record: type[Struct]) -> frozenset[str]:
    fields = properties_of(record)
    return frozenset(name for name, schema in fields.items() if schema.get("type") == "boolean")


def _parsed(query: str) -> Mapping[str, Sequence[str]]:
    try:
        return parse_qs(
            query, keep_blank_values=True, errors="strict", max_num_fields=_QUERY_FIELDS_MAX
        )
    except ValueError as error:
        raise Refusal(400, "malformed", "the query string cannot be read") from error


def _from_query(
    record: type[Struct],
    ids: Mapping[str, str],
    query: Mapping[str, Sequence[str]],
    fields: Mapping[str, str],
) -> Struct:
    parameters: dict[str, object] = dict(ids)
    renamed = set(fields.values())
    allowed = (set(properties_of(record)) - renamed) | set(fields)
    for name, values in query.items():
        if name not in allowed or name in ids:
            raise _no_parameter(name[:64], sorted(allowed - {*ids}), fields)
        field = fields.get(name, name)
        if field in many_of(record):
            parameters[field] = values
        elif len(values) > 1:
            raise Refusal(422, "invalid_input", f"{name} is given more than once", field=name)
        else:
            is_boolean = field in _booleans_of(record)
            parameters[field] = _boolean(name, values[0]) if is_boolean else values[0]
    try:
        return convert(parameters, record, strict=False)
    except msgspec.ValidationError as error:
        names = {field: name for name, field in fields.items()}

        def parameter(named: "re.Match[str]") -> str:
            return named[1] + names.get(named[2], named[2])

        said = re.sub(r"(`(?:\$\.)?)([a-z_]+)", parameter, wrong_value(record, error))
        raise refusal_of(failed("invalid_input", said)) from error


def _boolean(name: str, value: str) -> bool:
    word = value.lower()
    if word not in (*_YES, *_NO):
        detail = f"{name} is one of {', '.join((*_YES, *_NO))}"
        raise Refusal(422, "invalid_input", detail, field=name)
    return word in _YES


def _no_parameter(name: str, known: Sequence[str], fields: Mapping[str, str]) -> Refusal:
    """A refusal that says which parameter was meant: by the name of its field, or a near one."""
    of_field = [shown for shown, field in fields.items() if field == name]
    meant = (
        f"; did you mean `{of_field[0]}`?" if of_field else meant_by(name, known, are="parameters")
    )
    detail = f"there is no parameter {name!r} here{meant}"
    return Refusal(422, "invalid_input", detail, field=name)


def _from_body(record: type[Struct] | None, body: bytes) -> object:
    try:
        # First as any JSON: what is none is told apart from what is not asked for here.
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal(400, "malformed", "the body is not JSON in UTF-8") from error
    if record is None:
        return body
    try:
        return decode_json(body, record)
    except msgspec.ValidationError as error:
        raise refusal_of(failed("invalid_input", wrong_value(record, error))) from error


def answered(result: Struct | Failed) -> Reply:
    """What a tool said. Raises Refusal for an error."""
    if isinstance(result, Failed):
        raise refusal_of(result)
    return json_of(result)


def run(route: Route, served: Served, request: Any, caller: Caller) -> Reply:
    """What a route answers. Raises Refusal, also for every error of kb's own."""
    try:
        return route.run(served, request, caller)
    except KbError as error:
        raise refusal_of(failed_by(error, caller.scope)) from error
