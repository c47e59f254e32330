"""A web address, parsed once: kb connects to exactly what it has checked.

Only the fields of `WebUrl` are passed on. No other parser reads the text again, so none can see
another host in it.
"""

import re
from typing import Final

from msgspec import Struct

from kb.errors import Refused

URL_CHARS_MAX: Final = 8_192
_SHOWN_CHARS_MAX: Final = 300
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SHAPE: Final = re.compile(r"(?:https?)://([^/?#]*).*", re.IGNORECASE)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORT: Final = re.compile(r"(?:.*\]|[^:\]]*)(?::([0-9]*))?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# As in browsers: a host whose last part is a number, also a hexadecimal one, is an IPv4 address.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_USERINFO: Final = re.compile(r"//[^/?#]*@")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")


class WebUrl(Struct, frozen=True, kw_only=True):
    """An http or https address without user, password or fragment."""

    scheme: str
    host: str
    """Lower-case ASCII: a name (IDNA-encoded), an IPv4 or, without brackets, an IPv6 address."""
    port: int
    target: str
    """Path and query as they are sent; begins with `/`."""

    @property
    def netloc(self) -> str:
        """Host and port, as the Host header has them; without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def text(self) -> str:
        """The whole address."""
        return self.origin + self.target

    @property
    def name(self) -> str:
        """The last part of the path, decoded; empty if the path ends in `/`."""
        import urllib.parse

        part = self.target.partition("?")[0].rpartition("/")[2]
        name = urllib.parse.unquote(part, errors="replace")
        return name if name.isprintable() and "/" not in name else part


def printable_url(url: str) -> str:
    """The address for messages: as given, but on one line, of limited length, without password."""
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in url)
    line = _USERINFO.sub("//...@", line, count=1)
    return line if len(line) <= _SHOWN_CHARS_MAX else f"{line[:_SHOWN_CHARS_MAX]}..."


def parse_url(url: str) -> WebUrl:
    """Read an address. Raises Refused, which names the address and the rule."""
    import httpx

    source = printable_url(url)
    _check_text(url, source)
    shape = _SHAPE.fullmatch(url)
    if shape is None:
        raise Refused(_not_web_reason(url), source=source)
    authority = shape.group(1)
    if "@" in authority:
        raise Refused("kb fetches no address with a user or password in it", source=source)
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Refused("not a valid address", source=source) from error
    scheme = read.scheme
    return WebUrl(
        scheme=scheme,
        host=_host(read.raw_host.decode("ascii"), source),
        port=_port(authority, scheme, source),
        target=read.raw_path.decode("ascii"),
    )


def join_url(base: WebUrl, location: str) -> WebUrl:
    """The address of a reference on the page `base`. Raises Refused as `parse_url` does."""
    import httpx

    _check_text(location, printable_url(location))
    try:
        return parse_url(str(httpx.URL(base.text).join(location)))
    except httpx.InvalidURL as error:
        raise Refused("not a valid address", source=printable_url(location)) from error


def normalize_url(url: WebUrl) -> str:
    """The normal form of all spellings that RFC 3986 calls equivalent; the query stays as it is."""
    return url.origin + normalize_escapes(url.target)


def normalize_escapes(target: str) -> str:
    """The normal form of a path's or query's escapes."""
    return _ESCAPE.sub(_normal_escape, target)


def _normal_escape(match: re.Match[str]) -> str:
    digits = match.group(1)
    if digits is None:
        return "%25"
    char = chr(int(digits, 16))
    # An escaped dot stays: unescaped, it could become a path's `..`.
    return char if char in _UNRESERVED else f"%{digits.upper()}"


def _check_text(url: str, source: str) -> None:
    if len(url) > URL_CHARS_MAX:
        raise Refused(f"the address is over {URL_CHARS_MAX:,} characters", source=source)
    if "\\" in url:
        raise Refused("the address has a backslash, which programs read differently", source=source)
    if " " in url or not url.isprintable():
        raise Refused("the address has white space or control characters", source=source)


def _not_web_reason(url: str) -> str:
    scheme = _SCHEME.match(url)
    if scheme is None:
        return "not an address; it should begin with http:// or https://"
    if scheme.group(1).lower() in _DEFAULT_PORTS:
        return "an address has two slashes and a host after its scheme"
    return "kb fetches only http and https"


def _host(host: str, source: str) -> str:
    """The host in its normal form; incomplete numeric IPv4 addresses are refused."""
    import ipaddress

    host = host.lower()
    if ":" in host:
        # A zone (`%eth0`) names one of this machine's own networks.
        if "%" in host:
            raise Refused("kb fetches no address with a network zone", source=source)
        return ipaddress.IPv6Address(host).compressed
    host = host.removesuffix(".")
    if not host:
        raise Refused("the address has no host", source=source)
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Refused("the host is not a valid name", source=source)
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError as error:
            detail = "an IPv4 address is written as four decimal numbers"
            raise Refused(detail, source=source) from error
    return host


def _port(authority: str, scheme: str, source: str) -> int:
    match = _PORT.fullmatch(authority)
    if match is None:
        raise Refused("the port is not a number", source=source)
    digits = match.group(1)
    if not digits:
        return _DEFAULT_PORTS[scheme]
    port = int(digits) if len(digits) <= 5 else 0
    if not 1 <= port <= 65_535:
        raise Refused("the port is not between 1 and 65535", source=source)
    return port
