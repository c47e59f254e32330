"""A model behind a server: OpenAI's API, which many servers speak, or Ollama's.

Texts leave this machine where the server is on another one, so that nothing is asked unless the
user's own settings name the server. The server's tokenizer is not here: a rule counts instead,
which rather counts too many tokens, and texts are cut by it before they are sent.
"""

import functools
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import ConfigError, EmbedError, LlmError, ModelMissing, ModelUnavailable
from kb.intake.embed.protocol import (
    ANY_SCRIPT,
    FloatMatrix,
    FloatVector,
    Span,
    checked,
    prefixes_mark,
    without_surrogates,
)
from kb.intake.model_server.address import checked_url, key_in, ollama_location
from kb.intake.model_server.peer import Peer, one_line
from kb.intake.model_server.timing import Timing
from kb.model.embedder import EmbedderChoice, EmbedServer

if TYPE_CHECKING:
    from kb.intake.model_server.http_client import ModelHttpClient
    from kb.intake.model_server.retries import Retries

_URL_PLACE: Final = "embed.base_url"
_KEY_NAME: Final = "OPENAI_API_KEY"
_MIMES: Final = frozenset(("application/json",))
_TEXTS_PER_REQUEST: Final = 32
_TRIES_OF_QUERY: Final = 2
# Servers refuse empty texts, and every text has a vector.
_FOR_BLANK: Final = "."
_CHARS_READ_PER_TOKEN: Final = 64
# Scripts without spaces, whose characters are about a token each.
_WIDE: Final = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u9fff\uac00-\ud7ff"
_TOKEN: Final = rf"[{_WIDE}]|[^\W\d_{_WIDE}]{{1,4}}|\d{{1,3}}|[^\w\s]|_"


class _OpenAiVector(Struct, frozen=True, kw_only=True):
    embedding: list[float]
    index: int | None = None


class _OpenAiVectors(Struct, frozen=True, kw_only=True):
    data: list[_OpenAiVector]


class _OllamaVectors(Struct, frozen=True, kw_only=True):
    embeddings: list[list[float]]


class _OpenAiApi:
    """POST /embeddings below the base URL."""

    path = "/embeddings"
    options: Final = {"encoding_format": "float"}

    @staticmethod
    def rows(peer: Peer, body: bytes) -> list[list[float]]:
        """The vectors by their index, or in their order where none has one."""
        data = peer.decoded(body, _OpenAiVectors).data
        places = [n if row.index is None else row.index for n, row in enumerate(data)]
        if sorted(places) != list(range(len(data))):
            raise peer.bad("the answer does not say which vector is of which text")
        return [data[places.index(n)].embedding for n in range(len(data))]


class _OllamaApi:
    """POST /api/embed below the base URL."""

    path = "/api/embed"
    options: Final[dict[str, str]] = {}

    @staticmethod
    def rows(peer: Peer, body: bytes) -> list[list[float]]:
        """The vectors in their order."""
        return peer.decoded(body, _OllamaVectors).embeddings


def make(
    choice: EmbedderChoice, server: EmbedServer, env: Mapping[str, str] | None = None
) -> "ServedEmbedder":
    """The model of a choice of kind `openai` or `ollama`; nothing is asked yet.

    OPENAI_API_KEY and OLLAMA_HOST are read from `env`, by default the process's. Raises
    ModelMissing where the choice names no model, the settings no server, or a URL or key that
    cannot be used; no message holds a key.
    """
    env = os.environ if env is None else env
    if not choice.model.strip():
        raise ModelMissing(
            f"{choice.kind} names no model; set it as in `kb embedder set {choice.kind}:NAME`"
        )
    try:
        key = key_in(env, _KEY_NAME) if choice.kind == "openai" else None
        if choice.kind == "openai":
            location = server.base_url, _URL_PLACE
        else:
            location = ollama_location(server.base_url, _URL_PLACE, env)
        if not location[0]:
            raise ModelMissing(
                f"no server is set up for {choice.kind}:{choice.model}; set {_URL_PLACE} in your "
                "own settings, as in https://api.openai.com/v1"
            )
        url = checked_url(*location, has_key=key is not None)
    except ConfigError as error:
        raise ModelMissing(str(error)) from None
    peer = Peer(f"{choice.kind} ({one_line(url)})", key, "embed")
    return ServedEmbedder(choice, server, url, peer)


