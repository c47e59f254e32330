"""Whom does a code mean? Exports of a chat name people and channels in a file of their own."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, structs

from kb.intake.canonicalize.title import one_line
from kb.model.decoding import decode_json
from kb.model.text import Canonical

NAMING_FILES: Final = ("users.json", "channels.json", "groups.json")
"""In the folder above those of the channels; without the first one a folder is no such export."""
_CODE: Final = re.compile(r"(?<![0-9A-Za-z_/=.])[A-Z][0-9A-Z]{2,14}(?![0-9A-Za-z_/=])")
_MARK: Final = re.compile(r"<([@#!]|https?://|mailto:)([^<>|\s]{0,2000})(?:\|([^<>\n]{0,500}))?>")
_ESCAPED: Final = re.compile(r"&(amp|lt|gt);")
_SIGNS: Final = {"amp": "&", "lt": "<", "gt": ">"}
_NAMED_MAX: Final = 200_000


class _Profile(Struct):
    real_name: str | None = None
    display_name: str | None = None


class _CodeOwner(Struct):
    id: str
    name: str | None = None
    real_name: str | None = None
    profile: _Profile | None = None


def names_in(files: Iterable[bytes]) -> dict[str, str]:
    """The names of people and channels by their codes; none of a file that names nobody."""
    names: dict[str, str] = {}
    for data in files:
        try:
            items = decode_json(data, list[_CodeOwner])
        except (msgspec.DecodeError, RecursionError):
            continue
        for item in items[:_NAMED_MAX]:
            profile = item.profile or _Profile()
            said = (item.real_name, profile.real_name, profile.display_name, item.name)
            if name := one_line(next(filter(None, said), "")):
                names.setdefault(item.id, name)
    return names


def has_codes(canonical: Canonical) -> bool:
    """Whether there may be codes in a text."""
    return _CODE.search(canonical.markdown) is not None


def with_names(canonical: Canonical, names: Mapping[str, str]) -> Canonical:
    """A text with names for the codes that are known."""
    markdown = _CODE.sub(lambda code: names.get(code[0], code[0]), canonical.markdown)
    return structs.replace(canonical, markdown=markdown)


def without_marks(text: str) -> str:
    """The text of a message whose people, channels and links stand in angle brackets."""
    text = _MARK.sub(_said, text)
    return _ESCAPED.sub(lambda sign: _SIGNS[sign[1]], text)


def _said(mark: re.Match[str]) -> str:
    sign, what, shown = mark[1], mark[2], mark[3] or ""
    match sign:
        case "@" | "#":
            return f"{sign}{shown or what}"
        case "!":
            # Such as `<!here>`, `<!subteam^S1|@team>` and `<!date^1^{date}|Monday>`.
            return shown or f"@{what.partition('^')[0]}"
        case "mailto:":
            return shown or what
        case _:
            address = f"{sign}{what}"
            return address if not shown or shown in address else f"[{shown}]({address})"
