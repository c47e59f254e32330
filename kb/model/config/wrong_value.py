"""What a setting takes, in plain words, for whoever gave it something else."""

import re
import types
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

_VALUE_CHARS: Final = 60
_HIDDEN: Final = "token"


def sentence_of(record: Any, table: Any, names: Sequence[str], key: str) -> str | None:
    """What the setting `key` must be, and what it is; None if nothing is known of it.

    `names` lead from `table`, which is to be a `record`, to the value: names of fields, each with
    the `[...]` of an element behind it. Secrets are not shown.
    """
    hint: Any = record
    value = table
    for part in names:
        name, *indexes = part.replace("[", "\0[").split("\0")
        hint = _bare(hint)[0]
        if not (isinstance(hint, type) and issubclass(hint, Struct)):
            return None
        hint = get_type_hints(hint, include_extras=True).get(name)
        value = value.get(name) if isinstance(value, dict) else None
        for index in indexes:
            hint = get_args(_bare(hint)[0])[0]
            number = index[1:-1]
            value = value[int(number)] if value and number.isdigit() else None
    expected = expected_of(hint)
    if not expected:
        return None
    shown = "" if names and names[-1] == _HIDDEN else f", not {_shown(value)}"
    return f"{key} must be {expected}{shown}"


def expected_of(hint: Any) -> str:
    """What values of a type are, such as "a whole number from 1 to 64"; empty where unknown."""
    kind, metas = _bare(hint)
    said = next((meta.description for meta in metas if meta.description), "")
    if said:
        return said
    if kind is bool:
        return "true or false"
    if kind is int:
        return f"a whole number{_range(metas)}"
    if kind is float:
        return f"a number{_range(metas)}"
    if kind is str:
        return f"text{_longest(metas, 'characters')}"
    if get_origin(kind) is Literal:
        words = [str(word) for word in get_args(kind)]
        return " or ".join([", ".join(words[:-1]), words[-1]]) if words[1:] else words[0]
    if get_origin(kind) is tuple:
        return f'a list{_longest(metas, "elements")}, such as ["...", "..."]'
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "a table of settings"
    return ""


def _bare(hint: Any) -> tuple[Any, tuple[Meta, ...]]:
    """A type without its Metas and without None, and the Metas."""
    metas: tuple[Meta, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            metas += tuple(meta for meta in more if isinstance(meta, Meta))
        elif get_origin(hint) in (Union, types.UnionType):
            hint = next(arg for arg in get_args(hint) if arg is not type(None))
        else:
            return hint, metas


def _range(metas: tuple[Meta, ...]) -> str:
    for meta in metas:
        if meta.ge is not None and meta.le is not None:
            return f" from {_number(meta.ge)} to {_number(meta.le)}"
        if meta.gt is not None and meta.le is not None:
            return f" above {_number(meta.gt)} and at most {_number(meta.le)}"
        if meta.ge is not None:
            return f" of at least {_number(meta.ge)}"
    return ""


def _number(bound: float) -> str:
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:g}"


def _longest(metas: tuple[Meta, ...], noun: str) -> str:
    longest = next((meta.max_length for meta in metas if meta.max_length is not None), None)
    return f" of at most {longest:,} {noun}" if longest is not None else ""


def _shown(value: Any) -> str:
    """A value as a person writes it, shortened, and without a password in an address."""
    text = f"'{value}'" if isinstance(value, str) else _json(value)
    text = without_password(text)
    return text if len(text) <= _VALUE_CHARS else f"{text[: _VALUE_CHARS - 1]}…"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=repr).decode()


def without_password(text: str) -> str:
    """A text whose addresses name no user and no password."""
    return re.sub(r"(?<=://)[^/@\s]*@", "***@", text)
