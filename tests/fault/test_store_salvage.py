"""A store of which a page is lost: the check goes on, and the repair loses nothing in silence."""

from pathlib import Path

import pytest
from crash_rig import Rig
from page_sweep import filled, pages_of, sweep

SAMPLED = 20


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return filled(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("share", range(4))
def test_some_lost_pages(rig: Rig, tmp_path: Path, share: int) -> None:
    """Both roots, and pages from all over the file."""
    pages = sorted({0, 1, *(number * pages_of(rig) // SAMPLED for number in range(SAMPLED))})
    told = sweep(rig, pages[share::4], tmp_path)
    assert told.untouched + told.mended <= len(pages[share::4])
