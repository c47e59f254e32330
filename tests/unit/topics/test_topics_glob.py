"""Globs: one level, all levels, and no pattern that takes for ever."""

import itertools
import re

import pytest
from growth import assert_linear

from kb.knowledge.topics.glob import matches


@pytest.mark.parametrize(
    ("pattern", "slug", "expected"),
    [
        ("*", "a", True),
        ("*", "a/b", False),
        ("**", "a", True),
        ("**", "a/b/c", True),
        ("a/*", "a/b", True),
        ("a/*", "a", False),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("a/**", "ab/c", False),
        ("**/c", "c", True),
        ("**/c", "a/b/c", True),
        ("**/c", "a/bc", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a/**/c", "a/b", False),
        ("a/**/*", "a/b/c", True),
        ("a/**/*", "a", False),
        ("**/**", "a", True),
        ("m/j*", "m/jean", True),
        ("m/j*", "m/ryan", False),
        ("*n", "jean", True),
        ("j*a*n", "jean", True),
        ("j*a*n", "jeam", False),
        ("j**n", "jean", True),
        ("j**n", "j/n", False),
        ("je?n", "jean", True),
        ("je?n", "jen", False),
        ("a?b", "a/b", False),
        ("jean", "jean", True),
        ("jean", "Jean", False),
        ("", "a", False),
        ("a/", "a", False),
        ("/a", "a", False),
        ("[ab]", "a", False),
        ("茶*", "茶葉", True),
    ],
)
def test_what_a_pattern_means(pattern: str, slug: str, expected: bool) -> None:
    """`*` and `?` stay within a part; `**` is any number of parts, at the end at least one."""
    assert matches(pattern, slug) is expected


def test_every_short_pattern_is_what_a_plain_search_finds() -> None:
    """Going back to the last star only loses nothing: compared with trying everything."""
    slugs = ["/".join(p) for n in (1, 2, 3) for p in itertools.product(("a", "ab", "b"), repeat=n)]
    parts = ("a", "*", "**", "a*", "*b")
    for count in (1, 2, 3):
        for chosen in itertools.product(parts, repeat=count):
            slow = re.compile(_as_regex(chosen))
            for slug in slugs:
                pattern = "/".join(chosen)
                assert matches(pattern, slug) == bool(slow.fullmatch(slug)), (pattern, slug)


def _as_regex(parts: tuple[str, ...]) -> str:
    said = ""
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            said += "[^/]+(?:/[^/]+)*" if last else "(?:[^/]+/)*"
        else:
            said += part.replace("*", "[^/]*") + ("" if last else "/")
    return said


@pytest.mark.parametrize(
    ("star", "pattern_end", "part", "slug_end"),
    [("**/" * 80, "a", "b/" * 500, "b"), ("*a" * 60, "c", "a" * 120, ""), ("*" * 200, "", "a", "")],
)
def test_no_pattern_takes_long(star: str, pattern_end: str, part: str, slug_end: str) -> None:
    """Many stars cost no more than the product of the lengths."""
    pattern, slug = star + pattern_end, part + slug_end
    assert_linear(lambda one: matches(one, slug), pattern, star + pattern)
    assert_linear(lambda one: matches(pattern, one), slug, part + slug)
