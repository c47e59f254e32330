"""The API of OpenAI, which many servers speak: one completion, or server-sent events."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.intake.model_server.peer import Peer
from kb.knowledge.llm.dialect import ModelRequest
from kb.knowledge.llm.framing import event_data

_END: Final = b"[DONE]"
_ADVICE: Final = "ask for less, or with less text"


class _OpenAiMessage(Struct, frozen=True, kw_only=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(Struct, frozen=True, kw_only=True):
    message: _OpenAiMessage
    finish_reason: str | None = None


class _OpenAiAnswer(Struct, frozen=True, kw_only=True):
    choices: list[_Choice]


class _Part(Struct, frozen=True, kw_only=True):
    delta: _OpenAiMessage = _OpenAiMessage()
    finish_reason: str | None = None


class _OpenAiError(Struct, frozen=True, kw_only=True):
    message: str = ""
    type: str | None = None


class _Chunk(Struct, frozen=True, kw_only=True):
    choices: tuple[_Part, ...] = ()
    error: _OpenAiError | None = None


class OpenAi:
    """POST /chat/completions."""

    path = "/chat/completions"
    stream_mimes = frozenset(("text/event-stream",))

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def headers(self, key: str | None) -> dict[str, str]:
        """The key, where there is one: servers of one's own often want none."""
        return {} if key is None else {"authorization": f"Bearer {key}"}

    def payload(self, request: ModelRequest) -> dict[str, object]:
        """System and user are messages alike."""
        streamed = {"stream": True} if request.streamed else {}
        return {
            "model": request.model,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            **streamed,
        }

    def answer(self, body: bytes) -> str:
        """The content of the first choice."""
        decoded = self._peer.decoded(body, _OpenAiAnswer)
        if not decoded.choices:
            raise self._peer.bad("the answer has no choices")
        first = decoded.choices[0]
        if first.message.refusal:
            raise self._peer.refused(first.message.refusal)
        self._check_end(first.finish_reason)
        return first.message.content or ""

    def pieces(self, parts: Iterator[bytes]) -> Iterator[str]:
        """The content of each chunk's first choice, up to the end or the reason for it."""
        refusal: list[str] = []
        is_finished = False
        for data in event_data(parts):
            if data == _END:
                is_finished = True
                break
            chunk = self._peer.decoded(data, _Chunk)
            if chunk.error is not None:
                raise self._peer.failed(chunk.error.type or "", chunk.error.message)
            for part in chunk.choices[:1]:
                refusal.append(part.delta.refusal or "")
                if part.delta.content:
                    yield part.delta.content
                self._check_end(part.finish_reason)
                is_finished = is_finished or part.finish_reason is not None
        if any(refusal):
            raise self._peer.refused("".join(refusal))
        if not is_finished:
            raise self._peer.unavailable("the answer broke off")

    def _check_end(self, reason: str | None) -> None:
        if reason == "content_filter":
            raise self._peer.refused()
        if reason == "length":
            raise self._peer.cut_short(_ADVICE)
