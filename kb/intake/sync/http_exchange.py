"""Sends one HTTP request to a checked address, under one deadline.

Import it inside functions: httpcore takes a while to load.
"""

import contextlib
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import httpcore
from msgspec import Struct

from kb.errors import Permanent, Refused, SourceError, Transient
from kb.intake.sync.weburl import WebUrl
from kb.model.deadline import Deadline

_ADDRESSES_MAX: Final = 8
_NETWORK_ERRORS: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable,
    OSError,
)


class HttpResponse(Struct, frozen=True, kw_only=True):
    """A response whose body has not been read yet."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name; the first value of each."""
    parts: Iterable[bytes]


@contextlib.contextmanager
def exchange(
    url: WebUrl,
    addresses: tuple[str, ...],
    headers: Mapping[str, str],
    *,
    connect_s: float,
    deadline: Deadline,
    tls: ssl.SSLContext | None,
    source: str,
) -> Iterator[HttpResponse]:
    """GET the URL from one of `addresses`; the connection is open within the context.

    The URL's host is used only in the Host header and to check the certificate. Proxies, cookies,
    credentials and earlier connections are not used. Network errors are raised as SourceErrors,
    also while the body is read; none quotes data from the server.
    """
    backend = _PinnedBackend(addresses, connect_s, deadline, source)
    raw_url = httpcore.URL(
        scheme=url.scheme.encode(),
        host=url.host.encode(),
        port=url.port,
        target=url.target.encode(),
    )
    sent = [("Host", url.netloc), *headers.items(), ("Connection", "close")]
    try:
        with (
            httpcore.ConnectionPool(ssl_context=tls, network_backend=backend, retries=0) as pool,
            pool.stream("GET", raw_url, headers=sent) as response,
        ):
            yield HttpResponse(
                status=response.status,
                headers=_by_name(response.headers),
                parts=response.iter_stream(),
            )
    except _NETWORK_ERRORS as error:
        raise source_error_of(error, deadline, source) from error


def source_error_of(error: BaseException, deadline: Deadline, source: str) -> SourceError:
    """The SourceError for an error of the network or of httpcore."""
    match error:
        case _ if deadline.is_over:
            detail = f"not finished within {deadline.total_s:g} s"
        case httpcore.ConnectTimeout() | httpcore.PoolTimeout():
            detail = "the server cannot be reached in time"
        case httpcore.TimeoutException() | TimeoutError():
            detail = f"not finished within {deadline.total_s:g} s"
        case httpcore.ConnectError():
            detail = "the server cannot be reached"
        case httpcore.ProtocolError():
            detail = "the server's answer is not valid HTTP, or ends early"
        case _:
            detail = "the connection broke off"
    return Transient(detail, source=source)


def _tls_error(error: BaseException | None, source: str) -> SourceError | None:
    """The SourceError for an error of the TLS handshake; None for a network error."""
    match error:
        case ssl.SSLCertVerificationError():
            reason = error.verify_message.removesuffix(".")
            return Refused(f"its certificate is not valid ({reason})", source=source)
        case ssl.SSLEOFError():
            return None
        case ssl.SSLError():
            return Permanent(
                "the server and kb could not agree on an encrypted connection", source=source
            )
        case _:
            return None


def _by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    by_name: dict[str, str] = {}
    for name, value in headers:
        by_name.setdefault(name.decode("latin-1").lower(), _text(value))
    return by_name


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


class _PinnedBackend(httpcore.NetworkBackend):
    """Connects only to the given addresses, in their order."""

    def __init__(
        self, addresses: tuple[str, ...], connect_s: float, deadline: Deadline, source: str
    ) -> None:
        self._source = source
        self._addresses = addresses[:_ADDRESSES_MAX]
        self._connect_s = connect_s
        self._deadline = deadline
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002  its addresses are known already
        port: int,
        timeout: float | None = None,  # noqa: ARG002  the deadline's is the one that counts
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that accepts; each has an equal share of the time."""
        options = list(socket_options or ())
        share_s = self._connect_s / len(self._addresses)
        errors: list[Exception] = []
        for address in self._addresses:
            timeout_s = _remaining_s(self._deadline, httpcore.ConnectTimeout, share_s)
            try:
                stream = self._inner.connect_tcp(address, port, timeout_s, local_address, options)
                return _DeadlineStream(stream, self._connect_s, self._deadline, self._source)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                errors.append(error)
        raise errors[-1]


class _DeadlineStream(httpcore.NetworkStream):
    """A stream that ends at the deadline, even while data keeps arriving."""

    def __init__(
        self, inner: httpcore.NetworkStream, connect_s: float, deadline: Deadline, source: str
    ) -> None:
        self._source = source
        self._inner = inner
        self._connect_s = connect_s
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        """Read the available bytes, at most `max_bytes`."""
        return self._inner.read(max_bytes, _remaining_s(self._deadline, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Write all of it."""
        self._inner.write(buffer, _remaining_s(self._deadline, httpcore.WriteTimeout))

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Encrypt, with the certificate checked against `server_hostname`."""
        timeout_s = _remaining_s(self._deadline, httpcore.ConnectTimeout, self._connect_s)
        try:
            stream = self._inner.start_tls(ssl_context, server_hostname, timeout_s)
        except httpcore.ConnectError as error:
            # Translated here, because httpcore drops the cause of the error.
            raise _tls_error(error.__cause__, self._source) or error from error.__cause__
        return _DeadlineStream(stream, self._connect_s, self._deadline, self._source)

    def get_extra_info(self, info: str) -> Any:
        """As the wrapped stream."""
        return self._inner.get_extra_info(info)


def _remaining_s(
    deadline: Deadline, late: Callable[[], Exception], at_most_s: float | None = None
) -> float:
    try:
        left_s = deadline.left_s()
    except TimeoutError:
        raise late() from None
    return left_s if at_most_s is None else min(left_s, at_most_s)
