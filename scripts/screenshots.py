"""Make the pictures of the page that the README shows, from examples/.

    python scripts/screenshots.py

Needs the packages chromium and chromium-driver, and no network. Each picture is a view of `kb
serve` over a home of its own under the temporary folder. Ends with 1 if a command fails, or where a
picture is over 150 KB.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Final, NamedTuple

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURES: Final = ROOT / "docs" / "screenshots"
BYTES_MAX: Final = 150_000
# Not every machine has the fonts for Chinese.
NOT_SHOWN: Final = shutil.ignore_patterns("hongshaorou.md", "shopping.md", "waipo.txt", "systemd")
WAIT_S: Final = 20
WIDE: Final = (1100, 760)
PHONE: Final = (360, 720)


class Picture(NamedTuple):
    """A view, how wide and how light it is, and what is there once it is drawn."""

    name: str
    place: str
    drawn: str
    size: tuple[int, int] = WIDE
    theme: str = "light"


def pictures(doc: str) -> tuple[Picture, ...]:
    """What is shown; `doc` is the place of a doc at a passage."""
    return (
        Picture("search", "#/search?q=the+rooms+stay+cold", ".hit mark"),
        Picture("doc", doc, ".aside li", theme="dark"),
        Picture("ask", "#/ask?q=which+form+do+I+need+for+the+grant", ".cite"),
        Picture("phone", "#/search?q=water", ".hit mark", size=PHONE),
    )


def main() -> int:
    """Take all of them."""
    kb, browser, driver = (
        Path(sys.executable).with_name("kb"),
        shutil.which("chromium"),
        shutil.which("chromedriver"),
    )
    if browser is None or driver is None:
        sys.exit("there is no browser; install the packages chromium and chromium-driver")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder, "examples"), ignore=NOT_SHOWN)
        environment = {**os.environ, "KB_HOME": str(Path(folder, "home"))}
        subprocess.run([kb, "add", "examples"], cwd=folder, env=environment, check=True)
        server = subprocess.Popen(
            [kb, "serve", "--port", "0", "--no-token"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert server.stdout is not None
            base = server.stdout.readline().split()[-1] + "/"
            return taken(base, browser, driver)
        finally:
            server.terminate()
            server.wait()


def taken(base: str, browser: str, driver: str) -> int:
    """Look at each view and keep what is seen; 1 where a picture is too large."""
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for said in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(said)
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        large = [one.name for one in pictures(passage(base)) if not take(chrome, base, one)]
    finally:
        chrome.quit()
    for name in large:
        print(f"{name}.png is over {BYTES_MAX:,} bytes", file=sys.stderr)
    return 1 if large else 0


def passage(base: str) -> str:
    """The place of the doc that tells what to do when the rooms stay cold."""
    query = urllib.parse.urlencode({"q": "the rooms stay cold", "k": 1, "marks": "true"})
    with urllib.request.urlopen(f"{base}v1/search?{query}", timeout=WAIT_S) as answer:
        (hit,) = json.load(answer)["hits"]
    return f"#/doc/{hit['doc_id']}?at={hit['chunk_id']}&line={hit['line']}"


def take(chrome: webdriver.Chrome, base: str, picture: Picture) -> bool:
    """Take one; whether it is small enough."""
    width, height = picture.size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chrome.get(f"{base}page/icon.svg")
    chrome.execute_script("localStorage.setItem('kb.theme', arguments[0])", picture.theme)
    chrome.get(base + picture.place)
    end_s = time.monotonic() + WAIT_S
    while not chrome.find_elements("css selector", picture.drawn):
        assert time.monotonic() < end_s, picture
        time.sleep(0.05)
    # The cursor blinks, and a picture is to be the same each time.
    chrome.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    time.sleep(0.5)
    path = PICTURES / f"{picture.name}.png"
    chrome.save_screenshot(str(path))
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
    return path.stat().st_size <= BYTES_MAX


if __name__ == "__main__":
    sys.exit(main())
