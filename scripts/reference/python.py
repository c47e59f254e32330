"""The page of the library, from its signatures and docstrings."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import kb
from reference.markdown import page, part, type_name


def pages() -> Iterator[tuple[str, str]]:
    """The one page."""
    blocks = [*_function("kb.open", kb.open), "## `kb.Home`", _text(kb.Home)]
    for name, member in vars(kb.Home).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            blocks += [f"### `Home.{name}`", _text(member.fget)]
        elif inspect.isfunction(member):
            blocks += _function(f"Home.{name}", member, "###")
    blocks += ["## `kb.errors`", "[Exit codes](exit-codes.md) lists every error."]
    yield "python.md", page("Python API", part("python"), *blocks)


def _function(name: str, found: Any, level: str = "##") -> list[str]:
    shown = re.sub(r"\(self(, )?", "(", str(inspect.signature(found)))
    shown = shown.replace("collections.abc.", "")
    shown = shown.replace("typing.", "").replace("'", "")
    shown = re.sub(r"\bkb\.[a-z_.]+\.(?=[A-Z])", "", shown)
    shown = re.sub(r"\*<class (\w+)>", r"Unpack[\1]", shown)
    code = f"```text\n{name}{shown}\n```"
    return [f"{level} `{name}`", code, _text(found), _keywords(found)]


def _keywords(found: Any) -> str:
    """The keywords of a method that takes those of a request, with their types."""
    taken = found.__annotations__.get("keywords")
    if taken is None:
        return ""
    (record,) = get_args(taken)
    hints = get_type_hints(record)
    return "**Keywords**\n\n" + "\n".join(f"- `{n}`: {type_name(h)}" for n, h in hints.items())


def _text(found: Any) -> str:
    lines = []
    for line in (inspect.getdoc(found) or "").splitlines():
        match = re.match(r"    ([\w.*, ]+): (.*)", line)
        if re.fullmatch(r"(Args|Raises|Returns|Yields|Keywords):", line):
            lines += [f"**{line[:-1]}**", ""]
        elif match:
            lines.append(f"- `{match[1]}`: {match[2]}")
        else:
            lines.append("  " + line.strip() if line.startswith("        ") else line.strip())
    return "\n".join(lines).strip()
