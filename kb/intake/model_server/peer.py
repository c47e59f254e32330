"""The server of a model: how errors name and quote it, and the API key that it needs."""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from kb.errors import BadAnswer, ModelRefused, ModelRejected, ModelUnavailable
from kb.model.decoding import decode_json

_T = TypeVar("_T")
QUOTE_CHARS_MAX: Final = 300
_HIDDEN: Final = "[key]"
# The names that servers give to failures that a later try may not meet.
_PASSING: Final = frozenset(
    ("overloaded_error", "api_error", "rate_limit_error", "timeout_error", "server_error")
)


class ApiKey:
    """A key that no repr shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"ApiKey({_HIDDEN})"

    def reveal(self) -> str:
        """The key, for the one header that carries it."""
        return self._value


def one_line(text: str) -> str:
    """The start of a text as messages may carry it: printable, in one line, bounded."""
    head = " ".join(text[: QUOTE_CHARS_MAX + 1].split())
    line = "".join(char if char.isprintable() else "\ufffd" for char in head)
    return line if len(text) <= QUOTE_CHARS_MAX else f"{line[:QUOTE_CHARS_MAX]}..."


class Peer:
    """A server: decodes its messages and makes the errors that name it."""

    def __init__(self, place: str, key: ApiKey | None, section: str = "llm") -> None:
        """`section` is that of the settings which name the server."""
        self.place = place
        self.key = key
        self.section = section

    def quote(self, text: str) -> str:
        """The server's text, in one bounded line, without the key."""
        return one_line(text if self.key is None else text.replace(self.key.reveal(), _HIDDEN))

    def unavailable(self, detail: str, retry_after_s: int | None = None) -> ModelUnavailable:
        """The error for a failure that a later try may not meet."""
        return ModelUnavailable(detail, retry_after_s=retry_after_s, place=self.place)

    def rejected(self, detail: str) -> ModelRejected:
        """The error for a request that the server rejects."""
        return ModelRejected(detail, place=self.place)

    def refused(self, words: str = "") -> ModelRefused:
        """The error for a model that declines, with its words if it gave any."""
        suffix = f": {self.quote(words)}" if words else "; put the question in another way"
        return ModelRefused(f"the model declined to answer{suffix}", place=self.place)

    def bad(self, detail: str) -> BadAnswer:
        """The error for an answer that cannot be used."""
        return BadAnswer(detail, place=self.place)

    def cut_short(self, advice: str) -> BadAnswer:
        """The error for an answer that reached the longest length before its end."""
        return self.bad(f"the answer was cut short because it is too long; {advice}")

    def failed(self, kind: str, message: str) -> ModelUnavailable | ModelRejected:
        """The error for a failure that the server tells of inside a stream."""
        detail = f"the server failed ({self.quote(kind or 'error')}): {self.quote(message)}"
        return self.unavailable(detail) if kind in _PASSING else self.rejected(detail)

    def decoded(self, data: bytes, kind: type[_T]) -> _T:
        """JSON as a record; raises BadAnswer, which quotes nothing of it."""
        try:
            return decode_json(data, kind)
        except msgspec.ValidationError as error:
            detail = f"the answer is not of the expected form: {error}"
        except (ValueError, RecursionError):
            detail = "the answer is not JSON"
        raise self.bad(detail)

    def all_decoded(self, messages: Iterator[bytes], kind: type[_T]) -> Iterator[_T]:
        """`decoded` of each, as they come."""
        for message in messages:
            yield self.decoded(message, kind)
