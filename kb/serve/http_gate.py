"""The gate: every request goes through it, and none has another way in.

In this order: the host that is asked for, where the page is from that asks, the token, the route,
the role, the body, a place among those that are worked on. Whoever has no token learns nothing of
the routes either.
"""

# Long because every step of the one way in is here.

import functools
import hmac
import re
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct

from kb.errors import KbError, StoreBusy, UsageError
from kb.model.config import ServeSettings
from kb.model.doc import Scope
from kb.model.token import Role, role_allows
from kb.serve.access_log import AccessEntry, AccessLog
from kb.serve.executor import CallExecutors
from kb.serve.http_body import Bodies, check_length
from kb.serve.http_metrics import Metrics
from kb.serve.http_page import PAGE
from kb.serve.http_reply import RETRY_AFTER, Refusal, Reply, packed, problem_of, tagged
from kb.serve.http_routes import Caller, Message, Route, Served, Upload, run
from kb.serve.http_streams import Receive, Send, Streams
from kb.serve.local_socket import OWN
from kb.serve.sessions import cookie_named
from kb.serve.shared import Places
from kb.store import tokens
from kb.store.store import REACH_S

_LOCAL_HOSTS: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
# A name or an address and a port, and nothing that a browser would read otherwise.
_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_ABSOLUTE: Final = re.compile(r"https?://(?P<host>[^/]*)", re.IGNORECASE)
# A proxy in front may speak the other one.
_SCHEMES: Final = ("http", "https")
TRANSACTION: Final = "kb-transaction"
"""Of an answer: the token of a state that has all that it says, and all that was written."""
AT_LEAST: Final = "kb-at-least"
"""Of a request: such a token; the answer is of that state, or a later one."""
_REQUEST_ID_BYTES: Final = 8
_PATHS_KEPT: Final = 128
_UNKNOWN: Final = "unknown"
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "OPTIONS"))
_CLOSE: Final = ("connection", "close")
_CORS_S: Final = "600"
_CORS_HEADERS: Final = (
    "authorization, content-type, if-none-match, kb-at-least, mcp-method, mcp-name, "
    "mcp-protocol-version"
)


class GateOptions(Struct, frozen=True, kw_only=True):
    """Where the server listens, and what it lets in."""

    settings: ServeSettings
    host: str
    """As it was bound."""
    is_loopback: bool
    """Only this machine gets here."""
    draw: Callable[[int], bytes]
    """Random bytes, for the ids of requests."""
    own_token: str | None = None
    """What lets the operator in; without one whoever is on this machine, until there are tokens."""
    cookie: str = ""
    """The name of the page's cookie: browsers keep one jar for all ports of a machine."""

    def serves(self, host: str) -> bool:
        """Whether a Host header names this server; else some page's own name points here."""
        parts = _HOST.fullmatch(host.lower())
        if parts is None:
            return False
        name = parts["name"]
        mine = {f"[{self.host}]" if ":" in self.host else self.host, *self.settings.hosts}
        return name in _LOCAL_HOSTS or name in {host_name.lower() for host_name in mine}


class _Request(Struct, kw_only=True):
    """What is known of a request by the time that it is answered."""

    request_id: str
    method: str
    path: str
    """As it was sent."""
    query: str
    headers: Mapping[str, Sequence[str]]
    route: Route | None = None
    user: str | None = None
    is_own: bool = False
    """It came by the socket in the home, from a program of the home's own user."""

    def header(self, name: str) -> str:
        """A header's value; of several, joined."""
        return ", ".join(self.headers.get(name, ()))


