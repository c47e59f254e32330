"""Globs over slugs: `*` and `?` stay on one level, `**` spans levels. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def matches(pattern: str, slug: str) -> bool:
    """Whether a glob matches a slug.

    `*` is any text and `?` any character without a slash. A part `**` is any number of parts, even
    none; at the end it is at least one: `a/**` is everything below `a`. The time is proportional to
    the product of both lengths, whatever the pattern.
    """
    parts = pattern.split("/")
    if parts[-1] == "**":
        parts.append("*")
    return _fits(parts, slug.split("/"), "**", _part_fits)


def _part_fits(pattern: str, part: str) -> bool:
    return _fits(pattern, part, "*", lambda sign, char: sign in ("?", char))


def _fits(
    pattern: Sequence[_T], items: Sequence[_T], star: _T, same: Callable[[_T, _T], bool]
) -> bool:
    """Whether items fit a pattern in which `star` is any number of them.

    It only ever goes back to the last star: a longer match of an earlier one would gain nothing.
    """
    at = place = 0
    back, taken = -1, 0
    while place < len(items):
        if at < len(pattern) and pattern[at] == star:
            back, taken = at, place
            at += 1
        elif at < len(pattern) and same(pattern[at], items[place]):
            at += 1
            place += 1
        elif back >= 0:
            taken += 1
            at, place = back + 1, taken
        else:
            return False
    return all(part == star for part in pattern[at:])
