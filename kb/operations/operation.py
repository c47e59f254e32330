"""What is an operation? One thing to ask: its request, its result, and the names it goes by.

Surfaces derive from it: MCP tools and their schemas, HTTP routes and their description, the remote
client, and the options of a command.
"""

import contextlib
import functools
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, Struct

from kb.errors import UsageError
from kb.model.decoding import convert, decode_json
from kb.model.doc import Scope

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces
    from kb.model.token import Role

_R = TypeVar("_R", bound=Struct)
Run = Callable[["Spaces", Any, Scope], Any]
_BY_AGENTS: Final = "ByAgents"
_PLACE: Final = " - at `$."
_NEAR: Final = 0.7
_BOUNDS: Final = ("gt", "ge", "lt", "le", "pattern", "min_length", "max_length")


class Bounds(Struct, frozen=True, kw_only=True):
    """How a field of a request is held in by one kind of caller."""

    meta: Meta | None = None
    items: Meta | None = None
    """Of each item, of a field that holds several."""
    default: Any = ...
    """Where it is not that of the request."""
    name: str | None = None
    """What such callers call it, where that is not what the request says."""


class Tool(Struct, frozen=True, kw_only=True):
    """An operation as agents know it."""

    name: str
    description: str
    request: type[Struct]
    output: type[Struct]
    run: Run
    bounds: Mapping[str, Bounds] = {}
    """Of fields that agents are held to more closely than people."""
    schema: bytes | None = None
    """What its arguments look like to an agent, where that is not what `input` says."""
    untold: tuple[str, ...] = ()
    """Fields that agents are not told of, so that no tokens are spent on them."""
    reads_only: bool = True
    has_answers: Callable[["Spaces", Scope], bool] | None = None
    """Whether it has anything to say, where it may have nothing: else it is not listed."""

    @property
    def input(self) -> type[Struct]:
        """The request, with the bounds of agents."""
        return narrowed(self.request, _BY_AGENTS, self.bounds) if self.bounds else self.request

    @property
    def input_schema(self) -> bytes:
        """The JSON Schema of its arguments, the same bytes on every run."""
        return self.schema or schema_of(self.input, self.untold)

    @property
    def output_schema(self) -> bytes:
        """The JSON Schema of its answer, the same bytes on every run."""
        return schema_of(self.output)


class Address(Struct, frozen=True, kw_only=True):
    """Where an operation is read with GET, by whoever has its address."""

    path: str
    """Parts in braces are ids, as fields of the request."""
    summary: str
    request: type[Struct]
    result: type[Struct]
    """What comes back, and with `tells_spaces` which spaces the reader reads."""
    run: Run
    tells_spaces: bool = True
    by_space: bool = True
    """Whether a reader may ask one of the spaces alone."""
    others: tuple[type[Struct], ...] = ()
    """What may come back instead, as it is."""
    bounds: Mapping[str, Bounds] = {}

    @property
    def input(self) -> type[Struct]:
        """The request, with the bounds of agents."""
        return narrowed(self.request, "ByAddress", self.bounds) if self.bounds else self.request


class Operation(Struct, frozen=True, kw_only=True):
    """One thing that people, programs and agents ask."""

    name: str
    """Of its command, and of its address after `/v1/`."""
    summary: str
    request: type[Struct]
    """As the command line may ask: the widest bounds."""
    results: tuple[Any, ...]
    """The types of what comes back, which is one of them; first those that say more."""
    run: Run
    role: "Role" = "reader"
    asks_model: bool = False
    """Whether it may wait for a language model."""
    tool: Tool | None = None
    addresses: tuple[Address, ...] = ()
    example: str = ""
    """Of a command that is made of the operation: what a person types."""

    @property
    def path(self) -> str:
        """Where it is asked with POST."""
        return f"/v1/{self.name}"

    def decoded(self, answer: bytes) -> Any:
        """A result from JSON. Raises ValueError for what is none of this operation's."""
        for kind in self.results:
            with contextlib.suppress(msgspec.ValidationError):
                return decode_json(answer, kind)
        raise ValueError("not a result of this operation")


_Key = tuple[type[Struct], str]
_NARROWED: Final[dict[_Key, type[Struct]]] = {}


