"""A home, and a site to take in."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from doc_site import DocSite
from loopback import serving
from sync_home import SyncHome


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[SyncHome]:
    """A home that is kept current."""
    home = SyncHome(tmp_path)
    yield home
    home.close()


@pytest.fixture
def docs_site() -> Iterator[DocSite]:
    """A site without pages yet."""
    with serving() as server:
        yield DocSite(server)
