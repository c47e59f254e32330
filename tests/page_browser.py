"""A real Chromium that a test looks at the page with, and what it said and asked for."""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest
from http_server import HOST, until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

WANTED: Final = ("chromium", "chromedriver")
ARGUMENTS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--lang=en"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
)
WAIT_S: Final = 100
WIDE: Final = (1200, 860)
PHONE: Final = (360, 740)
# Its own start page and the like are no requests of the page.
_OWN: Final = ("chrome:", "chrome-extension:", "data:", "about:")


def chrome() -> "Chrome":
    """A headless browser; skips the test where none is installed."""
    places = [shutil.which(name) for name in WANTED]
    if None in places:
        pytest.skip("no browser; install the packages chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(places[0])
    for said in ARGUMENTS:
        options.add_argument(said)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(str(places[1])))
    made.set_page_load_timeout(WAIT_S)
    made.set_script_timeout(WAIT_S)
    return made


class Page:
    """The page of one server, in a browser that has forgotten all others."""

    def __init__(self, driver: "Chrome", port: int) -> None:
        self.driver = driver
        self.base = f"http://{HOST}:{port}/"
        self.asked: list[str] = []
        """The addresses of all requests so far, read by `requests`."""
        driver.get("about:blank")
        self.size(*WIDE)
        driver.get(f"{self.base}page/icon.svg")
        driver.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.said()
        driver.get_log("performance")

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, place: str = "") -> "Page":
        """Load the page anew, at a place like `#/search?q=oak`."""
        self.driver.get(f"{self.base}page/icon.svg")
        self.driver.get(self.base + place)
        self.one("main > *")
        return self

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def all(self, css: str) -> "list[WebElement]":
        return self.driver.find_elements("css selector", css)

    def one(self, css: str) -> "WebElement":
        """The first element like this, once it is there."""
        found: WebElement = until(lambda: next(iter(self.all(css)), None))
        return found

    def texts(self, css: str) -> list[str]:
        """What elements say, read at one moment."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        found: list[str] = self.run(script, css)
        return found

    def says(self, css: str, holds: Callable[[list[str]], bool]) -> list[str]:
        """The texts of elements, once they are as wanted."""
        found: list[str] = []

        def hold() -> bool:
            nonlocal found
            found = self.texts(css)
            return holds(found)

        # The texts that held are returned, not those of a moment later.
        try:
            until(hold, wait_s=WAIT_S)
        except AssertionError:
            raise AssertionError(f"{found}, where the page says: {self.texts('main')}") from None
        return found

    def press(self, *keys: str) -> None:
        """Keys for whatever has the focus."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def type(self, css: str, text: str) -> None:
        """Put a text into a field, in the place of what is there."""
        field = self.one(css)
        field.clear()
        field.send_keys(text)

    @property
    def place(self) -> str:
        """What the address says behind the page's own."""
        return str(self.driver.current_url).removeprefix(self.base)

    def is_focused(self, css: str) -> bool:
        return bool(self.run("return document.activeElement?.matches(arguments[0])", css))

    def style(self, css: str, name: str) -> str:
        script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        return str(self.run(script, css, name))

    def is_in_sight(self, css: str) -> bool:
        script = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
            return box.bottom > 60 && box.top < innerHeight"""
        return bool(self.run(script, css))

    def said(self) -> list[str]:
        """What the console has said since it was last asked, but for answers with an error."""
        rows = self.driver.get_log("browser")
        return [row["message"] for row in rows if row["source"] != "network"]

    def requests(self) -> list[str]:
        """The addresses of all requests since the page was first opened."""
        for row in self.driver.get_log("performance"):
            message = json.loads(row["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.asked.append(message["params"]["request"]["url"])
        return [url for url in self.asked if not url.startswith(_OWN)]


@contextlib.contextmanager
def looking(driver: "Chrome", port: int) -> Iterator[Page]:
    """The page, which must neither say anything in the console nor ask another server."""
    page = Page(driver, port)
    yield page
    assert page.said() == []
    assert [url for url in page.requests() if not url.startswith(page.base)] == []
