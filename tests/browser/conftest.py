"""One browser for all tests of the page."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from http_server import Running
from page_browser import Page, chrome, looking

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def driver() -> Iterator["Chrome"]:
    made = chrome()
    yield made
    made.quit()


@pytest.fixture
def page(driver: "Chrome", server: Running) -> Iterator[Page]:
    """The page of the server that a module of tests has."""
    with looking(driver, server.port) as found:
        yield found