class Gate:
    """The application as the server calls it, one call to a request."""

    def __init__(
        self,
        routes: Sequence[Route],
        served: Served,
        options: GateOptions,
        metrics: Metrics,
        executors: CallExecutors,
        lines: AccessLog,
        streams: Streams,
        places: Places | None = None,
    ) -> None:
        self.routes = tuple(routes)
        # Most requests are for the same few addresses.
        self._routes_at = functools.lru_cache(_PATHS_KEPT)(self._find_routes)
        self._served = served
        self._options = options
        self._settings = options.settings
        self._metrics = metrics
        self._executors = executors
        self._lines = lines
        self._streams = streams
        self._bodies = Bodies(
            options.settings, served.app.paths.tmp, (places or Places()).of("files")
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request. Raises nothing but what the server itself raises."""
        began_s = time.monotonic()
        request = _read(scope, self._options.draw(_REQUEST_ID_BYTES).hex())
        reply = await self._answered(request, receive)
        sent = await self._sent(request, reply, receive, send)
        took_s = time.monotonic() - began_s
        route = request.route.path if request.route else _UNKNOWN
        method = request.method if request.method in _METHODS else _UNKNOWN
        self._metrics.observe(route, method, reply.status, took_s)
        self._lines.write(
            AccessEntry(
                request_id=request.request_id,
                method=method,
                route=route,
                status=reply.status,
                took_ms=round(took_s * 1000, 1),
                bytes=sent,
                user=request.user,
            )
        )

    async def _sent(self, request: _Request, reply: Reply, receive: Receive, send: Send) -> int:
        """Send a reply; returns how many bytes its body had."""
        headers = [*reply.headers, *self._always(request)]
        if reply.stream is not None:
            headers += [("content-type", reply.media), ("cache-control", "no-store")]
        elif reply.status not in (204, 304):
            headers += [("content-type", reply.media), ("content-length", str(len(reply.body)))]
        start = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        begin = {"type": "http.response.start", "status": reply.status, "headers": start}
        if reply.stream is None or request.method == "HEAD":
            await send(begin)
            await send({"type": "http.response.body", "body": reply.body})
            return len(reply.body)
        try:
            return await self._streams.send(begin, reply.stream, receive, send)
        except Exception as error:  # noqa: BLE001  the client sees that the answer was cut short
            self._lines.failed(request.request_id, error)
            return 0

    async def _answered(self, request: _Request, receive: Receive) -> Reply:
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

    async def _let_in(self, request: _Request, receive: Receive) -> Reply:
        self._check_frame(request)
        self._check_origin(request)
        if request.method == "OPTIONS" and (granted := self._preflight(request)):
            return granted
        anybody = self._open_route(request)
        caller = anybody or await self._let_in_as(request)
        route, ids = self._route(request)
        if anybody and route.reads_store:
            # Whom it knows, it may tell more than everybody.
            with suppress(Refusal):
                caller = await self._let_in_as(request)
        if route.role is not None and not role_allows(caller.role, route.role):
            raise Refusal(403, "forbidden", f"this needs a token with the role {route.role}")
        at_least = request.header(AT_LEAST)
        if at_least:
            await self._reach(at_least)
            caller = msgspec.structs.replace(caller, at_least=at_least)
        takes_file = route.method == "POST" and route.takes == "file"
        bytes_max = self._settings.upload_bytes_max if takes_file else self._settings.body_bytes_max
        check_length(request.header, bytes_max)
        if takes_file:
            query = route.request(ids, request.query, b"")
            async with self._bodies.file(request.header, receive) as file:
                return await self._worked(request, route, Upload(query=query, file=file), caller)
        body = await self._body(request, route, receive)
        payload = route.request(ids, request.query, body)
        if route.takes == "message":
            payload = Message(headers=request.headers, body=payload)
        return await self._worked(request, route, payload, caller)

    async def _let_in_as(self, request: _Request) -> Caller:
        """Who asks; looked up apart from the loop where the store is on another machine."""
        if self._served.app.paths.database is None:
            return self._caller(request)
        return await self._served.changes.read(lambda: self._caller(request))

    async def _reach(self, token: str) -> None:
        """Wait for a transaction, without a thread. Raises Refusal where it does not come."""
        try:
            number = await self._served.changes.read(
                lambda: self._served.app.transactions.number(token)
            )
        except UsageError as error:
            raise Refusal(400, "no_such_transaction", str(error)) from error
        if not await self._served.changes.reached(number, REACH_S):
            detail = "this server has not come to the transaction that was asked for; try again"
            raise Refusal(503, "behind", detail, headers=(RETRY_AFTER,))

    async def _body(self, request: _Request, route: Route, receive: Receive) -> bytes:
        if route.has_json:
            return await self._bodies.json(request.header, receive)
        if route.method == "POST":
            await self._bodies.nothing(request.header, receive)
        return b""

    async def _worked(self, request: _Request, route: Route, payload: Any, caller: Caller) -> Reply:
        """What a route answers, by one of the threads, unless too many are asked already."""

        def work() -> Reply:
            reply = run(route, self._served, payload, caller)
            # Taken after the answer, so that it is of no earlier state than what the answer says.
            token = self._served.app.transactions.token() if route.waits else None
            return _finished(request, reply, token)

        if route.reads_store:
            return await self._served.changes.read(work)
        if not route.waits:
            return work()
        executor = (
            self._executors.long if route.is_long(self._served, payload) else self._executors.short
        )
        if executor.is_full:
            raise _too_busy()
        self._metrics.busy += 1
        try:
            reply = await executor.run(work)
        except StoreBusy as error:
            raise _too_busy() from error
        finally:
            self._metrics.busy -= 1
        if reply.stream is not None and self._streams.is_full:
            raise _too_busy()
        return reply

    def _check_frame(self, request: _Request) -> None:
        sizes = (len(n) + len(v) for n, values in request.headers.items() for v in values)
        if sum(sizes) > self._settings.header_bytes_max:
            raise Refusal(431, "headers_too_large", "the headers are too long", headers=(_CLOSE,))
        if len(request.path) + len(request.query) > self._settings.header_bytes_max // 2:
            raise Refusal(414, "address_too_long", "the address is too long", headers=(_CLOSE,))
        if {"content-length", "transfer-encoding"} <= request.headers.keys():
            # A proxy in front may take the other one for the end, and what follows for a request.
            detail = "a body has either a length or an encoding of its transfer"
            raise Refusal(400, "malformed", detail, headers=(_CLOSE,))

    def _check_origin(self, request: _Request) -> None:
        hosts = request.headers.get("host", ())
        if len(hosts) != 1 or not self._options.serves(hosts[0]):
            detail = (
                "this host is not served here; the setting serve.hosts lists the hosts that are"
            )
            raise Refusal(421, "foreign_host", detail)
        origin = request.header("origin")
        is_known = origin in self._settings.origins
        is_own = origin.lower() in {f"{scheme}://{hosts[0].lower()}" for scheme in _SCHEMES}
        is_foreign_page = bool(origin) and not is_own
        if not origin and request.header("sec-fetch-site") == "cross-site":
            # Elsewhere a link may lead to the page, which is framed nowhere and tells of nothing.
            is_link = request.header("sec-fetch-dest") == "document"
            is_foreign_page = not (is_link and request.path == PAGE)
        if is_foreign_page and not is_known:
            raise Refusal(403, "foreign_origin", "pages of other sites may not send requests here")

    def _preflight(self, request: _Request) -> Reply | None:
        """What a browser wants to know before it asks for a page of another site."""
        if request.header("origin") not in self._settings.origins:
            return None
        headers = (
            ("access-control-allow-methods", "GET, POST"),
            ("access-control-allow-headers", _CORS_HEADERS),
            ("access-control-max-age", _CORS_S),
        )
        return Reply(status=204, headers=headers)

    def _always(self, request: _Request) -> list[tuple[str, str]]:
        headers = [
            ("x-request-id", request.request_id),
            ("x-content-type-options", "nosniff"),
            ("vary", "Accept-Encoding, Authorization, Cookie, Origin"),
        ]
        if (origin := request.header("origin")) in self._settings.origins:
            headers.append(("access-control-allow-origin", origin))
            headers.append(
                ("access-control-expose-headers", "etag, kb-transaction, retry-after, x-request-id")
            )
        return headers

    def _open_route(self, request: _Request) -> Caller | None:
        """An anonymous caller, where the route is for anybody."""
        method = "GET" if request.method == "HEAD" else request.method
        routes = (route for route, _ in self._routes_at(request.path))
        if any(route.role is None and route.method == method for route in routes):
            return Caller(scope=Scope(user=None), role="reader")
        return None

    def _caller(self, request: _Request) -> Caller:
        with self._served.app.store.read() as txn:
            all_tokens = tokens.list_tokens(txn)
        is_open = self._options.own_token is None and not all_tokens and self._options.is_loopback
        if request.is_own or is_open or self._is_own(request):
            return self._own_caller(request)
        scheme, _, secret = request.header("authorization").partition(" ")
        token = (
            tokens.find_by_secret(all_tokens, secret.strip())
            if scheme.lower() == "bearer"
            else None
        )
        if token is None:
            challenge = ("www-authenticate", 'Bearer realm="kb"')
            detail = "this needs a token: `kb token own` prints yours, `kb token add` makes others"
            raise Refusal(401, "unauthorized", detail, headers=(challenge,))
        request.user = token.user
        scope = Scope(user=token.user)
        return Caller(scope=scope, role=token.role, holds=self._holds(request, scope))

    def _own_caller(self, request: _Request) -> Caller:
        """Who started the server: the operator, or of a home in a database their role's user."""
        scope = self._served.app.caller
        request.user = scope.user
        role: Role = "admin" if scope.operator else "writer"
        return Caller(scope=scope, role=role, holds=self._holds(request, scope))

    def _is_own(self, request: _Request) -> bool:
        """Whether the own token is shown, or the cookie of a page that its holder opened."""
        own = self._options.own_token
        if own is None:
            return False
        scheme, _, secret = request.header("authorization").partition(" ")
        if scheme:
            shown = secret.strip().encode("utf-8", "replace")
            return scheme.lower() == "bearer" and hmac.compare_digest(own.encode(), shown)
        # A browser sends it for pages of other ports of this machine, too.
        is_page = request.header("sec-fetch-site") in ("", "none", "same-origin")
        cookie = cookie_named(request.header("cookie"), self._options.cookie)
        return is_page and bool(cookie) and self._served.sessions.holds(cookie)

    def _holds(self, request: _Request, scope: Scope) -> Callable[[], bool]:
        """Whether the same request would be let in again as the same caller."""

        def is_let_in() -> bool:
            try:
                return self._caller(request).scope == scope
            except Refusal:
                return False

        return is_let_in

    def _find_routes(self, path: str) -> tuple[tuple[Route, Mapping[str, str]], ...]:
        """The routes of all methods at a path, with the ids in it."""
        ids = ((route, route.ids(path)) for route in self.routes)
        return tuple((route, of_path) for route, of_path in ids if of_path is not None)

    def _route(self, request: _Request) -> tuple[Route, Mapping[str, str]]:
        method = "GET" if request.method == "HEAD" else request.method
        others: list[str] = []
        for route, ids in self._routes_at(request.path):
            if route.method == method:
                request.route = route
                return route, ids
            others.append(route.method)
        if others:
            allow = ("allow", ", ".join([*others, *(["HEAD"] if "GET" in others else [])]))
            raise Refusal(
                405,
                "method_not_allowed",
                "this address does not take this method",
                headers=(allow,),
            )
        raise Refusal(
            404,
            "no_such_route",
            "there is nothing at this address; /openapi.json lists what there is",
        )


def _finished(request: _Request, reply: Reply, token: str | None) -> Reply:
    """An answer as it is sent: tagged if it is a read, and packed where that is taken."""
    if token:
        headers = (*reply.headers, (TRANSACTION, token))
        reply = msgspec.structs.replace(reply, headers=headers)
    if reply.stream is not None:
        return reply
    if request.method != "POST":
        reply = tagged(reply, request.header("if-none-match"))
    return packed(reply, request.header("accept-encoding"))


def _read(scope: Mapping[str, Any], request_id: str) -> _Request:
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    path = scope["raw_path"].decode("latin-1")
    if (absolute := _ABSOLUTE.match(path)) is not None:
        # As proxies ask. Its host counts, and not that of the header (RFC 9112, 3.2.2).
        headers["host"] = [absolute["host"]]
        path = path[absolute.end() :] or "/"
    return _Request(
        request_id=request_id,
        method=scope["method"],
        path=path,
        query=scope["query_string"].decode("latin-1"),
        headers=headers,
        is_own=scope.get("state", {}).get(OWN, False),
    )


def _too_busy() -> Refusal:
    return Refusal(503, "busy", "too many requests at once; try again", headers=(RETRY_AFTER,))


def _unavailable() -> Refusal:
    return Refusal(503, "unavailable", "the server cannot answer now", headers=(RETRY_AFTER,))
