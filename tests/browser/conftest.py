"""One browser for all tests of the page."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from page_browser import chrome

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def driver() -> Iterator["Chrome"]:
    made = chrome()
    yield made
    made.quit()