class ServedEmbedder:
    """Asks a server for vectors, at most 32 texts at a time; satisfies `Embedder`.

    The server is asked at first for the length of its vectors, unless `server.dim` says it. An
    answer with vectors of another length is an error, so that vectors of two models never mix.
    Methods raise EmbedError after the last try.
    """

    def __init__(
        self,
        choice: EmbedderChoice,
        server: EmbedServer,
        base_url: str,
        peer: Peer,
        timing: Timing | None = None,
    ) -> None:
        self._choice = choice
        self._server = server
        self._peer = peer
        self._api = _OpenAiApi if choice.kind == "openai" else _OllamaApi
        self._url = base_url + self._api.path
        self._timing = timing or Timing()
        self._dim = server.dim
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Kind, model, length of a vector, prefixes if any; not where the server is."""
        choice = self._choice
        mark = prefixes_mark(choice.query_prefix, choice.passage_prefix)
        return f"{choice.kind}:{choice.model}:{self.dim}{mark}"

    @property
    def dim(self) -> int:
        """Length of a vector. Raises EmbedError where the server has to be asked, and fails."""
        with self._lock:
            if not self._dim:
                self._dim = len(self._answer(["length"], _TRIES_OF_QUERY)[0])
            return self._dim

    @property
    def tokens_max(self) -> int:
        """Tokens of a text that are sent, as `token_spans` counts them; the settings say it."""
        return self._server.tokens_max

    @property
    def scripts(self) -> frozenset[str]:
        """Scripts that the model reads well, as the settings say."""
        return frozenset(self._choice.scripts) or ANY_SCRIPT

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        """(len(texts), dim) float32 unit vectors."""
        return self._embed(texts, self._choice.passage_prefix, self._server.tries)

    def embed_query(self, text: str) -> FloatVector:
        """(dim,) float32 unit vector; two tries at most, since somebody waits."""
        tries = min(self._server.tries, _TRIES_OF_QUERY)
        vector: FloatVector = self._embed([text], self._choice.query_prefix, tries)[0]
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As many as `token_spans` gives."""
        return [len(spans) for spans in self.token_spans_batch(texts)]

    def token_spans(self, text: str) -> list[Span]:
        """Up to four letters of a word, up to three digits, or any other character but blanks.

        In scripts without spaces each letter is one. A text seldom has more tokens than that.
        """
        return [match.span() for match in _token_pattern().finditer(text)]

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """`token_spans` of each text."""
        return [self.token_spans(text) for text in texts]

    def _embed(self, texts: Sequence[str], prefix: str, tries: int) -> FloatMatrix:
        import numpy as np

        matrix = np.empty((len(texts), self.dim), np.float32)
        for first in range(0, len(texts), _TEXTS_PER_REQUEST):
            batch = [self._cut(prefix + t) for t in texts[first : first + _TEXTS_PER_REQUEST]]
            matrix[first : first + len(batch)] = self._unit_rows(self._answer(batch, tries))
        return checked(matrix, len(texts), self.dim)

    def _cut(self, text: str) -> str:
        """The text as it is sent: valid, not blank, and no longer than `tokens_max`."""
        text = without_surrogates(text)[: self.tokens_max * _CHARS_READ_PER_TOKEN]
        spans = self.token_spans(text)
        if not spans:
            return _FOR_BLANK
        return text[: spans[min(self.tokens_max, len(spans)) - 1][1]]

    def _unit_rows(self, rows: list[list[float]]) -> FloatMatrix:
        """The rows with length 1. Raises EmbedError for those that have no direction."""
        import numpy as np

        lengths = {len(row) for row in rows}
        if lengths != {self.dim}:
            shown = ", ".join(map(str, sorted(lengths)))
            raise EmbedError(
                f"{self._peer.place} returned vectors of length {shown}, and those of "
                f"{self._choice.model} have {self.dim} here; is it another model? "
                "`kb embedder set` takes one up"
            )
        matrix = np.asarray(rows, np.float64)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not (np.isfinite(norms).all() and (norms > 0).all()):
            raise EmbedError(f"{self._peer.place} returned a vector without a direction")
        unit_rows: FloatMatrix = (matrix / norms).astype(np.float32)
        return unit_rows

    def _answer(self, texts: Sequence[str], tries: int) -> list[list[float]]:
        """The server's vectors of a few texts, one of any length for each. Raises EmbedError."""
        try:
            rows = self._tried(texts, tries)
        except LlmError as error:
            failure = str(error)
        else:
            if len(rows) == len(texts) and all(rows):
                return rows
            failure = f"{self._peer.place} returned {len(rows)} vectors for {len(texts)} texts"
        # Outside of the handler: nothing of the exchange is chained.
        raise EmbedError(failure)

    def _tried(self, texts: Sequence[str], tries: int) -> list[list[float]]:
        from kb.intake.model_server.http_client import ModelHttpClient
        from kb.intake.model_server.retries import Retries

        timeout_s, timing = self._server.timeout_s, self._timing
        client = ModelHttpClient(self._peer, self._url, timeout_s=timeout_s, clock=timing.clock)
        retries = Retries(self._peer, tries=tries, total_s=timeout_s * tries, timing=timing)
        while True:
            try:
                body = b"".join(self._parts(client, texts, retries))
                return self._api.rows(self._peer, body)
            except ModelUnavailable as error:
                failed = error
            retries.wait(failed)

    def _parts(
        self, client: "ModelHttpClient", texts: Sequence[str], retries: "Retries"
    ) -> Iterator[bytes]:
        key = self._peer.key
        headers = {} if key is None else {"authorization": f"Bearer {key.reveal()}"}
        payload = {"model": self._choice.model, "input": list(texts), **self._api.options}
        return client.post(payload, headers, _MIMES, retries.deadline)


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    return re.compile(_TOKEN)
