"""Which addresses may be connected to: public ones, and those that the settings name."""

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from kb.errors import ConfigError, Refused, Transient
from kb.intake.sync.weburl import WebUrl
from kb.model.deadline import Deadline

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
_Net = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Iterable[str]]
"""From a name and a port to the addresses, as text; raises OSError where there are none."""

_GLOBAL_IPV6: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = ipaddress.IPv6Network("2002::/16")
# Set aside, whatever the interpreter's own tables say: the 6to4 relays, Teredo with its
# neighbours, and addresses for documentation.
_SPECIAL_NETS: Final = tuple(
    ipaddress.ip_network(net)
    for net in ("192.88.99.0/24", "2001::/23", "2001:db8::/32", "3fff::/20")
)
_HOST: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_ENTRY: Final = re.compile(
    r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<plain>[^:\[\]]*))(?::(?P<port>[0-9]+))?"
)


class _AllowEntry(Struct, frozen=True):
    """One entry of `allow`: a host by name or a network, with a port or for all."""

    host: str | None
    net: _Net | None
    port: int | None


class AllowList:
    """What may be connected to although it is not public."""

    def __init__(self, entries: Iterable[str]) -> None:
        """Read hosts, addresses and networks, each with `:port` or without; raises ConfigError."""
        self._entries = tuple(map(_parse_entry, entries))

    def has(self, url: WebUrl, ip: Ip) -> bool:
        """Whether an entry names the URL's host or the address, and its port."""
        return any(
            (entry.host == url.host or (entry.net is not None and ip in entry.net))
            and entry.port in {None, url.port}
            for entry in self._entries
        )


def system_resolve(host: str, port: int) -> tuple[str, ...]:
    """Every address that the system knows for a name."""
    # As bytes, which the library passes on untouched; text it would encode once more.
    rows = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in rows))


def checked_addresses(
    url: WebUrl, allowed: AllowList, resolve: Resolve, deadline: Deadline, source: str
) -> tuple[str, ...]:
    """The addresses of the URL's host, looked up once, every one checked.

    Whoever connects uses these and looks nothing up again, so a second answer from the name
    server changes nothing. Raises Refused where any of them may not be reached: a name with one
    public and one private address is a trap. Raises Transient where there is none.
    """
    ips = _literal_ip(url.host) or _resolve_host(url, resolve, deadline, source)
    for ip in ips:
        if not (is_public(ip) or allowed.has(url, ip)):
            named = "" if str(ip) == url.host else f"at {ip}, which is "
            detail = f"{url.host} is {named}not a public address; fetch.allow can name exceptions"
            raise Refused(detail, source=source)
    return tuple(map(str, ips))


def is_public(ip: Ip) -> bool:
    """Whether the address belongs to the public internet, and not to this machine or its nets.

    An IPv6 address that carries an IPv4 one (NAT64, 6to4) is as public as that.
    """
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not (ip.is_multicast or ip.is_reserved or _is_special(ip))
    if ip in _NAT64:
        return is_public(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF))
    if ip in _SIX_TO_FOUR:
        return is_public(ipaddress.IPv4Address(int(ip) >> 80 & 0xFFFF_FFFF))
    # Only this block is given out; IPv4-mapped, link-local, site-local and multicast lie outside.
    return ip in _GLOBAL_IPV6 and ip.is_global and not _is_special(ip)


def _is_special(ip: Ip) -> bool:
    return any(ip in net for net in _SPECIAL_NETS)


def _literal_ip(host: str) -> tuple[Ip, ...]:
    try:
        return (ipaddress.ip_address(host),)
    except ValueError:
        return ()


def _resolve_host(url: WebUrl, resolve: Resolve, deadline: Deadline, source: str) -> tuple[Ip, ...]:
    try:
        ips = deadline.wait_for(
            lambda: tuple(map(ipaddress.ip_address, resolve(url.host, url.port)))
        )
    except TimeoutError as error:
        detail = f"no answer within {deadline.total_s:g} s; {url.host} could not be looked up"
        raise Transient(detail, source=source) from error
    except (OSError, ValueError) as error:
        raise Transient(f"the host {url.host} could not be looked up", source=source) from error
    if not ips:
        raise Transient(f"the host {url.host} has no address", source=source)
    return ips


def _parse_entry(entry: str) -> _AllowEntry:
    match = _ENTRY.fullmatch(entry.lower())
    # A bare IPv6 address has colons of its own.
    text = entry.lower() if match is None else match["bracketed"] or match["plain"] or ""
    port = int(match["port"][:6]) if match is not None and match["port"] else None
    if port is not None and not 1 <= port <= 65_535:
        raise ConfigError(f"{entry}: the port is not between 1 and 65535", place="fetch.allow")
    try:
        return _AllowEntry(None, ipaddress.ip_network(text), port)
    except ValueError as error:
        last = text.rpartition(".")[2]
        if _HOST.fullmatch(text) is None or last.isdigit():
            detail = f"{entry} is no host, address or network such as 10.0.0.0/8"
            raise ConfigError(detail, place="fetch.allow") from error
        return _AllowEntry(text, None, port)
