"""The options of a command, as the request of its operation has them."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args, get_origin

import click
import msgspec
from msgspec import Struct

from kb.errors import UsageError
from kb_cli.words import text

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R", bound=Struct)


def request_options(
    request: type[Struct], *names: str, metavars: "dict[str, str] | None" = None
) -> Callable[[_F], _F]:
    """Give a command an option for each of these fields, in this order.

    A field that holds several values may be repeated, and one of a few words is a choice. Bounds,
    default and help are the field's.
    """
    from typing import get_type_hints

    hints = get_type_hints(request, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(request)}
    made = [
        _option(name, hints[name], defaults[name], (metavars or {}).get(name)) for name in names
    ]

    def give(command: _F) -> _F:
        for option in reversed(made):
            command = option(command)
        return command

    return give


def request_of(request: type[_R], **values: Any) -> _R:
    """A request of what options say. Raises UsageError for what its fields do not take."""
    try:
        return msgspec.convert(values, request)
    except msgspec.ValidationError as error:
        from typing import get_type_hints

        what, _, path = str(error).partition(" - at `$.")
        name = re.split(r"[^a-z_]", path)[0]
        hint = get_type_hints(request, include_extras=True).get(name)
        extras = [meta.extra or {} for meta in _plain(hint)[1]] if hint else []
        what = next((extra["expects"] for extra in extras if "expects" in extra), what)
        raise UsageError(f"--{_flag(name, extras)}: {what}" if name else what) from error


def _flag(name: str, extras: Sequence[dict[str, Any]]) -> str:
    for extra in extras:
        name = extra.get("option") or extra.get("parameter") or name
    return str(name).replace("_", "-")


def _option(
    name: str, hint: Any, default: Any, metavar: str | None
) -> Callable[[Callable[..., Any]], Any]:
    help_text = ""
    bounds: dict[str, Any] = {}
    kind, metas = _plain(hint)
    for meta in metas:
        extra = meta.extra or {}
        help_text = extra.get("help") or meta.description or help_text
        bounds |= {key: value for key in ("ge", "le") if (value := getattr(meta, key)) is not None}
    said: dict[str, Any] = {"help": help_text}
    if metavar is not None:
        said["metavar"] = metavar
    if get_origin(kind) is tuple:
        said |= {"multiple": True, "type": _type_of(_plain(get_args(kind)[0])[0], {})}
    elif kind is bool:
        said["is_flag"] = True
    else:
        said |= {"type": _type_of(kind, bounds), "default": default}
        said["show_default"] = default not in (None, 0.0)
    flag = _flag(name, [meta.extra or {} for meta in metas])
    dashes = "-" if len(flag) == 1 else "--"
    return click.option(f"{dashes}{flag}", name, **said)


def _plain(hint: Any) -> tuple[Any, list[Any]]:
    """A field's type without None and without what is said of it; and that, the outer last."""
    metas = list(getattr(hint, "__metadata__", ()))
    if metas:
        kind, inner = _plain(hint.__origin__)
        return kind, [*inner, *metas]
    parts: Sequence[Any] = [part for part in get_args(hint) if part is not type(None)]
    if len(parts) == 1 and type(None) in get_args(hint):
        return _plain(parts[0])
    return hint, []


def _type_of(kind: Any, bounds: dict[str, Any]) -> Any:
    words = get_args(kind)
    if words and all(isinstance(word, str) for word in words):
        return click.Choice(words)
    if kind is int:
        most = bounds.get("le")
        return click.IntRange(bounds.get("ge"), most if most and most < 1 << 60 else None)
    if kind is float:
        return click.FloatRange(bounds.get("ge"), bounds.get("le"))
    return text
