"""Every page of a store is lost once: no check dies of it, and no repair loses a doc in silence."""

from collections.abc import Callable
from pathlib import Path

import pytest
from crash_rig import Rig
from store_page_sweep import DOCS, filled, misplaced, pages_of, sweep, zeroed

pytestmark = pytest.mark.slow
SHARES = 16


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return filled(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("damage", [zeroed, misplaced])
def test_every_page(
    rig: Rig, tmp_path: Path, share: int, damage: Callable[[bytes, int], bytes]
) -> None:
    """Each doc is found by its words afterwards, and those that lost their place are named."""
    pages = range(share, pages_of(rig), SHARES)
    told = sweep(rig, pages, tmp_path, damage)
    print(f"{damage.__name__}, {len(pages)} pages: {told}")
    assert told.recovered <= len(pages) * (DOCS + 12)
