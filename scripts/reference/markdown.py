"""Pieces of markdown that every page of the reference is made of."""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
OUT: Final = ROOT / "docs" / "reference"
PARTS: Final = OUT / "parts"
"""Texts for which the code's own descriptions are too short; a page includes them."""
NOTE: Final = "<!-- `make reference` writes this page from the code. -->"


def part(name: str) -> str:
    """A text of PARTS; empty if there is none."""
    path = PARTS / f"{name}.md"
    return path.read_text("utf-8").strip() if path.exists() else ""


def page(title: str, *blocks: str) -> str:
    """A page with its title and its blocks, an empty line between any two."""
    return "\n\n".join(text for text in (NOTE, f"# {title}", *blocks) if text) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; empty without rows."""
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
    columns = list(head)
    rule = "|" + "---|" * len(columns)
    return "\n".join(["| " + " | ".join(columns) + " |", rule, *lines]) if lines else ""


def flat(text: str | None) -> str:
    """A text on one line, in the word that people read: the code's chunk is a passage."""
    return re.sub(
        r"(?<![\w`./])(c|C)hunk(?=s?\b(?![._`]))", _passage, " ".join((text or "").split())
    )


def _passage(found: re.Match[str]) -> str:
    return "passage" if found[1] == "c" else "Passage"


def said_of(schema: Mapping[str, Any], records: Mapping[str, Any] = MappingProxyType({})) -> str:
    """What a JSON Schema says of a field: its description, its values, its default."""
    inner = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    shown = {**(inner[0] if inner else {}), **schema}
    if "$ref" in shown:
        shown = {**records.get(shown["$ref"].rpartition("/")[2], {}), **shown}
    texts = [flat(shown.get("description"))]
    if "enum" in shown:
        texts.append("One of " + ", ".join(f"`{value}`" for value in shown["enum"]) + ".")
    if shown.get("default") not in (None, [], "", False):
        texts.append(f"Default: `{json.dumps(shown['default'])}`.")
    return " ".join(filter(None, texts))


def slug(title: str) -> str:
    """A title as the name of a page."""
    return title.lower().replace(" ", "-")


def meanings(record: type[Any]) -> Mapping[str, str]:
    """What the strings under the fields of a class say, by field, its bases' included."""
    texts: dict[str, str] = {}
    for owner in reversed(record.__mro__):
        try:
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        except (OSError, TypeError, SyntaxError):
            continue
        assert isinstance(node, ast.ClassDef)
        for field, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                match after:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        texts[field.target.id] = flat(text)
                    case _:
                        pass
    return texts


def type_name(hint: Any) -> str:
    """A type as a reader of JSON would call it."""
    import types
    import typing

    if origin := typing.get_origin(hint):
        arguments = typing.get_args(hint)
        if origin is typing.Annotated:
            return type_name(arguments[0])
        if origin is typing.Literal:
            return ", ".join(f"`{value}`" for value in arguments)
        if origin in (typing.Union, types.UnionType):
            return " or ".join(dict.fromkeys(type_name(one) for one in arguments))
        inner = [type_name(one) for one in arguments if one is not Ellipsis]
        if origin in (tuple, list, frozenset, set, Sequence):
            return "list of " + " or ".join(dict.fromkeys(inner))
        return "object of " + inner[-1]
    if hasattr(hint, "__supertype__"):
        return type_name(hint.__supertype__)
    if isinstance(hint, typing.TypeAliasType) if hasattr(typing, "TypeAliasType") else False:
        return type_name(hint.__value__)
    plain = {str: "text", int: "number", float: "number", bool: "true or false"}
    plain |= {type(None): "null", dict: "object", bytes: "text", list: "list"}
    return (
        plain.get(hint) or re.sub(r"(?<!^)(?=[A-Z])", " ", getattr(hint, "__name__", "any")).lower()
    )
