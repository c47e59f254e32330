"""What does a site ask of programs that follow links? Reads its robots.txt once a day."""

import threading
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kb.errors import AuthFailed, Permanent, Refused, SourceError, Transient
from kb.intake.sync.robots_rules import RobotsRules, parse_robots
from kb.intake.sync.weburl import WebUrl
from kb.model.clock import Clock

ROBOTS_BYTES_MAX: Final = 512 << 10
_ORIGINS_MAX: Final = 256
_RULES_KEPT_MS: Final = 86_400_000
_FAILURE_KEPT_MS: Final = 60_000


class _CachedRules(Struct, frozen=True, kw_only=True):
    """The rules of one site's robots.txt."""

    rules: RobotsRules | None
    """None if the file could not be fetched."""
    until_ms: int


class Robots:
    """Checks URLs against robots.txt, and caches the rules of a few hundred sites."""

    def __init__(self, user_agent: str, clock: Clock) -> None:
        self._user_agent = user_agent
        self._clock = clock
        self._cached: dict[str, _CachedRules] = {}
        self._lock = threading.Lock()

    def check(self, url: WebUrl, get: Callable[[str], bytes], source: str) -> None:
        """Return if the site allows the URL.

        `get` fetches its robots.txt under the rules for any address. Raises Refused if the file
        forbids it; Transient if the file cannot be read now, which forbids it for now. A site that
        has no such file, or does not show it, allows everything.
        """
        if not self.rules(url, get, source).allows(url.target):
            raise Refused("its robots.txt forbids programs to fetch it", source=source)

    def rules(self, url: WebUrl, get: Callable[[str], bytes], source: str) -> RobotsRules:
        """What the URL's site asks for. Raises Transient if its file cannot be read now."""
        cached = self._of(url, get)
        if cached.rules is None:
            raise Transient("its robots.txt cannot be read now; try again later", source=source)
        return cached.rules

    def _of(self, url: WebUrl, get: Callable[[str], bytes]) -> _CachedRules:
        now_ms = self._clock.lease_ms()
        with self._lock:
            cached = self._cached.get(url.origin)
        if cached is not None and now_ms < cached.until_ms:
            return cached
        rules = self._fetch(url.origin, get)
        kept_ms = _FAILURE_KEPT_MS if rules is None else _RULES_KEPT_MS
        cached = _CachedRules(rules=rules, until_ms=now_ms + kept_ms)
        with self._lock:
            self._cached.pop(url.origin, None)
            self._cached[url.origin] = cached
            if len(self._cached) > _ORIGINS_MAX:
                del self._cached[next(iter(self._cached))]
        return cached

    def _fetch(self, origin: str, get: Callable[[str], bytes]) -> RobotsRules | None:
        try:
            text = get(f"{origin}/robots.txt").decode("utf-8", "replace")
        except (AuthFailed, Permanent):
            text = ""
        except SourceError:
            # Also a file that is too large or redirects to a refused address: its rules are
            # unknown.
            return None
        return parse_robots(text, self._user_agent)
