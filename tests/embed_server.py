"""A real server on loopback that makes vectors, by OpenAI's API or Ollama's, also wrongly.

`with embed_serving("ollama") as server:` starts one. Without a script it embeds by hashing, as a
good server would; `server.script` holds answers that come first. What was sent is in
`server.inputs()`, and `server.embedder()` is an embedder that asks it.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final

from fakes import FakeClock
from llm_server import KEY, Naps, answered
from loopback import Answer, Handler, LoopbackServer, Request, Route, reply, serving

from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.embed.served import ServedEmbedder
from kb.intake.model_server.address import key_in
from kb.intake.model_server.peer import Peer
from kb.intake.model_server.timing import Timing
from kb.model.embedder import EmbedderChoice, EmbedServer

PATHS: Final = {"openai": "/v1/embeddings", "ollama": "/api/embed"}
MODEL: Final = "tiny-embed:v1"


class EmbeddingServer:
    """One API at a base URL."""

    def __init__(self, api: str, server: LoopbackServer, dim: int) -> None:
        self.api = api
        self.loopback = server
        self.script: list[Route] = []
        self.answer_s = 0.0
        """How long an answer takes."""
        self.clock = FakeClock()
        self.naps = Naps(self.clock)
        self.hashing = HashingEmbedder(dim)
        server.routes[PATHS[api]] = self._next

    @property
    def base_url(self) -> str:
        return self.loopback.url("/v1" if self.api == "openai" else "").rstrip("/")

    @property
    def requests(self) -> list[Request]:
        return self.loopback.requests

    def inputs(self) -> list[list[str]]:
        """The texts of each request."""
        return [json.loads(request.body)["input"] for request in self.requests]

    def gives(self, rows: list[Any]) -> Answer:
        """An answer with these vectors; that of OpenAI's API tells them last first."""
        if self.api == "ollama":
            return answered({"model": MODEL, "embeddings": rows})
        data = [{"object": "embedding", "index": n, "embedding": r} for n, r in enumerate(rows)]
        return answered({"object": "list", "data": data[::-1], "model": MODEL})

    def embedder(
        self, *, dim: int = 0, prefixes: tuple[str, str] = ("", ""), **server: Any
    ) -> ServedEmbedder:
        """An embedder that asks this server with KEY; waits move `clock`."""
        choice = EmbedderChoice(
            kind=self.api, model=MODEL, query_prefix=prefixes[0], passage_prefix=prefixes[1]
        )
        key = key_in({"OPENAI_API_KEY": KEY}, "OPENAI_API_KEY") if self.api == "openai" else None
        peer = Peer(f"{self.api} ({self.base_url})", key, "embed")
        timing = Timing(clock=self.clock, sleep=self.naps, random=lambda: 0.5)
        settings = EmbedServer(base_url=self.base_url, dim=dim, **server)
        return ServedEmbedder(choice, settings, self.base_url, peer, timing)

    def _next(self, handler: Handler) -> None:
        self.loopback.stopping.wait(self.answer_s)
        if self.script:
            answer = self.script.pop(0)
            reply(handler, answer) if isinstance(answer, Answer) else answer(handler)
            return
        (*_, request) = self.requests
        texts = json.loads(request.body)["input"]
        if not all(text.strip() for text in texts):
            reply(handler, answered({"error": {"message": "input cannot be empty"}}, 400))
            return
        # Not of length 1, as those of some servers are not.
        reply(handler, self.gives((self.hashing.embed_documents(texts) * 3).tolist()))


@contextlib.contextmanager
def embed_serving(api: str, dim: int = 48) -> Iterator[EmbeddingServer]:
    """A running server of one of the APIs in PATHS, whose vectors have this length."""
    with serving() as server:
        yield EmbeddingServer(api, server, dim)
