"""A home with sources, and a server to be asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import LoopbackServer, serving
from sync_home import SyncHome


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[SyncHome]:
    """A home that is kept current."""
    home = SyncHome(tmp_path)
    yield home
    home.close()


@pytest.fixture
def site() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running
