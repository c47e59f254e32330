"""The differences between the APIs of servers."""

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct


class ModelRequest(Struct, frozen=True, kw_only=True):
    """What is sent to a model, whatever the API."""

    model: str
    system: str
    user: str
    answer_tokens_max: int
    streamed: bool


class Dialect(Protocol):
    """One API. Errors are those that `Provider` names."""

    @property
    def path(self) -> str:
        """Where questions go, below the base URL; begins with `/`."""
        ...

    @property
    def stream_mimes(self) -> frozenset[str]:
        """The types that an answer in pieces may have; a whole one is JSON."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers that this API needs besides the usual ones."""
        ...

    def payload(self, request: ModelRequest) -> dict[str, object]:
        """The request's JSON body for this API."""
        ...

    def answer(self, body: bytes) -> str:
        """The text of a whole answer; empty where it has none."""
        ...

    def pieces(self, parts: Iterator[bytes]) -> Iterator[str]:
        """The text of an answer as it comes; raises ModelUnavailable where its end is missing."""
        ...
