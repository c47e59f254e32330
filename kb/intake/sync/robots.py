"""What does a site ask of those that follow links? Its robots.txt, read once a day."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import AuthFailed, Permanent, Refused, SourceError, Transient
from kb.intake.sync.weburl import WebUrl
from kb.model.clock import Clock

if TYPE_CHECKING:
    from urllib.robotparser import RobotFileParser

ROBOTS_BYTES_MAX: Final = 512 << 10
_ORIGINS_MAX: Final = 256
_RULES_KEPT_MS: Final = 86_400_000
_FAILURE_KEPT_MS: Final = 60_000


class _CachedRules(Struct, frozen=True, kw_only=True):
    """The rules of one site's robots.txt."""

    rules: "RobotFileParser | None"
    """None where the file could not be fetched."""
    until_ms: int


class Robots:
    """Checks URLs against robots.txt, and caches the rules of a few hundred sites."""

    def __init__(self, user_agent: str, clock: Clock) -> None:
        self._user_agent = user_agent
        self._clock = clock
        self._cached: dict[str, _CachedRules] = {}
        self._lock = threading.Lock()

    def check(self, url: WebUrl, get: Callable[[str], bytes], source: str) -> None:
        """Pass where the site lets us in.

        `get` fetches its robots.txt under the rules for any address. Raises Refused where the
        file says no; Transient where it cannot be had for now, which is a no for now. A site
        that has no such file, or does not show it, asks nothing.
        """
        cached = self._of(url, get)
        if cached.rules is None:
            raise Transient("its robots.txt cannot be had for now", source=source)
        if not cached.rules.can_fetch(self._user_agent, url.text):
            raise Refused("its robots.txt asks not to fetch it", source=source)

    def _of(self, url: WebUrl, get: Callable[[str], bytes]) -> _CachedRules:
        now_ms = self._clock.lease_ms()
        with self._lock:
            cached = self._cached.get(url.origin)
        if cached is not None and now_ms < cached.until_ms:
            return cached
        rules = _fetch_rules(url.origin, get)
        kept_ms = _FAILURE_KEPT_MS if rules is None else _RULES_KEPT_MS
        cached = _CachedRules(rules=rules, until_ms=now_ms + kept_ms)
        with self._lock:
            self._cached.pop(url.origin, None)
            self._cached[url.origin] = cached
            if len(self._cached) > _ORIGINS_MAX:
                del self._cached[next(iter(self._cached))]
        return cached


def _fetch_rules(origin: str, get: Callable[[str], bytes]) -> "RobotFileParser | None":
    from urllib.robotparser import RobotFileParser

    try:
        text = get(f"{origin}/robots.txt").decode("utf-8", "replace")
    except (AuthFailed, Permanent):
        text = ""
    except SourceError:
        # Also a file that is too large, or that leads where we do not go: a wish we cannot read.
        return None
    rules = RobotFileParser()
    rules.parse(text.removeprefix("\ufeff").splitlines())
    return rules
