"""The gate: every request goes through it, and none has another way in.

In this order: the host that is asked for, where the page is from that asks, the token, the route,
the role, the body, a place among those that are worked on. Whoever has no token learns nothing of
the routes either.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kb.config import ServeSettings
from kb.errors import KbError, StoreBusy
from kb.model.doc import OPERATOR, Scope
from kb.model.token import may
from kb.serve import tokens
from kb.serve.crew import Crew
from kb.serve.http_lines import Line, Lines
from kb.serve.http_metrics import Metrics
from kb.serve.http_reply import RETRY_AFTER, Refusal, Reply, packed, problem_of, tagged
from kb.serve.http_routes import Caller, Route, Served, run

_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_LOCAL_HOSTS: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
_REQUEST_ID_BYTES: Final = 8
_UNKNOWN: Final = "unknown"
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "OPTIONS"))
# So much more than is allowed is read and dropped, for a client that sends it hears no answer.
_DROPPED_SHARE: Final = 4
_CLOSE: Final = ("connection", "close")
_CORS_S: Final = "600"


class Doors(Struct, frozen=True, kw_only=True):
    """Where the server listens, and what it lets in."""

    settings: ServeSettings
    host: str
    """As it was bound."""
    is_loopback: bool
    """Only this machine gets here: without any token, its user does."""
    draw: Callable[[int], bytes]
    """Random bytes, for the ids of requests."""

    def serves(self, host: str) -> bool:
        """Whether a Host header names this server; else some page's own name points here."""
        name = _without_port(host.lower())
        mine = {f"[{self.host}]" if ":" in self.host else self.host, *self.settings.hosts}
        return name in _LOCAL_HOSTS or name in {one.lower() for one in mine}


class _Request(Struct, kw_only=True):
    """What is known of a request by the time that it is answered."""

    request_id: str
    method: str
    path: str
    query: str
    headers: Mapping[str, Sequence[str]]
    route: Route | None = None
    user: str | None = None

    def header(self, name: str) -> str:
        """A header's value; of several, joined."""
        return ", ".join(self.headers.get(name, ()))


