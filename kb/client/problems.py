"""What a server's problem is here: an error with the exit code that it has at home."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kb.errors import HeldBack, KbError, NotFound, StoreDamaged, UsageError
from kb.model.decoding import decode_json

_DETAIL_CHARS_MAX: Final = 500


class ServerError(KbError):
    """A server could not be asked, or gave no answer to work with."""

    template = "{place}: {detail}"


class NotOnServer(NotFound):
    """The server has nothing by this id, tag or path, or nothing that may be seen."""

    template = "{detail}"


class NotTaken(KbError):
    """The server will not take this one thing in; others it may."""


class TooMuch(NotTaken):
    """It is larger than the server takes."""


class ServerBusy(ServerError):
    """Others are before us; a later try may succeed."""


# By the problem's code; any other is a ServerError.
_KINDS: Final[Mapping[str, type[KbError]]] = {
    "not_found": NotOnServer,
    "ambiguous_id": UsageError,
    "invalid_input": UsageError,
    "damaged": StoreDamaged,
    "held_back": HeldBack,
    "not_taken_in": NotTaken,
    "too_large": TooMuch,
    "busy": ServerBusy,
    "behind": ServerBusy,
}
_OTHER_KB: Final = "it runs another version of kb, which cannot do this"
# What a person can do about it here.
_SAID: Final[Mapping[str, str]] = {
    "no_such_route": _OTHER_KB,
    "method_not_allowed": _OTHER_KB,
    "unauthorized": "it needs a token; set KB_TOKEN to one of its tokens",
}


class _Problem(Struct, frozen=True, kw_only=True):
    code: str
    detail: str


def error_of(status: int, data: bytes, url: str) -> KbError:
    """The error that a problem document tells of; ServerError where it is none."""
    try:
        problem = decode_json(data, _Problem)
    except (ValueError, RecursionError):
        detail = f"it answered {status}, but not as kb does; is it a kb server?"
        return ServerError(detail, place=url)
    advice = _SAID.get(problem.code, problem.detail[:_DETAIL_CHARS_MAX])
    return _KINDS.get(problem.code, ServerError)(advice, place=url)
