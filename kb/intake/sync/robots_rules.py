"""What does a robots.txt say? A pure function of its text, by RFC 9309.

The group that names the program counts, or else the group for all. Of the rules that match an
address the longest one decides, and of two equally long ones the one that allows.
"""

import math
import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.intake.sync.weburl import normalize_escapes

CRAWL_DELAY_S_MAX: Final = 600.0
_RULES_MAX: Final = 20_000
_SITEMAPS_MAX: Final = 1_000
_LINE: Final = re.compile(r"\s*([A-Za-z-]{1,40})\s*:\s*(.*)")
# What stands for itself in a pattern; all else is escaped, as it is in addresses.
_KEPT: Final = "!#$%&'()*+,/:;=?@[]~"


class RobotsRules(Struct, frozen=True, kw_only=True):
    """What a site asks of one program."""

    patterns: tuple[tuple[str, bool], ...] = ()
    """Patterns of paths, longest first, and whether each allows; of equal ones those that do."""
    crawl_delay_s: float = 0.0
    """How long to wait between two requests; at most CRAWL_DELAY_S_MAX."""
    sitemaps: tuple[str, ...] = ()
    """As written, for every program."""

    def allows(self, target: str) -> bool:
        """Whether a path with its query may be fetched."""
        path = normalize_escapes(target)
        return next((allows for rule, allows in self.patterns if _matches(rule, path)), True)


class _Group:
    """The lines of one group, while they are read."""

    def __init__(self) -> None:
        self.agents: list[str] = []
        self.patterns: list[tuple[str, bool]] = []
        self.delay_s = 0.0
        self.is_open = True


def parse_robots(text: str, user_agent: str) -> RobotsRules:
    """The rules for a program, which is known by the first word of its user agent."""
    groups: list[_Group] = []
    sitemaps: list[str] = []
    for name, value in _lines(text):
        if name == "sitemap":
            sitemaps.append(value)
        elif name == "user-agent":
            if not groups or not groups[-1].is_open:
                groups.append(_Group())
            groups[-1].agents.append(value.partition("/")[0].strip().lower())
        elif groups:
            groups[-1].is_open = False
            _note(groups[-1], name, value)
    own = user_agent.partition("/")[0].strip().lower()
    chosen = [group for group in groups if own in group.agents]
    chosen = chosen or [group for group in groups if "*" in group.agents]
    patterns = [rule for group in chosen for rule in group.patterns][:_RULES_MAX]
    return RobotsRules(
        patterns=tuple(sorted(patterns, key=lambda rule: (-len(rule[0]), not rule[1]))),
        crawl_delay_s=max((group.delay_s for group in chosen), default=0.0),
        sitemaps=tuple(dict.fromkeys(sitemaps))[:_SITEMAPS_MAX],
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.removeprefix("\ufeff").splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name = match[1].lower()
        # An address may hold a #; only in the other lines it begins a comment.
        value = match[2] if name == "sitemap" else match[2].partition("#")[0]
        yield name, value.strip()


def _note(group: _Group, name: str, value: str) -> None:
    match name:
        case "allow" | "disallow" if value:
            group.patterns.append((_pattern(value), name == "allow"))
        case "crawl-delay":
            try:
                delay_s = float(value)
            except ValueError:
                return
            if math.isfinite(delay_s) and delay_s > 0:
                group.delay_s = max(group.delay_s, min(delay_s, CRAWL_DELAY_S_MAX))
        case _:
            pass


def _pattern(value: str) -> str:
    from urllib.parse import quote

    return normalize_escapes(quote(value, safe=_KEPT))


def _matches(pattern: str, path: str) -> bool:
    """Whether a pattern fits the start of a path, or all of it if it ends in `$`."""
    is_whole = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    last = parts.pop() if is_whole and parts else None
    for part in parts:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if last is not None:
        return path.endswith(last) and len(path) - len(last) >= at
    return not is_whole or at == len(path)
