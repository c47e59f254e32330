"""What a check says of caches that it cannot compare."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import SmallHome


@pytest.fixture
def full(tmp_path: Path) -> Iterator[SmallHome]:
    """A home with a doc, everything done, both caches level."""
    home = SmallHome(tmp_path / "home")
    home.add("tea.md", "# Tea\n\nGreen tea is steeped.")
    assert home.check().sound
    yield home
    home.close()


def test_a_cache_that_cannot_catch_up_is_told(
    full: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be compared is not called sound."""

    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    full.add("milk.md", "# Milk\n\nIt is white.")
    with monkeypatch.context() as patched:
        patched.setattr(full.dense, "apply", no_room)
        findings = full.check().findings
    said = [(found.place, found.problem) for found in findings]
    assert said == [("dense", "the dense cache could not be written: No space left on device")]
    assert full.check().sound
