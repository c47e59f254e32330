"""What is added and removed on the page, and how its progress is told."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import loopback
import pytest
from commands import Home
from http_server import ConfiguredHome, Running, serving, until
from packs_folder import doc, pack_of
from page_browser import Page, looking

from kb.model.clock import SystemClock
from kb.store.jobs import queue
from kb.store.store import Store

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TOPIC = '[kb.topic.crew]\ntitle = "The crew"\nintroduction = "who does what"\nsubjects = "crew"\n'
DROP = """
const held = new DataTransfer();
held.items.add(new File([arguments[0]], arguments[1], {type: "text/markdown"}));
window.dispatchEvent(new DragEvent("drop", {dataTransfer: held, cancelable: true, bubbles: true}));
"""


@pytest.fixture(scope="module")
def web() -> Iterator[loopback.LoopbackServer]:
    with loopback.serving() as running:
        body = b"<!doctype html><title>Tides</title><p>High water comes at noon, with the moon."
        running.routes["/tides"] = loopback.Answer(body, headers={"Content-Type": "text/html"})
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("adding")
    made = ConfiguredHome(folder / "home", ("--cfg", f'fetch.allow=["{loopback.HOST}"]'))
    links = [("references", "anchors"), ("depends_on", "ropes")]
    pack_of(folder / "pack", doc("sails", related=links), doc("anchors"), doc("ropes"))
    assert made.run("pack", "add", folder / "pack").code == 0
    (made.root / "crew" / "deck").mkdir(parents=True)
    (made.root / "crew" / "deck" / "jean.md").write_text("# Jean\n\nJean splices ropes.\n")
    with (made.root / "kb.toml").open("a") as settings:
        settings.write(TOPIC)
    return made


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Running]:
    with serving(home) as running:
        yield running


def added(page: Page) -> None:
    """Wait until what was added last can be found."""
    page.says(".adding:first-child .state", lambda texts: texts == ["can be found"])


def test_a_text_is_added_and_found(page: Page) -> None:
    """A text with its title and tags is kept, its progress told, and it is found afterwards."""
    page.open("#/add")
    page.run("""window.states = []; new MutationObserver(() => {
        const said = document.querySelector(".adding .state")?.textContent;
        if (said && said !== window.states.at(-1)) window.states.push(said);
    }).observe(document.querySelector("main"), {childList: true, subtree: true});""")
    page.type("#tags", "Sea, tides")
    page.type("#title", "Barometer")
    page.type("#text", "The barometer falls before a gale.")
    page.one("#text ~ .row button").click()
    added(page)
    states = page.run("return window.states")
    assert states[-1] == "can be found"
    assert "is kept, and is read now" in states
    page.one(".adding a").click()
    page.says("h1", lambda texts: texts == ["Barometer"])
    assert set(page.texts(".chip")) == {"#Sea", "#tides"}
    page.open("#/search?q=gale")
    page.says(".hit h2", lambda texts: texts[:1] == ["Barometer"])


def test_files_are_picked_and_dropped(page: Page, tmp_path: Path) -> None:
    """Files come by the picker, several at once, or are dropped on any view."""
    names = ("one.md", "two.txt")
    for name in names:
        (tmp_path / name).write_text(f"# Picked {name}\n\nA halyard hoists {name}.\n")
    page.open("#/add").one("#files").send_keys("\n".join(str(tmp_path / name) for name in names))
    page.says(".adding .state", lambda texts: texts == ["can be found"] * 2)
    page.open("#/search?q=halyard")
    page.says(".hit h2", lambda texts: "Picked one.md" in texts)
    page.run(DROP, "# Dropped\n\nA capstan turns.\n", "dropped.md")
    page.says("h1", lambda texts: texts == ["Add"])
    added(page)
    assert "dropped.md" in page.texts(".adding:first-child a")[0]


def test_a_page_is_fetched_by_its_address(page: Page, web: loopback.LoopbackServer) -> None:
    """Another server's page is fetched by ours, never by the browser; a failure is told."""
    page.open("#/add").type("#url", web.url("/tides"))
    page.one("#url ~ button").click()
    added(page)
    page.open("#/search?q=moon")
    page.says(".hit h2", lambda texts: texts[:1] == ["Tides"])
    page.open("#/add").type("#url", web.url("/none"))
    page.one("#url ~ button").click()
    page.says(".adding.failed .state", lambda texts: bool(texts) and "404" in texts[0])
    page.type("#url", "http://192.168.255.1/")
    page.one("#url ~ button").click()
    page.says(".adding:first-child.failed .state", lambda texts: bool(texts) and bool(texts[0]))


