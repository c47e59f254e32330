"""A real server on loopback that speaks the APIs of language models, also wrongly.

`with llm_serving("ollama") as server:` starts one. `server.script` holds its answers: each request
takes the next one, the last one repeats. An answer is a `loopback.Route`; `server.says(...)`,
`server.streams(...)` and `server.fails(...)` make well-formed ones of its API. What was asked is
in `server.asked()`, and `server.provider()` is a provider that asks it.
"""

import contextlib
import json
import ssl
from collections.abc import Iterator
from typing import Any, Final

from fakes import FakeClock
from loopback import HOST, Answer, Handler, LoopbackServer, Request, Route, reply, serving

from kb.knowledge.llm import Provider, Timing, make_provider
from kb.model.config import LlmSettings

KEY: Final = "sk-test-9f8e7d6c5b4a"
MODEL: Final = "tiny-1"
PATHS: Final = {
    "ollama": "/api/chat",
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
}
KEY_NAMES: Final = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
JSON: Final = {"Content-Type": "application/json; charset=utf-8"}


class Naps:
    """Sleeps that only move a clock."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.slept_s: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self._clock.advance(round(seconds * 1000))


class LlmServer:
    """One API at a base URL."""

    def __init__(self, api: str, server: LoopbackServer) -> None:
        self.api = api
        self.loopback = server
        self.script: list[Route] = []
        self.clock = FakeClock()
        self.naps = Naps(self.clock)
        server.routes[PATHS[api]] = self._next

    @property
    def base_url(self) -> str:
        host = HOST if self.loopback.scheme == "http" else "localhost"
        return self.loopback.url("/v1" if self.api == "openai" else "/", host).rstrip("/")

    def asked(self) -> list[Any]:
        """The payloads, in order."""
        return [json.loads(request.body) for request in self.loopback.requests]

    @property
    def requests(self) -> list[Request]:
        return self.loopback.requests

    def _next(self, handler: Handler) -> None:
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Answer):
            reply(handler, answer)
        else:
            answer(handler)

    def provider(self, *, timing: Timing | None = None, **settings: Any) -> Provider:
        """A provider that asks this server with KEY; waits move `clock` unless timed otherwise."""
        said = {"provider": self.api, "model": MODEL, "base_url": self.base_url, **settings}
        env = {KEY_NAMES[self.api]: KEY} if self.api in KEY_NAMES else {}
        fake = Timing(clock=self.clock, sleep=self.naps, random=lambda: 0.5)
        return make_provider(LlmSettings(**said), env, timing or fake)

    def says(self, text: str, end: str | None = None) -> Answer:
        """A whole answer; `end` is why it ended, in the API's own word."""
        match self.api:
            case "ollama":
                said: Any = {"model": MODEL, "message": {"role": "assistant", "content": text}}
                said |= {"done": True, "done_reason": end or "stop"}
            case "anthropic":
                blocks = [{"type": "text", "text": text}] if text else []
                said = {"type": "message", "role": "assistant", "content": blocks}
                said |= {"stop_reason": end or "end_turn", "usage": {"output_tokens": 1}}
            case _:
                message = {"role": "assistant", "content": text, "refusal": None}
                choice = {"index": 0, "message": message, "finish_reason": end or "stop"}
                said = {"object": "chat.completion", "choices": [choice]}
        return answered(said)

    def streams(self, *pieces: str, end: str | None = None) -> Answer:
        """An answer in pieces."""
        return streamed(self.api, messages(self.api, pieces, end))

    def breaks_off(self, *pieces: str) -> Answer:
        """A stream that says no end."""
        ends = {"ollama": 1, "anthropic": 3, "openai": 3}
        return streamed(self.api, messages(self.api, pieces, None)[: -ends[self.api]])

    def fails(self, status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
        """An error as the API words it."""
        said: Any = {"error": message}
        if self.api != "ollama":
            said = {"type": "error", "error": {"type": "some_error", "message": message}}
        return answered(said, status, headers)


@contextlib.contextmanager
def llm_serving(api: str, tls: ssl.SSLContext | None = None) -> Iterator[LlmServer]:
    """A running server of one of the APIs in PATHS; with `tls` it is reached as localhost."""
    with serving(tls) as server:
        yield LlmServer(api, server)


def answered(said: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """A value as JSON, or bytes as they are, with the type of JSON."""
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return Answer(body, status, {**JSON, **(headers or {})})


def streamed(api: str, said: list[Any]) -> Answer:
    """Messages in the framing of an API's streams; bytes among them as they are."""
    if api == "ollama":
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in said]
        body = b"".join(line + b"\n" for line in lines)
        return Answer(body, headers={"Content-Type": "application/x-ndjson"})
    body = b": a comment\n\n"
    for one in said:
        kind = one.get("type") if isinstance(one, dict) else None
        data = one if isinstance(one, bytes) else json.dumps(one).encode()
        body += (f"event: {kind}\n".encode() if kind else b"") + b"data: " + data + b"\n\n"
    return Answer(body, headers={"Content-Type": "text/event-stream; charset=utf-8"})


def messages(api: str, pieces: tuple[str, ...], end: str | None) -> list[Any]:
    """What a stream of these pieces consists of."""
    match api:
        case "ollama":
            parts = [{"message": {"content": piece}, "done": False} for piece in pieces]
            last = {"message": {"content": ""}, "done": True, "done_reason": end or "stop"}
            return [*parts, last]
        case "anthropic":
            text = [{"type": "text_delta", "text": piece} for piece in pieces]
            return [
                {"type": "message_start", "message": {"content": [], "stop_reason": None}},
                {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
                {"type": "ping"},
                *({"type": "content_block_delta", "index": 0, "delta": one} for one in text),
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": end or "end_turn"}},
                {"type": "message_stop"},
            ]
        case _:
            deltas: list[Any] = [{"role": "assistant", "content": ""}]
            deltas += [{"content": piece} for piece in pieces]
            chunks = [{"choices": [{"delta": one, "finish_reason": None}]} for one in deltas]
            finish: Any = {"choices": [{"delta": {}, "finish_reason": end or "stop"}]}
            return [*chunks, finish, {"choices": [], "usage": {}}, b"[DONE]"]