def narrowed(record: type[Struct], suffix: str, bounds: Mapping[str, Bounds]) -> type[Struct]:
    """A request whose fields have closer bounds or other defaults; made once for each suffix."""
    made_before = _NARROWED.get((record, suffix))
    if made_before is not None:
        return made_before
    hints = get_type_hints(record, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
    fields: list[tuple[str, Any, Any]] = []
    for name, bound in bounds.items():
        default = defaults[name] if bound.default is ... else bound.default
        fields.append((name, _bounded(hints[name], bound), default))
    made = msgspec.defstruct(
        f"{record.__name__}{suffix}",
        [field if field[2] is not msgspec.NODEFAULT else field[:2] for field in fields],
        bases=(record,),
        rename={name: bound.name for name, bound in bounds.items() if bound.name},
        namespace={"__doc__": record.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    return _NARROWED.setdefault((record, suffix), made)


def _bounded(hint: Any, bound: Bounds) -> Any:
    """A field's type without None, with other bounds and its own description."""
    from typing import Annotated

    field = field_type(hint)
    kind = field.kind
    if bound.items is not None:
        item = get_args(kind)[0]
        kind = tuple[Annotated[item, bound.items], ...]  # type: ignore[valid-type]
    limits = {name: getattr(bound.meta, name) for name in _BOUNDS} if bound.meta else {}
    meta = {name: value for name, value in limits.items() if value is not None}
    if field.description:
        meta["description"] = field.description
    return Annotated[kind, Meta(**meta)] if meta else kind


@functools.cache
def schema_of(record: type[Struct], without: tuple[str, ...] = ()) -> bytes:
    """A record's JSON Schema, the record itself at its top and what it refers to beside it."""
    schema = msgspec.json.schema(record)
    others = schema["$defs"]
    top = others.pop(record.__name__)
    for name in without:
        del top["properties"][name]
    top["title"] = record.__name__.removesuffix(_BY_AGENTS)
    return msgspec.json.encode({**top, **({"$defs": others} if others else {})}, order="sorted")


class FieldType(Struct, frozen=True):
    """The type of a request's field, and what its `Meta`s say; an outer one says it louder."""

    kind: Any
    """Without None and without any Meta."""
    description: str
    extra: Mapping[str, Any]
    metas: tuple[Meta, ...]
    """The outer last."""

    def bound(self, name: str) -> Any:
        """The value of a bound; None where there is none."""
        values = [value for meta in self.metas if (value := getattr(meta, name)) is not None]
        return values[-1] if values else None


def field_type(hint: Any) -> FieldType:
    """Take a field's annotation apart."""
    metas: list[Meta] = []
    while True:
        if outer := getattr(hint, "__metadata__", ()):
            metas = [*outer, *metas]
            hint = hint.__origin__
        elif type(None) in get_args(hint) and len(get_args(hint)) == 2:
            (hint,) = (part for part in get_args(hint) if part is not type(None))
        else:
            break
    extra: dict[str, Any] = {}
    description = ""
    for meta in metas:
        extra |= meta.extra or {}
        description = meta.description or description
    return FieldType(hint, description, extra, tuple(metas))


def request_from(
    request: type[_R],
    values: Mapping[str, Any],
    shown: Callable[[str, Mapping[str, Any]], str],
) -> _R:
    """A request of the values of its fields. Raises UsageError for what they do not take.

    `shown` is what the caller calls a field, by its name and the `extra` of its Metas.
    """
    try:
        return convert(values, request)
    except msgspec.ValidationError as error:
        what, _, path = wrong_value(request, error).partition(_PLACE)
        name = re.split(r"[^a-z_]", path)[0]
        hint = get_type_hints(request, include_extras=True).get(name)
        extra = field_type(hint).extra if hint else {}
        raise UsageError(f"{shown(name, extra)}: {what}" if name else what) from error


def wrong_value(
    record: type[Struct],
    error: msgspec.ValidationError,
    told: Callable[[], Iterable[str]] | None = None,
) -> str:
    """The error, with its place; by what the field expects where that is said, not by a pattern.

    Of an unknown field with the one that was meant, among those that the caller is `told` of, or
    else all.
    """
    what, at, path = str(error).partition(_PLACE)
    _, is_unknown, unknown = what.partition("unknown field `")
    if is_unknown and not at:
        every = [field.encode_name for field in msgspec.structs.fields(record)]
        return what + meant_by(unknown.removesuffix("`"), every if told is None else told())
    name = re.split(r"[^a-z_]", path)[0]
    names = {field.encode_name: field.name for field in msgspec.structs.fields(record)}
    if not at or name not in names:
        return str(error)
    field = field_type(get_type_hints(record, include_extras=True)[names[name]])
    choices = choices_of(field.kind) if what.startswith("Invalid enum value") else ()
    listed = f"; it is one of {', '.join(map(str, choices))}" if choices else ""
    return f"{field.extra.get('expects', what)}{listed}{at}{path}"


def meant_by(unknown: str, known: Iterable[str], *, are: str = "fields") -> str:
    """Which of the known names was meant by an unknown one; where none is near, all of them."""
    import difflib

    known = tuple(known)
    near = difflib.get_close_matches(unknown, known, n=1, cutoff=_NEAR)
    return f"; did you mean `{near[0]}`?" if near else f". The {are} are {', '.join(known)}"


def choices_of(kind: Any) -> tuple[Any, ...]:
    """The values of a Literal or of several, or those of each element of a tuple; else none."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    if get_origin(kind) is tuple:
        return choices_of(field_type(get_args(kind)[0]).kind)
    if get_origin(kind) in (Union, types.UnionType):
        each = [choices_of(arg) for arg in get_args(kind)]
        return tuple(word for words in each for word in words) if all(each) else ()
    return ()


def parameter_of(hint: Any, name: str) -> str:
    """What a field is called in an address: a list of `tags` is given as `tag`."""
    return str(field_type(hint).extra.get("parameter", name))


@functools.cache
def parameters(record: type[Struct]) -> tuple[tuple[str, str], ...]:
    """Names in an address and the fields they stand for, of those that differ."""
    hints = get_type_hints(record, include_extras=True)
    pairs = ((parameter_of(hint, name), name) for name, hint in hints.items())
    return tuple((shown, name) for shown, name in pairs if shown != name)
