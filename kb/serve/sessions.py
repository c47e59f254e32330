"""How a browser is let in without a token: a link that opens once becomes a cookie."""

import hmac
import time
from collections.abc import Callable
from typing import Final

_SECRET_BYTES: Final = 32
_LINK_S: Final = 3_600.0
_LINKS_MAX: Final = 16
_SESSIONS_MAX: Final = 64


class Sessions:
    """The links and cookies of one server; they end with it. For one loop and its threads."""

    def __init__(
        self, draw: Callable[[int], bytes], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`draw` gives random bytes, `now_s` seconds that never go back."""
        self._draw = draw
        self._now_s = now_s
        self._links: dict[str, float] = {}
        self._cookies: list[str] = []

    def link(self) -> str:
        """The secret of a new link, good for an hour; the oldest of too many is forgotten."""
        secret = self._draw(_SECRET_BYTES).hex()
        self._links[secret] = self._now_s() + _LINK_S
        for old in list(self._links)[:-_LINKS_MAX]:
            self._links.pop(old, None)
        return secret

    def opened(self, secret: str) -> str | None:
        """The cookie that a link becomes; None for one that was used, is too old, or never was."""
        shown = secret.encode()
        matches = [link for link in list(self._links) if hmac.compare_digest(link.encode(), shown)]
        end_s = self._links.pop(matches[0], 0.0) if matches else 0.0
        if end_s < self._now_s() or not matches:
            return None
        cookie = self._draw(_SECRET_BYTES).hex()
        self._cookies = [*self._cookies, cookie][-_SESSIONS_MAX:]
        return cookie

    def holds(self, cookie: str) -> bool:
        """Whether a cookie is one of these; it takes as long for each, and for none."""
        shown = cookie.encode("utf-8", "replace")
        own_cookies = [cookie.encode() for cookie in self._cookies]
        matches = [own for own in own_cookies if hmac.compare_digest(own, shown)]
        return bool(matches)


def cookie_named(header: str, name: str) -> str:
    """The value of a cookie in a Cookie header; empty where it is not there, or twice."""
    parts = (part.strip().partition("=") for part in header.split(";"))
    values = [value for key, _, value in parts if key == name]
    return values[0] if len(values) == 1 else ""
