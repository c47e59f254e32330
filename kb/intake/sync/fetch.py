"""Fetches pages: the only module that reads from the network.

`address` decides which addresses it may reach, and `http_exchange` sends one request. This module
counts the redirects and turns the server's response into a `Fetched` or an error.
"""

import re
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from msgspec import Struct

from kb.errors import AuthFailed, Gone, Permanent, RateLimited, Refused, SourceError, Transient
from kb.intake.git.repository_address import RepositoryAddress
from kb.intake.sync.address import AllowList, Resolve, checked_addresses, system_resolve
from kb.intake.sync.body import over_limit_error, read_body
from kb.intake.sync.robots import ROBOTS_BYTES_MAX, Robots
from kb.intake.sync.robots_rules import RobotsRules
from kb.intake.sync.weburl import WebUrl, join_url, parse_url, printable_url
from kb.model.clock import Clock
from kb.model.config import FetchSettings
from kb.model.deadline import Deadline
from kb.model.retry_after import RETRY_AFTER_S_MAX, retry_after_s

if TYPE_CHECKING:
    import ssl

    from kb.intake.sync.http_exchange import HttpResponse

_ACCEPT: Final = (
    "text/html, application/xhtml+xml, application/pdf, text/markdown, text/plain;q=0.9, */*;q=0.5"
)
_WORD: Final = r"[A-Za-z0-9!#$&^_.+-]{1,100}"
_MIME: Final = re.compile(rf"\s*({_WORD}/{_WORD})\s*(?:;|$)")
_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([A-Za-z0-9_.:-]{1,60})', re.IGNORECASE)
_HEADER_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,1022}[\x21-\x7e])?")
_PERMANENT_REDIRECTS: Final = frozenset({301, 308})
_CONDITIONS: Final = frozenset({"If-None-Match", "If-Modified-Since"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Fetched(Struct, frozen=True, kw_only=True):
    """The response of one address."""

    status: Literal["ok", "not_modified"]
    url: str
    """The URL that the caller gave."""
    final_url: str
    """The URL at the end of the redirects, without fragment."""
    data: bytes
    """Decompressed; empty if not modified."""
    mime: str | None
    """The type in Content-Type, in lower case and without parameters."""
    charset: str | None
    etag: str | None
    last_modified: str | None
    permanent_url: str | None
    """`final_url` if there were redirects and all of them are permanent."""
    robots_tag: str = ""
    """What X-Robots-Tag says of the page."""


class Redirected(Refused):
    """The page lies elsewhere, and the caller follows no redirects."""

    def __init__(self, to: str, source: str) -> None:
        super().__init__(f"it redirects to {printable_url(to)}", source=source)
        self.to = to
        """The address that it redirects to, which may be of any form."""


class _Redirect(Struct, frozen=True):
    """A redirect."""

    location: str
    permanent: bool


class _FetchCall(Struct, frozen=True, kw_only=True):
    """What stays the same for all requests of one call."""

    url: str
    etag: str | None
    last_modified: str | None
    follow_robots: bool
    bytes_max: int
    deadline: Deadline
    follow_redirects: bool = True

    @property
    def source(self) -> str:
        return printable_url(self.url)


class Fetcher:
    """GETs pages over http and https, under rules that no server and no page can change.

    Each address, also that of a redirect, is looked up once and refused unless it is public or the
    settings allow it; the connection goes to the address that was checked. The bytes, the redirects
    and the time of a call are limited. Between calls only robots.txt rules are kept. Several
    threads may use one fetcher.
    """

    def __init__(
        self, settings: FetchSettings, clock: Clock, resolve: Resolve = system_resolve
    ) -> None:
        """Read the settings; raises ConfigError if `allow` is not valid."""
        self._settings = settings
        self._clock = clock
        self._resolve = resolve
        self._allowed = AllowList(settings.allow)
        self._robots = Robots(settings.user_agent, clock)
        self._tls: ssl.SSLContext | None = None

    def get(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        follow_robots: bool = False,
        bytes_max: int | None = None,
        follow_redirects: bool = True,
    ) -> Fetched:
        """The page at `url`, or the news that it has not changed since `etag` or `last_modified`.

        Set `follow_robots` for every address that was found in a page rather than named by a
        person. `bytes_max` lowers the limit of the settings for this call; a larger body raises
        OverLimit. Without `follow_redirects` a redirect raises Redirected, and costs no further
        request. Raises Refused (a rule forbids it), AuthFailed (401, 403), RateLimited (429),
        Gone (404, 410), Permanent (other 4xx, or a response without a page) and Transient (5xx, the
        network, the deadline). Messages name the URL and quote nothing from the page.
        """
        return self._get(
            _FetchCall(
                url=url,
                etag=etag,
                last_modified=last_modified,
                follow_robots=follow_robots and self._settings.robots,
                bytes_max=min(self._settings.bytes_max, bytes_max or self._settings.bytes_max),
                deadline=Deadline(self._clock, self._settings.total_s),
                follow_redirects=follow_redirects,
            )
        )

    def site_rules(self, url: str) -> RobotsRules:
        """What the robots.txt of the URL's site asks for; nothing if the settings ignore it.

        Raises Refused for an address that kb does not fetch, and Transient if the file cannot be
        read now.
        """
        at = parse_url(url)
        if not self._settings.robots:
            return RobotsRules()
        call = _FetchCall(
            url=url,
            etag=None,
            last_modified=None,
            follow_robots=False,
            bytes_max=self._settings.bytes_max,
            deadline=Deadline(self._clock, self._settings.total_s),
        )
        # An address that is refused is refused before its site is asked for anything.
        checked_addresses(at, self._allowed, self._resolve, call.deadline, call.source)
        return self._robots.rules(at, lambda robots: self._robots_txt(call, robots), call.source)

    def check_repository(self, address: RepositoryAddress) -> tuple[str, ...]:
        """The addresses of a repository's host, looked up once and all checked.

        Raises Refused unless each is public or allowed, and Transient if there is none.
        """
        remote = address.remote
        port = remote.port or (22 if remote.kind == "ssh" else 443)
        host = WebUrl(scheme="https", host=remote.host.lower(), port=port, target="/")
        deadline = Deadline(self._clock, self._settings.total_s)
        return checked_addresses(host, self._allowed, self._resolve, deadline, address.location)

    def _get(self, call: _FetchCall) -> Fetched:
        at = parse_url(call.url)
        seen = {at.text}
        permanent = True
        while True:
            try:
                answer = self._hop(call, at, len(seen) == 1, permanent)
                if isinstance(answer, Fetched):
                    return answer
                if not call.follow_redirects:
                    raise Redirected(answer.location, call.source)
                to = self._next(call, at, answer, seen)
            except SourceError as error:
                if len(seen) == 1:
                    raise
                _raise_for_redirect(error, at, call.source)
            permanent = permanent and answer.permanent
            seen.add(to.text)
            at = to

    def _next(self, call: _FetchCall, at: WebUrl, moved: _Redirect, seen: set[str]) -> WebUrl:
        """The target of a redirect. Raises Refused if a rule forbids to follow it."""
        try:
            to = join_url(at, moved.location)
        except Refused as error:
            detail = f"it redirects to {printable_url(moved.location)}: {error.reason}"
            raise Refused(detail, source=call.source) from error
        if at.scheme == "https" and to.scheme == "http":
            detail = f"it redirects to {printable_url(to.text)}, which is not encrypted"
            raise Refused(detail, source=call.source)
        if to.text in seen:
            raise Refused("its redirects go in a circle", source=call.source)
        if len(seen) > self._settings.hops_max:
            detail = f"more than {self._settings.hops_max} redirects"
            raise Refused(detail, source=call.source)
        return to

    def _hop(
        self, call: _FetchCall, at: WebUrl, is_first: bool, permanent: bool
    ) -> Fetched | _Redirect:
        """Send one request and read its response."""
        from kb.intake.sync.http_exchange import exchange

        addresses = checked_addresses(at, self._allowed, self._resolve, call.deadline, call.source)
        if call.follow_robots:
            self._robots.check(at, lambda url: self._robots_txt(call, url), call.source)
        headers = self._headers(call, is_first)
        with exchange(
            at,
            addresses,
            headers,
            connect_s=self._settings.connect_s,
            deadline=call.deadline,
            tls=self._tls_context() if at.scheme == "https" else None,
            source=call.source,
        ) as answer:
            location = answer.headers.get("location")
            if answer.status in _REDIRECTS and location:
                return _Redirect(location.strip(), answer.status in _PERMANENT_REDIRECTS)
            # "Not modified" is an answer only to a conditional request.
            is_same = answer.status == 304 and not _CONDITIONS.isdisjoint(headers)
            if not is_same:
                self._check_status(answer, call.source)
            moved_to = at.text if permanent and not is_first else None
            return _to_fetched(call, at, answer, is_same=is_same, permanent_url=moved_to)

    def _check_status(self, answer: "HttpResponse", source: str) -> None:
        """Return if the response is a page; raise its error if not."""
        match answer.status:
            case 200 | 203:
                return
            case 401 | 403 as status:
                raise AuthFailed(f"the server wants a login ({status})", source=source)
            case 429:
                wait_s = retry_after_s(answer.headers.get("retry-after"), self._clock.now_ms())
                wait = "" if wait_s is None else f" for {wait_s} s"
                raise RateLimited(
                    f"the server asks kb to wait{wait} (429)", retry_after_s=wait_s, source=source
                )
            case 404 | 410 as status:
                raise Gone(f"the server has no such page ({status})", source=source)
            case status if status >= 500:
                raise Transient(f"the server failed ({status}); try again later", source=source)
            case status if status >= 400:
                raise Permanent(f"the server refuses it ({status})", source=source)
            case status:
                raise Permanent(f"the server answered without a page ({status})", source=source)

    def _headers(self, call: _FetchCall, is_first: bool) -> dict[str, str]:
        headers = {
            "User-Agent": self._settings.user_agent,
            "Accept": _ACCEPT,
            "Accept-Encoding": "gzip",
        }
        if (etag := _valid_header(call.etag)) is not None:
            headers["If-None-Match"] = etag
        elif is_first and (date := _valid_header(call.last_modified)) is not None:
            # After a redirect the date may belong to another page, and an older page would look
            # unchanged.
            headers["If-Modified-Since"] = date
        return headers

    def _robots_txt(self, call: _FetchCall, url: str) -> bytes:
        """Fetch a robots.txt under the deadline of the call that needs it."""
        return self._get(
            _FetchCall(
                url=url,
                etag=None,
                last_modified=None,
                follow_robots=False,
                bytes_max=min(ROBOTS_BYTES_MAX, call.bytes_max),
                deadline=call.deadline,
            )
        ).data

    def _tls_context(self) -> "ssl.SSLContext":
        if self._tls is None:
            import httpx

            self._tls = httpx.create_ssl_context(verify=True, trust_env=False)
        return self._tls


def _to_fetched(
    call: _FetchCall,
    at: WebUrl,
    answer: "HttpResponse",
    *,
    is_same: bool,
    permanent_url: str | None,
) -> Fetched:
    content_type = answer.headers.get("content-type", "")[:1000]
    mime = _MIME.match(content_type)
    charset = _CHARSET.search(content_type)
    return Fetched(
        status="not_modified" if is_same else "ok",
        url=call.url,
        final_url=at.text,
        data=b"" if is_same else _body(answer, call.bytes_max, call.source),
        mime=mime[1].lower() if mime else None,
        charset=charset[1].lower() if charset else None,
        etag=_valid_header(answer.headers.get("etag")),
        last_modified=_valid_header(answer.headers.get("last-modified")),
        permanent_url=permanent_url,
        robots_tag=answer.headers.get("x-robots-tag", "")[:1000],
    )


def _body(answer: "HttpResponse", bytes_max: int, source: str) -> bytes:
    announced = answer.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > bytes_max:
        raise over_limit_error(bytes_max, source)
    return read_body(answer.parts, answer.headers.get("content-encoding"), bytes_max, source)


def _valid_header(value: str | None) -> str | None:
    """A validator that is safe to send back as it came; None if it is not."""
    return value if value is not None and _HEADER_VALUE.fullmatch(value) else None


def _raise_for_redirect(error: SourceError, at: WebUrl, source: str) -> NoReturn:
    """Raise the error of a redirect's target, under the address that the caller gave."""
    detail = f"redirected to {printable_url(at.text)}: {error.reason}"
    if isinstance(error, RateLimited):
        raise RateLimited(detail, retry_after_s=error.retry_after_s, source=source) from error
    raise type(error)(detail, source=source) from error


__all__ = ["RETRY_AFTER_S_MAX", "FetchSettings", "Fetched", "Fetcher", "retry_after_s"]
