"""Claims about which version is the later one."""

from itertools import pairwise

import pytest

from kb.knowledge.entries import compare

ASCENDING = (
    "0.0.9",
    "0.9.0",
    "1.0.0-0",
    "1.0.0-7",
    "1.0.0-11",
    "1.0.0-a",
    "1.0.0-a.1",
    "1.0.0-a.b",
    "1.0.0-a-b",
    "1.0.0-b.2",
    "1.0.0-b.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1-alpha",
    "1.9.0",
    "1.10.0",
    "2.0.0",
    "10.0.0",
)


@pytest.mark.parametrize(("earlier", "later"), [*pairwise(ASCENDING)])
def test_versions_ascend_by_their_parts(earlier: str, later: str) -> None:
    """By value, a pre-release before its release, numbers before words, short before long."""
    assert (compare(earlier, later), compare(later, earlier)) == (-1, 1)


def test_order_holds_over_any_distance() -> None:
    """What comes first in the list is the lesser of every pair."""
    for place, one in enumerate(ASCENDING):
        assert [compare(one, other) for other in ASCENDING] == [
            (place > there) - (place < there) for there in range(len(ASCENDING))
        ]


def test_build_metadata_make_no_difference() -> None:
    """What stands behind a plus names the same version."""
    assert compare("1.0.0+linux", "1.0.0") == 0
    assert compare("1.0.0-a+1", "1.0.0-a+2.x-y") == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.0",
        "1.0.0.0",
        "v1.0.0",
        "01.0.0",
        "1.0.0 ",
        "1.-1.0",
        "1.0.0-",
        "1.0.0-a..b",
        "1.0.0-01",
        "1.0.0-a_b",
        "1.0.0+",
        "1.0.0+a+b",
        "1.0.\u0661",
        "1.0.0-\u0661",
        "1.0.0-" + "a" * 128,
    ],
)
def test_what_is_no_version_is_refused(text: str) -> None:
    """No part may be missing, empty, padded or of other signs."""
    with pytest.raises(ValueError, match="version"):
        compare(text, "1.0.0")
