"""The page where two spaces are read, and where one is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from http_server import Running, until
from page_browser import PHONE, Page, looking
from person import Person

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TAB = "\ue004"


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """A note in each space, and one that both have."""
    person = Person(tmp_path_factory.mktemp("page-spaces"))
    person.project_home.mkdir(parents=True)
    for name in ("boats", "rope", "both"):
        text = f"---\ntags: [{name}]\n---\n# {name.title()}\n\nThe harbour of {name}.\n"
        (person.project / f"{name}.md").write_text(text)
    assert person.kb("add", "boats.md", "both.md").code == 0
    assert person.kb("--space", "user", "add", "rope.md", "both.md").code == 0
    return person


@pytest.fixture(scope="module")
def server(person: Person) -> Iterator[Running]:
    with person.serving() as running:
        yield running


def spaces_of(texts: list[str]) -> list[str]:
    return sorted(text for text in texts if text.endswith(" space"))


def test_hits_are_narrowed_to_a_space(page: Page) -> None:
    """Each hit says its space; one is chosen, stands in the address, and is taken off."""
    page.open("#/search?q=harbour")
    page.says(".hit .where", lambda texts: len(texts) == 3)
    every = ["project space", "project space", "user space"]
    assert spaces_of(page.texts(".hit .where span")) == every
    page.says("#filter-space option", lambda texts: texts == ["Space", "project", "user"])
    page.one("#filter-space option[value=user]").click()
    page.says(".hit h2", lambda texts: sorted(texts) == ["Both", "Rope"])
    assert page.place == "#/search?q=harbour&space=user"
    assert spaces_of(page.texts(".hit .where span")) == ["user space", "user space"]
    page.one("#filter-space option[value=project]").click()
    page.says(".hit h2", lambda texts: sorted(texts) == ["Boats", "Both"])
    assert page.texts(".filters .chip.on") == ["project space ×"]
    page.driver.back()
    page.says(".hit h2", lambda texts: sorted(texts) == ["Both", "Rope"])
    page.driver.refresh()
    page.says(".hit h2", lambda texts: sorted(texts) == ["Both", "Rope"])
    page.one(".filters .chip.on").click()
    page.says(".hit h2", lambda texts: len(texts) == 3)
    assert page.place == "#/search?q=harbour"


def test_a_space_is_chosen_by_keys(page: Page) -> None:
    """The filter is reached from the field, keeps the focus when it is drawn anew, and works."""
    page.open("#/search?q=harbour").one("#filter-space")
    page.one("#q").click()
    page.press(TAB)
    assert page.is_focused("#filter-space")
    page.press("user")
    page.says(".hit h2", lambda texts: sorted(texts) == ["Both", "Rope"])
    assert page.is_focused("#filter-space")


def test_a_hit_of_the_other_space_is_opened_and_not_changed(page: Page, person: Person) -> None:
    """Its doc says where it is and how to remove it; that of the server's own home has a button."""
    page.open("#/search?q=rope+harbour&space=user")
    page.says(".hit h2", lambda texts: texts[:1] == ["Rope"])
    page.one(".hit a").click()
    page.says("h1", lambda texts: texts == ["Rope"])
    assert "The harbour of rope." in page.texts(".prose")[0]
    assert spaces_of(page.texts(".where > span")) == ["user space"]
    assert page.all("#remove") == []
    said = page.texts("#elsewhere code")[0]
    assert said == f"kb --space user rm {person.ids_of('user')['Rope'][:12]}"
    page.driver.refresh()
    page.says("h1", lambda texts: texts == ["Rope"])
    page.says(".aside a", lambda texts: "Boats" in texts)
    page.one(".aside a[href*='at=']").click()
    page.says("h1", lambda texts: texts in (["Boats"], ["Both"]))
    assert page.one("#remove").is_displayed()
    assert page.all("#elsewhere") == []


def test_a_doc_of_both_is_that_of_the_space_it_was_found_in(page: Page) -> None:
    """Found in the user's space it is read there; else it is the project's."""
    for space, has_button in (("user", False), ("project", True)):
        page.open(f"#/search?q=both+harbour&space={space}")
        page.says(".hit h2", lambda texts: texts[:1] == ["Both"])
        page.one(".hit a").click()
        page.says("h1", lambda texts: texts == ["Both"])
        assert spaces_of(page.texts(".where > span")) == [f"{space} space"]
        assert bool(page.all("#remove")) is has_button


def test_the_library_is_narrowed_too(page: Page) -> None:
    """By the same choice, which stands in the address; the counts of `Stats` are of one home."""
    page.open("#/library")
    page.says(".rows a", lambda texts: sorted(texts) == ["Boats", "Both", "Rope"])
    page.one("#filter-space option[value=user]").click()
    page.says(".rows a", lambda texts: sorted(texts) == ["Both", "Rope"])
    assert page.place == "#/library?space=user"
    assert page.texts(".lead") == ["2 documents"]
    until(lambda: page.is_focused("#filter-space"))
    page.driver.back()
    page.says(".rows a", lambda texts: len(texts) == 3)
    page.open("#/stats")
    page.says(".lead", lambda texts: texts == ["Of the project space, which this server works on."])
    assert page.texts(".figure .number")[0] == "2"


def test_a_phone_is_wide_enough_for_spaces(page: Page) -> None:
    """With the filter on, nothing scrolls sideways."""
    page.size(*PHONE)
    for view in ("search?q=harbour&space=user", "search?space=user", "library?space=user"):
        page.open(f"#/{view}").one("main h1")
        page.one("#filter-space")
        until(lambda: page.all("main [data-entry]"))
        assert page.run("return document.documentElement.scrollWidth") <= PHONE[0], view
    page.one(".rows a").click()
    page.one("#elsewhere")
    assert page.run("return document.documentElement.scrollWidth") <= PHONE[0]


def test_where_one_space_is_read_there_is_no_choice(driver: "Chrome", person: Person) -> None:
    """Neither a filter nor a name; an address that names another space says that it is not read."""
    with person.serving("--space", "project") as running, looking(driver, running.port) as page:
        page.open("#/search?q=harbour")
        page.says(".hit h2", lambda texts: sorted(texts) == ["Boats", "Both"])
        page.one("#filter-tag")
        assert page.all("#filter-space") == []
        assert spaces_of(page.texts(".hit .where span")) == []
        page.open("#/search?q=harbour&space=user")
        page.says(".notice.bad", lambda texts: "you can read no user space here" in "".join(texts))
        page.one(".filters .chip.on").click()
        page.says(".hit h2", lambda texts: sorted(texts) == ["Boats", "Both"])
        page.open("#/library?space=user")
        page.says(".notice.bad", lambda texts: "you can read no user space here" in "".join(texts))
        page.one("#filter-space option").click()
        page.says(".rows a", lambda texts: sorted(texts) == ["Boats", "Both"])
        assert not page.one("#filter-space").is_displayed()
