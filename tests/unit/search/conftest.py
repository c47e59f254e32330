"""A small home to ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from search_home import SearchHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SearchHome]:
    home = SearchHome(tmp_path / "home")
    yield home
    home.close()
