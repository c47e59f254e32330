"""How a browser is let in without a token: a link that opens once becomes a cookie."""

import hmac
import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from kb.model.decoding import decode_json
from kb.serve.shared import SharedFile

_SECRET_BYTES: Final = 32
_LINK_S: Final = 3_600.0
_LINKS_MAX: Final = 16
_SESSIONS_MAX: Final = 64


class _Secrets(Struct, kw_only=True):
    links: dict[str, float] = {}
    """With the time at which each ends."""
    cookies: list[str] = []


class Sessions:
    """The links and cookies of one server; they end with it. For all its processes and threads."""

    def __init__(
        self,
        draw: Callable[[int], bytes],
        now_s: Callable[[], float] = time.monotonic,
        file: SharedFile | None = None,
    ) -> None:
        """`draw` gives random bytes, `now_s` seconds that never go back, alike in all processes."""
        self._draw = draw
        self._now_s = now_s
        self._file = file or SharedFile()

    def link(self) -> str:
        """The secret of a new link, good for an hour; the oldest of too many is forgotten."""
        secret = self._draw(_SECRET_BYTES).hex()
        with self._file.locked():
            kept = self._read()
            kept.links[secret] = self._now_s() + _LINK_S
            for old in list(kept.links)[:-_LINKS_MAX]:
                del kept.links[old]
            self._write(kept)
        return secret

    def opened(self, secret: str) -> str | None:
        """The cookie that a link becomes; None for one that was used, is too old, or never was."""
        shown = secret.encode()
        with self._file.locked():
            kept = self._read()
            matches = [link for link in kept.links if hmac.compare_digest(link.encode(), shown)]
            end_s = kept.links.pop(matches[0]) if matches else 0.0
            if end_s < self._now_s() or not matches:
                return None
            cookie = self._draw(_SECRET_BYTES).hex()
            kept.cookies = [*kept.cookies, cookie][-_SESSIONS_MAX:]
            self._write(kept)
        return cookie

    def holds(self, cookie: str) -> bool:
        """Whether a cookie is one of these; it takes as long for each, and for none."""
        shown = cookie.encode("utf-8", "replace")
        with self._file.locked():
            own_cookies = [cookie.encode() for cookie in self._read().cookies]
        matches = [own for own in own_cookies if hmac.compare_digest(own, shown)]
        return bool(matches)

    def _read(self) -> _Secrets:
        data = self._file.read()
        return decode_json(data, _Secrets) if data else _Secrets()

    def _write(self, kept: _Secrets) -> None:
        self._file.replace(msgspec.json.encode(kept))


def cookie_named(header: str, name: str) -> str:
    """The value of a cookie in a Cookie header; empty where it is not there, or twice."""
    parts = (part.strip().partition("=") for part in header.split(";"))
    values = [value for key, _, value in parts if key == name]
    return values[0] if len(values) == 1 else ""
