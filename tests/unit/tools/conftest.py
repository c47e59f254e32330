"""A small home whose tools can be called."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools_home import ToolsHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ToolsHome]:
    home = ToolsHome(tmp_path / "home")
    yield home
    home.close()
