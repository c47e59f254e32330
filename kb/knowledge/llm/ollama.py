"""The API of Ollama: one JSON message, or one to a line."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.intake.model_server.peer import Peer
from kb.knowledge.llm.dialect import ModelRequest
from kb.knowledge.llm.framing import json_lines

_ADVICE: Final = "give the model a larger context"


class _OllamaMessage(Struct, frozen=True, kw_only=True):
    content: str


class _OllamaAnswer(Struct, frozen=True, kw_only=True):
    message: _OllamaMessage
    done_reason: str | None = None


class _Line(Struct, frozen=True, kw_only=True):
    message: _OllamaMessage | None = None
    done: bool = False
    done_reason: str | None = None
    error: str | None = None


class Ollama:
    """POST /api/chat."""

    path = "/api/chat"
    stream_mimes = frozenset(("application/x-ndjson", "application/ndjson", "application/json"))

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def headers(self, key: str | None) -> dict[str, str]:  # noqa: ARG002  it knows no keys
        """None of its own."""
        return {}

    def payload(self, request: ModelRequest) -> dict[str, object]:
        """System and user are messages alike."""
        return {
            "model": request.model,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            "stream": request.streamed,
        }

    def answer(self, body: bytes) -> str:
        """The message's content."""
        decoded = self._peer.decoded(body, _OllamaAnswer)
        self._check_end(decoded.done_reason)
        return decoded.message.content

    def pieces(self, parts: Iterator[bytes]) -> Iterator[str]:
        """The content of each line, up to the one that says it is done."""
        for line in self._peer.all_decoded(json_lines(parts), _Line):
            if line.error is not None:
                raise self._peer.failed("server_error", line.error)
            if line.message is not None and line.message.content:
                yield line.message.content
            if line.done:
                self._check_end(line.done_reason)
                return
        raise self._peer.unavailable("the answer broke off")

    def _check_end(self, reason: str | None) -> None:
        if reason == "length":
            raise self._peer.cut_short(_ADVICE)
