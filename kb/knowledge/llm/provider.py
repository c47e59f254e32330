"""A provider over HTTP, which retries where that may help."""

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Final

from kb.errors import ModelUnavailable
from kb.intake.model_server.http_client import ModelHttpClient
from kb.intake.model_server.peer import Peer
from kb.intake.model_server.retries import Retries
from kb.intake.model_server.timing import Timing
from kb.knowledge.llm.dialect import Dialect, ModelRequest
from kb.model.config import LlmSettings
from kb.model.deadline import Deadline

_JSON: Final = frozenset(("application/json",))
_Attempt = Callable[[Deadline], Generator[str, None, None]]


class HttpProvider:
    """Asks a server; satisfies `kb.knowledge.llm.protocol.Provider`.

    A try that meets a busy or failing server, a time-out or a broken connection is followed by
    another, at most `tries` in all, within `tries` times `timeout_s`; see `Retries`.
    """

    def __init__(
        self, settings: LlmSettings, base_url: str, peer: Peer, dialect: Dialect, timing: Timing
    ) -> None:
        self.name = f"{settings.provider}:{settings.model}"
        self._settings = settings
        self._peer = peer
        self._dialect = dialect
        self._timing = timing
        self._client = ModelHttpClient(
            peer,
            base_url + dialect.path,
            timeout_s=settings.timeout_s,
            clock=timing.clock,
        )

    def complete(self, system: str, user: str) -> str:
        """The whole answer, never blank."""

        def attempt(deadline: Deadline) -> Generator[str, None, None]:
            request = self._request(system, user, streamed=False)
            yield self._dialect.answer(b"".join(self._parts(request, _JSON, deadline)))

        return "".join(self._tried(attempt))

    def stream(self, system: str, user: str) -> Iterator[str]:
        """The answer in pieces, as they come."""

        def attempt(deadline: Deadline) -> Generator[str, None, None]:
            request = self._request(system, user, streamed=True)
            mimes = self._dialect.stream_mimes
            with contextlib.closing(self._parts(request, mimes, deadline)) as parts:
                yield from self._dialect.pieces(parts)

        return self._tried(attempt)

    def _request(self, system: str, user: str, *, streamed: bool) -> ModelRequest:
        return ModelRequest(
            model=self._settings.model,
            system=_sendable(system),
            user=_sendable(user),
            answer_tokens_max=self._settings.answer_tokens_max,
            streamed=streamed,
        )

    def _parts(
        self, request: ModelRequest, mimes: frozenset[str], deadline: Deadline
    ) -> Generator[bytes, None, None]:
        key = self._peer.key
        headers = self._dialect.headers(None if key is None else key.reveal())
        return self._client.post(self._dialect.payload(request), headers, mimes, deadline)

    def _tried(self, attempt: _Attempt) -> Generator[str, None, None]:
        """The pieces of the first try that returns any."""
        tries, timeout_s = self._settings.tries, self._settings.timeout_s
        retries = Retries(self._peer, tries=tries, total_s=timeout_s * tries, timing=self._timing)
        while True:
            is_blank = True
            has_begun = False
            try:
                with contextlib.closing(attempt(retries.deadline)) as pieces:
                    for piece in pieces:
                        is_blank = is_blank and not piece.strip()
                        has_begun = True
                        yield piece
            except ModelUnavailable as error:
                if has_begun:
                    raise retries.given_up(error) from None
                failed = error
            else:
                if is_blank:
                    raise self._peer.bad("the answer is empty")
                return
            retries.wait(failed)


def _sendable(text: str) -> str:
    """The text with `?` for each lone surrogate, which no UTF-8 can carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
