"""The options of a command, as the request of its operation has them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, get_args, get_origin

import click
import msgspec
from msgspec import Struct

from kb.operations.operation import FieldType, choices_of, field_type, request_from
from kb_cli.words import text

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R", bound=Struct)

# What options of one letter are called in full, as in commands that have no letter for it.
_WORDS: Final = {"k": "limit"}


def request_options(
    request: type[Struct], *names: str, metavars: Mapping[str, str] | None = None
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
    return request_from(request, values, lambda name, extra: f"--{_flag(name, extra)}")


def _flag(name: str, extra: Mapping[str, Any]) -> str:
    return str(extra.get("option") or extra.get("parameter") or name).replace("_", "-")


def _option(
    name: str, hint: Any, default: Any, metavar: str | None
) -> Callable[[Callable[..., Any]], Any]:
    field = field_type(hint)
    settings: dict[str, Any] = {"help": field.extra.get("help") or field.description}
    if metavar is not None:
        settings["metavar"] = metavar
    if get_origin(field.kind) is tuple:
        item = field_type(get_args(field.kind)[0])
        settings |= {"multiple": True, "type": _type_of(item)}
    elif field.kind is bool:
        settings |= {"is_flag": True, "default": default}
        if default is None:
            flag = _flag(name, field.extra)
            return click.option(f"--{flag}/--no-{flag}", name, **settings)
    else:
        settings |= {"type": _type_of(field), "default": default}
        settings["show_default"] = default not in (None, 0.0)
    flag = _flag(name, field.extra)
    flags = [f"-{flag}"] if len(flag) == 1 else [f"--{flag}"]
    flags += [f"--{word}" for letter, word in _WORDS.items() if letter == flag]
    return click.option(*flags, name, **settings)


def _type_of(field: FieldType) -> Any:
    if words := choices_of(field.kind):
        return click.Choice(words)
    least, most = field.bound("ge"), field.bound("le")
    if field.kind is int:
        return click.IntRange(least, most if most and most < 1 << 60 else None)
    if field.kind is float:
        return click.FloatRange(least, most)
    return text
