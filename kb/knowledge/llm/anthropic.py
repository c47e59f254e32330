"""The API of Anthropic: one message of blocks, or server-sent events."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.intake.model_server.peer import Peer
from kb.knowledge.llm.dialect import ModelRequest
from kb.knowledge.llm.framing import event_data

_VERSION: Final = "2023-06-01"
_ADVICE: Final = {
    "max_tokens": "raise llm.answer_tokens_max",
    "model_context_window_exceeded": "ask with less text",
}


class _Block(Struct, frozen=True, kw_only=True):
    type: str
    text: str = ""


class _AnthropicAnswer(Struct, frozen=True, kw_only=True):
    content: list[_Block]
    stop_reason: str | None = None


class _Delta(Struct, frozen=True, kw_only=True):
    type: str = ""
    text: str = ""
    stop_reason: str | None = None


class _AnthropicError(Struct, frozen=True, kw_only=True):
    type: str = ""
    message: str = ""


class _Event(Struct, frozen=True, kw_only=True):
    type: str
    delta: _Delta | None = None
    error: _AnthropicError | None = None


class Anthropic:
    """POST /v1/messages."""

    path = "/v1/messages"
    stream_mimes = frozenset(("text/event-stream",))

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def headers(self, key: str | None) -> dict[str, str]:
        """The key, and the version of the API that is spoken here."""
        version = {"anthropic-version": _VERSION}
        return version if key is None else {"x-api-key": key, **version}

    def payload(self, request: ModelRequest) -> dict[str, object]:
        """System stands beside the messages; `max_tokens` has to be said."""
        streamed = {"stream": True} if request.streamed else {}
        return {
            "model": request.model,
            "max_tokens": request.answer_tokens_max,
            "system": request.system,
            "messages": [{"role": "user", "content": request.user}],
            **streamed,
        }

    def answer(self, body: bytes) -> str:
        """The text blocks, joined; other blocks are passed over."""
        decoded = self._peer.decoded(body, _AnthropicAnswer)
        self._check_end(decoded.stop_reason)
        return "".join(block.text for block in decoded.content if block.type == "text")

    def pieces(self, parts: Iterator[bytes]) -> Iterator[str]:
        """The text of each delta, up to the event that ends the message."""
        for event in self._peer.all_decoded(event_data(parts), _Event):
            match event:
                case _Event(type="content_block_delta", delta=_Delta(type="text_delta", text=text)):
                    if text:
                        yield text
                case _Event(type="message_delta", delta=_Delta(stop_reason=reason)):
                    self._check_end(reason)
                case _Event(type="error"):
                    error = event.error or _AnthropicError()
                    raise self._peer.failed(error.type, error.message)
                case _Event(type="message_stop"):
                    return
        raise self._peer.unavailable("the answer broke off")

    def _check_end(self, reason: str | None) -> None:
        if reason == "refusal":
            raise self._peer.refused()
        if reason in _ADVICE:
            raise self._peer.cut_short(_ADVICE[reason])
