"""Sends one HTTP request to a model's server; limits the body and words the errors."""

import contextlib
import functools
import logging
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from kb import __version__
from kb.errors import LlmError
from kb.intake.model_server.alarm import Alarm
from kb.intake.model_server.peer import Peer
from kb.model.clock import Clock
from kb.model.deadline import Deadline
from kb.model.decoding import decode_json
from kb.model.retry_after import retry_after_s

if TYPE_CHECKING:
    import ssl

    import httpx

BODY_BYTES_MAX: Final = 8 << 20
_CONNECT_S: Final = 10.0
_ERROR_BYTES_MAX: Final = 64 << 10
_NO_PERMISSION: Final = frozenset((401, 403))


class _ErrorObject(msgspec.Struct, frozen=True, kw_only=True):
    """An error's message, where its `error` is an object."""

    message: str = ""


class _ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    error: _ErrorObject | str = ""


class ModelHttpClient:
    """Posts to one URL, without redirects, proxies, cookies, compression or kept connections."""

    def __init__(self, peer: Peer, url: str, *, timeout_s: float, clock: Clock) -> None:
        self._peer = peer
        self._url = url
        self._timeout_s = timeout_s
        self._clock = clock
        _hush()

    def post(
        self,
        payload: Mapping[str, object],
        headers: Mapping[str, str],
        mimes: frozenset[str],
        deadline: Deadline,
    ) -> Generator[bytes, None, None]:
        """The body of the answer in parts, at most BODY_BYTES_MAX of it; close it to hang up.

        Raises ModelUnavailable (the network, the deadline, 429, 5xx), ModelRejected (other 4xx,
        redirects, a certificate that does not hold) and BadAnswer (too much, packed, of another
        type than `mimes`).
        """
        import httpx

        try:
            left_s = deadline.left_s()
        except TimeoutError:
            raise self._too_late(deadline) from None
        with Alarm(left_s) as alarm:
            failure = None
            try:
                yield from self._parts(payload, headers, mimes, left_s, alarm)
            except httpx.HTTPError as error:
                failure = self._failure(error)
        # Raised outside the handler: the client's error holds the request, and must not be chained.
        if alarm.rang:
            failure = self._too_late(deadline)
        if failure is not None:
            raise failure

    def _parts(
        self,
        payload: Mapping[str, object],
        headers: Mapping[str, str],
        mimes: frozenset[str],
        left_s: float,
        alarm: Alarm,
    ) -> Iterator[bytes]:
        import httpx

        wait_s = min(self._timeout_s, left_s)
        request_headers = {
            "user-agent": f"kb/{__version__}",
            "accept": ", ".join(sorted(mimes)),
            "accept-encoding": "identity",
            "content-type": "application/json",
            **headers,
        }
        with (
            httpx.Client(
                timeout=httpx.Timeout(wait_s, connect=min(_CONNECT_S, wait_s)),
                verify=_tls(),
                trust_env=False,
                follow_redirects=False,
            ) as client,
            client.stream(
                "POST",
                self._url,
                content=msgspec.json.encode(payload),
                headers=request_headers,
                extensions={"trace": alarm.trace},
            ) as response,
        ):
            self._check(response, mimes)
            total = 0
            for part in response.iter_raw():
                total += len(part)
                if total > BODY_BYTES_MAX:
                    raise self._peer.bad(f"the answer is over {BODY_BYTES_MAX >> 20} MiB")
                yield part

    def _check(self, response: "httpx.Response", mimes: frozenset[str]) -> None:
        """Raise unless a body of one of these types follows; the type may be missing."""
        if response.status_code != 200:
            raise self._refusal(response)
        mime = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if mime and mime not in mimes:
            raise self._peer.bad(
                f"the answer is {self._peer.quote(mime)}, not {' or '.join(sorted(mimes))}; "
                f"check that {self._peer.section}.base_url is the address of the API"
            )
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise self._peer.bad("the answer is compressed in a way that kb did not ask for")

    def _refusal(self, response: "httpx.Response") -> LlmError:
        status = response.status_code
        message = self._message(response)
        match status:
            case 429:
                wait_s = retry_after_s(response.headers.get("retry-after"), self._clock.now_ms())
                return self._peer.unavailable(f"the server is too busy (429){message}", wait_s)
            case _ if status >= 500:
                wait_s = retry_after_s(response.headers.get("retry-after"), self._clock.now_ms())
                return self._peer.unavailable(f"the server failed ({status}){message}", wait_s)
            case _ if status in _NO_PERMISSION:
                return self._peer.rejected(
                    f"the server rejects the key ({status}){message}; "
                    "check the provider's key in the environment"
                )
            case _ if status >= 400:
                return self._peer.rejected(f"the server rejects the request ({status}){message}")
            case _ if status >= 300:
                return self._peer.rejected(
                    f"the server redirects ({status}), and kb does not follow; "
                    f"set {self._peer.section}.base_url to the API's own address"
                )
            case _:
                return self._peer.bad(f"the server gave no answer ({status})")

    def _message(self, response: "httpx.Response") -> str:
        """The error message in a response, as `: message`; empty where it cannot be read."""
        import httpx

        body = b""
        with contextlib.suppress(httpx.HTTPError):
            for part in response.iter_raw():
                body += part
                if len(body) > _ERROR_BYTES_MAX:
                    return ""
        try:
            error = decode_json(body, _ErrorBody).error
        except (ValueError, RecursionError):
            return ""
        message = self._peer.quote(error if isinstance(error, str) else error.message)
        return f": {message}" if message else ""

    def _too_late(self, deadline: Deadline) -> LlmError:
        return self._peer.unavailable(
            f"no complete answer within {deadline.total_s:g} s; "
            f"raise {self._peer.section}.timeout_s if the model is slow"
        )

    def _failure(self, error: "httpx.HTTPError") -> LlmError:
        """A network error as an error of kb, in words for a person."""
        import httpx

        match error:
            case httpx.ConnectTimeout():
                detail = "the server cannot be reached in time"
            case httpx.TimeoutException():
                detail = f"the server sent nothing for {self._timeout_s:g} s"
            case httpx.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in str(error):
                return self._peer.rejected("the server's certificate is not valid")
            case httpx.ConnectError():
                detail = "the server cannot be reached; check that it runs"
            case httpx.ProtocolError():
                detail = "the server's answer is not valid HTTP, or ends early"
            case _:
                detail = "the connection broke off"
        return self._peer.unavailable(detail)


def _hush() -> None:
    """Keep the HTTP library from logging what servers send: a header may echo the key."""
    for library in ("httpx", "httpcore"):
        logging.getLogger(library).setLevel(logging.WARNING)


@functools.cache
def _tls() -> "ssl.SSLContext":
    """Certificates are checked against the roots that come with the client."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)
