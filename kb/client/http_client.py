"""One request to a server over HTTP: bounded in time and size, and never sent on elsewhere."""

import http.client
import ipaddress
import socket
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from kb import __version__
from kb.client.problems import ServerError, error_of
from kb.errors import UsageError
from kb.intake.model_server.alarm import Alarm
from kb.model.decoding import decode_json

T = TypeVar("T")

JSON: Final = "application/json"
ANSWER_BYTES_MAX: Final = 256 << 20
_CONNECT_S: Final = 10.0
# Where a server listens at every address of a machine.
_EVERYWHERE: Final = ("::", "0.0.0.0")  # noqa: S104  it is looked for, not bound
_PROBLEM_BYTES_MAX: Final = 64 << 10
_BLOCK: Final = 1 << 18
# Slower than this nothing is sent, so that a large file has the longer to be taken.
_UPLOAD_BYTES_S: Final = 64 << 10

Query = tuple[tuple[str, str], ...]


class Server(Struct, frozen=True, kw_only=True):
    """Where a server is, and the token that it is shown; empty where there is none."""

    url: str
    """Without a slash at its end."""
    host: str
    port: int
    is_tls: bool
    path: str
    """In front of every route."""
    token: str

    def __repr__(self) -> str:
        """Without the token, which is for nobody to read."""
        return f"Server(url={self.url!r})"


class Body(Struct, frozen=True, kw_only=True):
    """What is sent with a request."""

    data: bytes
    media: str = JSON


class ServerReply(Struct, frozen=True, kw_only=True):
    """A body that came whole."""

    media: str
    data: bytes


