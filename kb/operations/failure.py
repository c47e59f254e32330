"""What a tool says instead of an answer: an error with a code, never a traceback."""

import re
from typing import Final, Literal

from msgspec import Struct

from kb.errors import (
    AmbiguousId,
    KbError,
    NotFound,
    StoreBehind,
    StoreBusy,
    StoreDamaged,
    UsageError,
)
from kb.model.doc import Scope

ErrorCode = Literal[
    "unknown_tool",
    "invalid_input",
    "not_found",
    "ambiguous_id",
    "forbidden",
    "busy",
    "behind",
    "damaged",
    "unavailable",
]

_MESSAGE_CHARS_MAX: Final = 500
_FIELD: Final = re.compile(r"(?:at `\$\.?|field `)([^`\[\].]*)")

# Causes and places are for the person at the machine: they may tell of what a caller may not see.
_FIXED: Final[dict[ErrorCode, str]] = {
    "busy": "the store is in use; try again in a moment",
    "behind": "the transaction that was asked for is not here yet; try again in a moment",
    "damaged": "the store is damaged; ask its owner to run `kb check`",
    "unavailable": "no answer can be given at the moment",
}


class ToolError(Struct, frozen=True, kw_only=True):
    """What was wrong with a call."""

    code: ErrorCode
    message: str
    field: str | None = None
    """The field of the input that is at fault, where it is one."""


class Failed(Struct, frozen=True, kw_only=True):
    """An answer that is an error; no other answer has a field of that name."""

    error: ToolError


def failed(code: ErrorCode, message: str) -> Failed:
    """An error, the message kept short; an invalid input names its field if the message does."""
    field_match = _FIELD.search(message) if code == "invalid_input" else None
    field = field_match[1][:_MESSAGE_CHARS_MAX] if field_match and field_match[1] else None
    shown = message[:_MESSAGE_CHARS_MAX].encode("utf-8", "replace").decode()
    return Failed(error=ToolError(code=code, message=shown, field=field))


def failed_by(error: KbError, scope: Scope) -> Failed:
    """What a scope is told of an error: only an operator hears of causes and places."""
    code = _code_of(error)
    if code == "not_found":
        near = error.fields.get("near")
        meant = f"; did you mean {near}?" if near else ""
        return failed(code, f"nothing here has the id {error.fields['id']}{meant}")
    if code in _FIXED and not scope.operator:
        return failed(code, _FIXED[code])
    return failed(code, str(error))


def _code_of(error: KbError) -> ErrorCode:
    match error:
        case NotFound():
            return "not_found"
        case AmbiguousId():
            return "ambiguous_id"
        case UsageError():
            return "invalid_input"
        case StoreBehind():
            return "behind"
        case StoreBusy():
            return "busy"
        case StoreDamaged():
            return "damaged"
        case _:
            return "unavailable"
