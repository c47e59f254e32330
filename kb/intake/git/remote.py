"""Parses the address of the remote `origin`. Connects to nothing."""

import re
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

_CHARS_MAX: Final = 2_000
_HOST: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9_])?\.?|[0-9A-Fa-f:.]{2,45}"
)
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_SCP: Final = re.compile(r"(?:(?P<user>[^@/:]*)@)?(?P<host>\[[^\]/]*\]|[^:/@]+):(?P<path>.*)")
_HELPER: Final = re.compile(r"[A-Za-z0-9]+::")
_SCHEMES: Final = "a path, file://, ssh://, https://, or http:// to this machine"


class BadRemote(Exception):
    """An address that kb does not use; `str()` says why."""


class Remote(Struct, frozen=True, kw_only=True):
    """An address in its parts. They are checked: none can be read as an option."""

    kind: Literal["local", "ssh", "http"]
    path: str
    """For `http` the whole address, without user and password."""
    host: str = ""
    port: int | None = None
    user: str | None = None


def shown(address: str) -> str:
    """An address for storage and messages: on one line, without user and password."""
    bare = re.sub(r"//[^/\s]*@", "//", address)
    return "".join(sign if sign.isprintable() else "?" for sign in bare)[:_CHARS_MAX]


def parsed(address: str, token_name: str) -> Remote:
    """An address as git writes it. Raises BadRemote.

    `token_name` is the variable that a password belongs in.
    """
    if not address.strip() or len(address) > _CHARS_MAX or not address.isprintable():
        raise BadRemote("its address is empty, too long, or has control characters")
    if _HELPER.match(address):
        raise BadRemote("kb starts no helper programs (`name::…`)")
    if "://" in address:
        return _of_url(address, token_name)
    scp = _SCP.fullmatch(address)
    if scp is not None:
        host = scp["host"].removeprefix("[").removesuffix("]")
        return _ssh(host, None, scp["user"] or None, scp["path"])
    return Remote(kind="local", path=address)


def host_of(remote: Remote) -> str:
    """The host that would get a token, with its port unless that is the default."""
    name = f"[{remote.host}]" if ":" in remote.host else remote.host
    usual = 443 if remote.path.startswith("https:") else 80
    return name if remote.port in (None, usual) else f"{name}:{remote.port}"


def may_have_token(remote: Remote, token_host: str) -> bool:
    """Whether a remote is on the host that the user has set for the token."""
    if remote.kind != "http" or not token_host:
        return False
    usual = ":443" if remote.path.startswith("https:") else ":80"
    return host_of(remote).casefold() == token_host.casefold().removesuffix(usual)


def _of_url(address: str, token_name: str) -> Remote:
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        raise BadRemote("its address cannot be read") from error
    if url.password is not None:
        raise BadRemote(f"its address has a password in it; put that in {token_name} instead")
    match url.scheme.lower():
        case "file" if url.netloc in ("", "localhost"):
            return Remote(kind="local", path=unquote(url.path))
        case "ssh":
            return _ssh(url.hostname or "", port, url.username, unquote(url.path))
        case "https" | "http":
            return _http(url, port)
        case _:
            raise BadRemote(f"kb uses no such address for git; use {_SCHEMES}")


def _ssh(host: str, port: int | None, user: str | None, path: str) -> Remote:
    if not _HOST.fullmatch(host) or (user is not None and not _USER.fullmatch(user)):
        raise BadRemote("its host or user is not a valid name")
    # git marks paths below a home like this in URLs.
    path = path[1:] if path.startswith("/~") else path
    if not path or path.startswith("-"):
        raise BadRemote("its path is empty, or begins like an option")
    return Remote(kind="ssh", host=host, port=port, user=user, path=path)


def _http(url: SplitResult, port: int | None) -> Remote:
    host = url.hostname or ""
    if not _HOST.fullmatch(host):
        raise BadRemote("its host is not a valid name")
    if url.query or url.fragment:
        raise BadRemote("its address has a query or a fragment")
    scheme = url.scheme.lower()
    if scheme == "http" and not _is_loopback(host):
        raise BadRemote("http:// works only to this machine; use https://")
    place = f"[{host}]" if ":" in host else host
    base = f"{scheme}://{place}{f':{port}' if port else ''}{url.path}"
    return Remote(kind="http", host=host, port=port, user=url.username, path=base)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