def server_at(address: str, token: str, *, is_insecure: bool = False) -> Server:
    """A server by its address. Raises UsageError for what cannot be one.

    So, too, where the token would go over plain http to another machine, unless `is_insecure`.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urllib.parse.urlsplit("")
    is_tls = parts.scheme == "https"
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in ("http", "https") or not host or not plain or not address.isprintable():
        raise UsageError("a server's address looks like http://HOST:PORT or https://HOST")
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError("the token has characters that no token of kb has; check KB_TOKEN")
    if token and not is_tls and not is_insecure and not _is_loopback(host):
        raise UsageError(
            f"the token would travel to {host} unencrypted; use https, or set "
            "client.insecure to true"
        )
    return Server(
        url=address.rstrip("/"),
        host=host,
        port=port or (443 if is_tls else 80),
        is_tls=is_tls,
        path=parts.path.rstrip("/"),
        token=token,
    )


def with_own_token(server: Server) -> Server:
    """With this user's own token, where a server of theirs on this machine has the address.

    It is asked by that very address: a name may lead to another program's.
    """
    from kb.store.trust.local_token import local_token

    if server.is_tls or not _is_loopback(server.host):
        return server
    own = local_token()
    for place in ("127.0.0.1", "::1") if server.host == "localhost" else (server.host,):
        if any(own.is_served(host, server.port) for host in (place, *_EVERYWHERE)):
            return msgspec.structs.replace(server, host=place, token=own.read() or "")
    return server


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


class ServerClient:
    """Asks one server, each time on a connection of its own; follows nothing.

    Behind one address may be several servers: what one of them has answered, all are asked for.
    """

    def __init__(self, server: Server, timeout_s: float) -> None:
        self.server = server
        self._timeout_s = timeout_s
        self.transaction = ""
        """The token of the newest state that an answer was of; each request asks for no older."""

    def get(self, path: str, kind: type[T], query: Query = ()) -> T:
        """What a route says, as a type. Raises as `answer` does."""
        return self._decoded(self.answer("GET", path, query=query), kind)

    def post(
        self, path: str, body: Struct | Body, kind: type[T], query: Query = (), *, wait_s: float = 0
    ) -> T:
        """What a route says to a body, JSON where it is a struct. Raises as `answer` does."""
        if not isinstance(body, Body):
            body = Body(data=msgspec.json.encode(body))
        answer = self.answer("POST", path, query=query, body=body, wait_s=wait_s)
        return self._decoded(answer, kind)

    def post_raw(self, path: str, body: Struct, *, wait_s: float = 0) -> bytes:
        """The JSON that a route says to a struct. Raises as `answer` does."""
        sent = Body(data=msgspec.json.encode(body))
        answer = self.answer("POST", path, body=sent, wait_s=wait_s)
        if answer.media != JSON:
            raise self.unreadable()
        return answer.data

    def _decoded(self, answer: ServerReply, kind: type[T]) -> T:
        if answer.media == JSON:
            with suppress(ValueError, RecursionError):
                return decode_json(answer.data, kind)
        raise self.unreadable()

    def unreadable(self) -> ServerError:
        """That an answer is none that this kb knows."""
        detail = "its answer cannot be read; is it a kb server of this version?"
        return ServerError(detail, place=self.server.url)

    def answer(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Body | None = None,
        wait_s: float = 0,
    ) -> ServerReply:
        """The body of a good answer, at most ANSWER_BYTES_MAX.

        It has `wait_s` or, where that is longer, the setting's time, and more for a body as large
        as takes long to send. Raises what `error_of` makes of a problem, and ServerError for all
        else that goes wrong on the way.
        """
        total_s = max(wait_s, self._timeout_s)
        total_s += len(body.data) / _UPLOAD_BYTES_S if body else 0
        with self.opened(method, path, query=query, body=body, total_s=total_s) as response:
            data = self._read(response, ANSWER_BYTES_MAX)
            return ServerReply(media=_media(response), data=data)

    @contextmanager
    def opened(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Body | None = None,
        total_s: float,
        silence_s: float | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """A good answer whose body is still to be read; the connection ends with the block.

        That is after `total_s`, or when nothing comes for `silence_s`, at the latest. Raises as
        `answer` does, also for what goes wrong inside the block.
        """
        target = self.server.path + path
        target += f"?{urllib.parse.urlencode(query)}" if query else ""
        connection = http.client.HTTPConnection(self.server.host, self.server.port)
        with Alarm(total_s) as alarm, ExitStack() as held:
            held.callback(connection.close)
            try:
                connection.sock = self._connected(alarm, silence_s or total_s)
                self._send(connection, method, target, body)
                response = held.enter_context(connection.getresponse())
                # Cut in its head it may look whole.
                if alarm.rang:
                    raise TimeoutError
                if response.status != 200 and response.status != 202:
                    raise self._refused(response)
                self.transaction = response.getheader("kb-transaction") or self.transaction
                yield response
                if alarm.rang:
                    raise TimeoutError
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._told(error, alarm, total_s) from None

    def _send(
        self, connection: http.client.HTTPConnection, method: str, target: str, body: Body | None
    ) -> None:
        # A server that will not have a body may say so and close before it has come.
        with suppress(BrokenPipeError, ConnectionResetError):
            sent = body.data if body else None
            connection.request(method, target, sent, self._headers(body))

    def _connected(self, alarm: Alarm, wait_s: float) -> socket.socket:
        place = (self.server.host, self.server.port)
        opened = socket.create_connection(place, min(_CONNECT_S, wait_s))
        try:
            alarm.watch(opened)
            if self.server.is_tls:
                context = ssl.create_default_context()
                opened = context.wrap_socket(opened, server_hostname=self.server.host)
                alarm.watch(opened)
            opened.settimeout(wait_s)
        except (OSError, ValueError):
            opened.close()
            raise
        return opened

    def _headers(self, body: Body | None) -> Mapping[str, str]:
        headers = {"accept": f"{JSON}, text/event-stream", "user-agent": f"kb/{__version__}"}
        if self.server.token:
            headers["authorization"] = f"Bearer {self.server.token}"
        if self.transaction:
            headers["kb-at-least"] = self.transaction
        if body is not None:
            headers |= {"content-type": body.media, "content-length": str(len(body.data))}
        return {**headers, "accept-encoding": "identity", "connection": "close"}

    def _refused(self, response: http.client.HTTPResponse) -> Exception:
        if 300 <= response.status < 400:
            detail = f"it redirects ({response.status}), and kb does not follow"
            return ServerError(f"{detail}; give the server's own address", place=self.server.url)
        data = b""
        if _media(response) == "application/problem+json":
            data = self._read(response, _PROBLEM_BYTES_MAX)
        return error_of(response.status, data, self.server.url)

    def _read(self, response: http.client.HTTPResponse, most: int) -> bytes:
        parts: list[bytes] = []
        total = 0
        while part := response.read(min(_BLOCK, most + 1 - total)):
            total += len(part)
            if total > most:
                raise ServerError(f"its answer is over {most >> 10} KiB", place=self.server.url)
            parts.append(part)
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(parts)

    def _told(self, error: Exception, alarm: Alarm, total_s: float) -> ServerError:
        """What went wrong on the way, in words; a request, with its token, is never quoted."""
        match error:
            case _ if alarm.rang:
                detail = (
                    f"no complete answer within {round(total_s, 1):g} s; raise client.timeout_s"
                )
            case TimeoutError():
                detail = "it does not answer in time"
            case ConnectionRefusedError() | socket.gaierror():
                detail = "it cannot be reached; check that `kb serve` runs there, at that port"
            case ssl.SSLCertVerificationError():
                detail = f"its certificate is not valid ({error.verify_message})"
            case http.client.HTTPException() | ValueError():
                detail = "its answer is not valid HTTP, or ends early"
            case _:
                detail = f"the connection broke off ({getattr(error, 'strerror', None) or 'reset'})"
        return ServerError(detail, place=self.server.url)


def _media(response: http.client.HTTPResponse) -> str:
    return (response.getheader("content-type") or "").partition(";")[0].strip().lower()