class Gate:
    """The application as the server calls it, one call to a request."""

    def __init__(
        self,
        routes: Sequence[Route],
        served: Served,
        doors: Doors,
        metrics: Metrics,
        crew: Crew,
        lines: Lines,
    ) -> None:
        self.routes = tuple(routes)
        self._served = served
        self._doors = doors
        self._said = doors.settings
        self._metrics = metrics
        self._crew = crew
        self._lines = lines

    async def __call__(
        self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send
    ) -> None:
        """Answer one request. Raises nothing but what the server itself raises."""
        began_s = time.monotonic()
        request = _read(scope, self._doors.draw(_REQUEST_ID_BYTES).hex())
        reply = await self._answered(request, receive)
        headers = [*reply.headers, *self._always(request)]
        if reply.status not in (204, 304):
            headers += [("content-type", reply.media), ("content-length", str(len(reply.body)))]
        start = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": start})
        await send({"type": "http.response.body", "body": reply.body})
        took_s = time.monotonic() - began_s
        route = request.route.path if request.route else _UNKNOWN
        method = request.method if request.method in _METHODS else _UNKNOWN
        self._metrics.observe(route, method, reply.status, took_s)
        self._lines.write(
            Line(
                request_id=request.request_id,
                method=method,
                route=route,
                status=reply.status,
                took_ms=round(took_s * 1000, 1),
                bytes=len(reply.body),
                user=request.user,
            )
        )

    async def _answered(self, request: _Request, receive: _Receive) -> Reply:
        try:
            return await self._let_in(request, receive)
        except Refusal as refusal:
            return problem_of(refusal, request.request_id)
        except KbError as error:
            self._lines.failed(request.request_id, error)
            return problem_of(_unavailable(), request.request_id)
        except Exception as error:  # noqa: BLE001  the surface: whatever it is, it is told nobody
            self._lines.failed(request.request_id, error)
            detail = "this is a defect of the server; its log has the request's id"
            return problem_of(Refusal(500, "defect", detail), request.request_id)

    async def _let_in(self, request: _Request, receive: _Receive) -> Reply:
        self._check_size(request)
        self._check_origin(request)
        if request.method == "OPTIONS" and (granted := self._preflight(request)):
            return granted
        anybody = self._open_route(request)
        caller = anybody or self._caller(request)
        route, ids = self._route(request)
        if route.role is not None and not may(caller.role, route.role):
            raise Refusal(403, "forbidden", f"this wants a token of a {route.role}")
        body = await self._body(request, receive) if route.method == "POST" else b""
        asked = route.request(ids, request.query, body)

        def work() -> Reply:
            return _finished(request, run(route, self._served, asked, caller))

        if not route.waits:
            return work()
        if self._metrics.busy >= self._said.concurrency_max:
            raise _too_busy()
        self._metrics.busy += 1
        try:
            return await self._crew.run(work)
        except StoreBusy as error:
            raise _too_busy() from error
        finally:
            self._metrics.busy -= 1

    def _check_size(self, request: _Request) -> None:
        sizes = (len(n) + len(v) for n, values in request.headers.items() for v in values)
        if sum(sizes) > self._said.header_bytes_max:
            raise Refusal(431, "headers_too_large", "the headers are too long", headers=(_CLOSE,))
        if len(request.path) + len(request.query) > self._said.header_bytes_max // 2:
            raise Refusal(414, "address_too_long", "the address is too long", headers=(_CLOSE,))

    def _check_origin(self, request: _Request) -> None:
        hosts = request.headers.get("host", ())
        if len(hosts) != 1 or not self._doors.serves(hosts[0]):
            detail = "this host is not served here; the setting serve.hosts names those that are"
            raise Refusal(421, "foreign_host", detail)
        origin = request.header("origin")
        is_known = origin in self._said.origins
        is_own = origin.partition("://")[2].lower() == hosts[0].lower()
        is_foreign_page = bool(origin) and not is_own
        if not origin and request.header("sec-fetch-site") == "cross-site":
            is_foreign_page = True
        if is_foreign_page and not is_known:
            raise Refusal(403, "foreign_origin", "pages of other sites may not ask here")

    def _preflight(self, request: _Request) -> Reply | None:
        """What a browser wants to know before it asks for a page of another site."""
        if request.header("origin") not in self._said.origins:
            return None
        headers = (
            ("access-control-allow-methods", "GET, POST"),
            ("access-control-allow-headers", "authorization, content-type, if-none-match"),
            ("access-control-max-age", _CORS_S),
        )
        return Reply(status=204, headers=headers)

    def _always(self, request: _Request) -> list[tuple[str, str]]:
        headers = [
            ("x-request-id", request.request_id),
            ("x-content-type-options", "nosniff"),
            ("vary", "Accept-Encoding, Authorization, Origin"),
        ]
        if (origin := request.header("origin")) in self._said.origins:
            headers.append(("access-control-allow-origin", origin))
            headers.append(("access-control-expose-headers", "etag, retry-after, x-request-id"))
        return headers

    def _open_route(self, request: _Request) -> Caller | None:
        """An anonymous caller, where the route is for anybody."""
        method = "GET" if request.method == "HEAD" else request.method
        found = (r for r in self.routes if r.role is None and r.method == method)
        if any(route.ids(request.path) is not None for route in found):
            return Caller(scope=Scope(user=None), role="reader")
        return None

    def _caller(self, request: _Request) -> Caller:
        with self._served.app.store.read() as txn:
            known = tokens.listed(txn)
        if not known and self._doors.is_loopback:
            request.user = OPERATOR.user
            return Caller(scope=OPERATOR, role="admin")
        scheme, _, secret = request.header("authorization").partition(" ")
        token = tokens.recognised(known, secret.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            challenge = ("www-authenticate", 'Bearer realm="kb"')
            detail = "this wants a token, as `kb token add` makes them"
            raise Refusal(401, "unauthorized", detail, headers=(challenge,))
        request.user = token.user
        return Caller(scope=Scope(user=token.user), role=token.role)

    def _route(self, request: _Request) -> tuple[Route, Mapping[str, str]]:
        method = "GET" if request.method == "HEAD" else request.method
        others: list[str] = []
        for route in self.routes:
            ids = route.ids(request.path)
            if ids is None:
                continue
            if route.method == method:
                request.route = route
                return route, ids
            others.append(route.method)
        if others:
            allow = ("allow", ", ".join([*others, *(["HEAD"] if "GET" in others else [])]))
            raise Refusal(405, "method_not_allowed", "not by this method", headers=(allow,))
        raise Refusal(404, "no_such_route", "there is nothing here; /openapi.json says what is")

    async def _body(self, request: _Request, receive: _Receive) -> bytes:
        media = request.header("content-type").partition(";")[0].strip().lower()
        if media != "application/json":
            detail = "the body must be application/json"
            raise Refusal(415, "unsupported_media", detail, headers=(_CLOSE,))
        if request.header("content-encoding"):
            detail = "the body must not be packed"
            raise Refusal(415, "unsupported_media", detail, headers=(_CLOSE,))
        try:
            async with asyncio.timeout(self._said.body_s):
                return await self._received(receive)
        except TimeoutError as error:
            raise Refusal(408, "too_slow", "the body took too long", headers=(_CLOSE,)) from error

    async def _received(self, receive: _Receive) -> bytes:
        most = self._said.body_bytes_max
        body, count = bytearray(), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "cut_short", "the client left", headers=(_CLOSE,))
            part = message.get("body", b"")
            count += len(part)
            if count <= most:
                body += part
            is_last = not message.get("more_body", False)
            if count > most and (is_last or count > most * _DROPPED_SHARE):
                detail = f"the body is over {most} bytes"
                raise Refusal(413, "too_large", detail, headers=(_CLOSE,))
            if is_last:
                return bytes(body)


def _finished(request: _Request, reply: Reply) -> Reply:
    """An answer as it is sent: tagged if it is a read, and packed where that is taken."""
    if request.method != "POST":
        reply = tagged(reply, request.header("if-none-match"))
    return packed(reply, request.header("accept-encoding"))


def _read(scope: Mapping[str, Any], request_id: str) -> _Request:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return _Request(
        request_id=request_id,
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=headers,
    )


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _too_busy() -> Refusal:
    return Refusal(503, "busy", "too many ask at once; try again", headers=(RETRY_AFTER,))


def _unavailable() -> Refusal:
    return Refusal(503, "unavailable", "no answer can be given now", headers=(RETRY_AFTER,))