def test_a_doc_is_removed_after_a_question(page: Page, server: Running) -> None:
    """Remove asks first; a no keeps the doc, a yes hides it."""
    said = server.post("/v1/docs", {"text": "The dinghy leaks.", "title": "Dinghy"}).json
    page.open(f"#/doc/{said['doc_id']}").one("#remove").click()
    page.one("dialog button.plain").click()
    assert server.get(f"/v1/docs/{said['doc_id']}").status == 200
    page.one("#remove").click()
    page.one("dialog button.danger").click()
    until(lambda: server.get(f"/v1/docs/{said['doc_id']}").status == 404)
    page.says("#q", lambda fields: len(fields) == 1)


def test_a_subject_is_read(page: Page) -> None:
    """Topics are listed, then their subjects, and a subject is shown as it is."""
    page.open("#/topics").one("[data-entry]").click()
    page.says("[data-entry]", lambda texts: texts == ["deck/jean"])
    page.one("[data-entry]").click()
    page.says(".prose p", lambda texts: texts == ["Jean splices ropes."])
    assert page.place == "#/topics/crew/deck%2Fjean"


def test_a_pack_is_drawn_and_read(page: Page) -> None:
    """Each doc is a node that leads to it, each link an arrow; the drawing is always the same."""
    page.open("#/packs").one("[data-entry]").click()
    page.says(".graph .node text", lambda texts: texts == ["Sails", "Anchors", "Ropes"])
    assert page.texts(".graph .link title") == [
        "Sails references Anchors",
        "Sails depends on Ropes",
    ]
    where = """return [...document.querySelectorAll("circle")].map(
        (e) => [e.cx.baseVal.value, e.cy.baseVal.value])"""
    before = page.run(where)
    assert len({tuple(at) for at in before}) == 3
    assert page.open("#/packs/p").one(".graph circle")
    assert page.run(where) == before
    page.one(".graph .node").click()
    page.says("article h3", lambda texts: texts == ["Links"])
    assert page.texts("article .prose h2") == ["Sails"]
    page.open("#/search?q=sails").one("#filter-pack option[value=p]").click()
    page.says(".filters .chip.on", lambda texts: texts == ["pack p ×"])


def test_a_failed_job_is_tried_again(driver: "Chrome", tmp_path: Path) -> None:
    """A job that failed for good says why, and is done after a button was pressed."""
    home = Home(tmp_path / "home")
    (tmp_path / "a.md").write_text("# A\n\nText.")
    assert home.run("add", "--no-wait", tmp_path / "a.md").code == 0
    with Store.open(home.root / "store") as store, store.write() as txn:
        (claim,) = queue.claim(txn, SystemClock(), ["chunk"], limit=1, lease_ms=60_000)
        queue.fail(txn, SystemClock(), claim, "a broken mast", permanent=True)
    with serving(home) as running, looking(driver, running.port) as page:
        page.open("#/jobs")
        page.says(".job .bad-text", lambda texts: texts == ["a broken mast"])
        page.says(".lead", lambda texts: texts == ["0 waiting, 0 running, 1 failed"])
        page.one(".job button").click()
        page.says(".lead", lambda texts: texts == ["0 waiting, 0 running, 0 failed"])
        page.says(".notice-title", lambda texts: texts == ["Nothing is to do."])
