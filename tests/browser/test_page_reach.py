"""Who types, hears, prints or looks closely: the page by other ways than mouse and plain keys."""

from collections.abc import Iterator

import pytest
from commands import Home
from http_server import Running, serving, until
from page_browser import Page

DOWN, TAB, ENTER = "\ue015", "\ue004", "\ue007"
NARROW = (320, 640)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("reach")
    for name, text in {
        "meeting.md": "# 会議\n\n東京の会議は三時に始まります。\n",
        "lease.md": "---\ntags: [بيت]\n---\n# العقد\n\nيدفع المستأجر الإيجار كل شهر.\n",
        "oak.md": "# Oak\n\nThe keel is made of oak.\n",
    }.items():
        (folder / name).write_text(text)
    home = Home(folder / "home")
    assert home.run("add", *folder.glob("*.md")).code == 0
    with serving(home) as running:
        yield running


def searches(page: Page) -> list[str]:
    return [url for url in page.requests() if "/v1/search" in url]


def test_an_input_method_is_left_alone_until_it_has_words(page: Page) -> None:
    """No search for its letters, no key taken from it; then one for what was chosen."""
    page.open("#/search").one(".rows a")
    page.one("#q").click()
    composed = {"text": "kaigi", "selectionStart": 5, "selectionEnd": 5}
    page.driver.execute_cdp_cmd("Input.imeSetComposition", composed)
    # Down goes through what the method offers, and Escape takes its letters back.
    for key in ("ArrowDown", "Escape"):
        page.run(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
            "{key: arguments[0], bubbles: true, isComposing: true}))",
            key,
        )
        assert page.is_focused("#q")
    page.driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert (searches(page), page.place) == ([], "#/search")
    page.driver.execute_cdp_cmd("Input.insertText", {"text": "会議"})
    page.says(".hit h2", lambda texts: texts[:1] == ["会議"])
    assert len(searches(page)) == 1


def test_the_first_key_leads_past_the_menu(page: Page) -> None:
    """To what is shown, which stays."""
    page.open("#/library").one(".rows a")
    page.run("document.querySelector('.skip').focus()")
    assert page.is_focused(".skip")
    page.press(ENTER)
    assert page.is_focused("main")
    assert (page.place, page.texts("main h1")) == ("#/library", ["Library"])
    page.press(TAB)
    assert page.is_focused(".rows a")


def test_paper_shows_the_text_alone(page: Page) -> None:
    """Dark on light, whatever the screen has, without what is to be pressed."""
    page.open("#/search?q=oak").one(".hit a").click()
    page.says("h1", lambda texts: texts == ["Oak"])
    page.one("#theme").click()
    page.one("#theme").click()
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.style("body", "color") == "rgb(29, 33, 36)"
        assert page.one(".prose").is_displayed()
        pressed = "header, button, .aside, .button"
        assert [one.text for one in page.all(pressed) if one.is_displayed()] == []
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("query", ["会議", "الإيجار", "oak"])
def test_the_narrowest_window_is_wide_enough(page: Page, query: str) -> None:
    """320 pixels, as of a window of 1280 that is enlarged four times."""
    page.size(*NARROW)
    page.open(f"#/search?q={query}").one(".hit a")
    assert page.texts(".passage mark")
    assert page.run("return document.documentElement.scrollWidth") <= NARROW[0]
    page.one(".hit a").click()
    page.one("article, .prose")
    until(lambda: not page.all("[aria-busy=true]"))
    assert page.run("return document.documentElement.scrollWidth") <= NARROW[0]
