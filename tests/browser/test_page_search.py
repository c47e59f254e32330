"""The page's search and what it opens, by mouse and by keys."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Home
from http_server import Running, serving, until
from page_browser import PHONE, Page

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILLER = "\n\n".join(f"Paragraph {n} of the log, on a quiet day at sea. 🐋" for n in range(150))
UP, DOWN, ENTER, ESCAPE = "\ue013", "\ue015", "\ue007", "\ue00c"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("page")
    for name, text in {
        "boat.md": "---\ntags: [sea, wood]\n---\n# The boat\n\nIts keel is made of **oak**.\n",
        "table.md": "---\ntags: [wood]\n---\n# The table\n\nOak as well, and oiled in spring.\n",
        "list.md": "# Packing\n\nFor the *regatta*:\n\n- a spinnaker\n- two ropes\n\n1. Hoist it.\n"
        "2. Trim it.\n\n"
        + "A long line that its writer broke for want of room, and that goes\non. "
        * 9,
        "rtl.md": "# الضوء\n\nالضوء القطبي بعيد.\n",
        "log.md": f"# The log\n\n{FILLER}\n\nThen a zebrafish came aboard.\n\n{FILLER}",
    }.items():
        (folder / name).write_text(text)
    (folder / "long.md").write_text(
        f"# {'Splicing ropes ' * 15}\n\n## Marline\n\nA fid opens it.\n"
    )
    (folder / "answer.eml").write_text(
        "From: ada@example.org\nSubject: Re: Kettle\n\nA short answer about the samovar.\n\n"
        "On 2 Nov 2026 Bea <bea@example.org> wrote:\n> The older words on the percolator.\n"
    )
    home = Home(folder / "home")
    files = [
        folder / name
        for name in ("boat.md", "table.md", "list.md", "rtl.md", "log.md", "long.md", "answer.eml")
    ]
    pdf = EXAMPLES / "house" / "energy-survey.pdf"
    assert home.run("add", *files, pdf).code == 0
    with serving(home) as running:
        yield running


def test_a_long_title_is_said_once(page: Page) -> None:
    """The heading that says it again, cut, is left out beside it."""
    page.open("#/search?q=fid")
    page.says(".hit h2", lambda texts: bool(texts) and texts[0].startswith("Splicing ropes"))
    said = page.texts(".hit:first-child .where span")
    assert "Marline" in said
    assert not any("Splicing" in part for part in said)


def test_hits_come_while_one_types(page: Page) -> None:
    """With title, place, marked words, tags, freshness and score; the address says the search."""
    page.open().type("#q", "oak keel")
    titles = page.says(".hit h2", lambda texts: texts[:1] == ["The boat"])
    assert "The table" in titles
    first = ".hit:first-child "
    assert page.texts(f"{first}.passage mark") == ["keel", "oak"]
    assert page.texts(f"{first}.where span")[1] == "line 4"
    assert page.texts(f"{first}.chip") == ["#sea", "#wood"]
    assert page.texts(f"{first}.fresh") == ["up to date"]
    assert float(page.texts(f"{first}.score")[0]) > 0
    assert page.place == "#/search?q=oak+keel"
    assert page.texts("#status") == [f"{len(titles)} hits"]


def test_a_hit_keeps_its_lines_and_lists(page: Page) -> None:
    """Items stand by themselves; a line that was broken for want of room runs on."""
    page.open("#/search?q=spinnaker+regatta&mode=lexical")
    page.says(".hit h2", lambda texts: texts == ["Packing"])
    assert page.texts(".count") == ["1 hit"]
    rows = page.texts(".hit .passage > *")
    assert rows[:6] == [
        *("Packing", "For the *regatta*:", "a spinnaker", "two ropes", "Hoist it.", "Trim it."),
    ]
    assert page.texts(".hit .passage > .item") == rows[2:6]
    assert "goes on. A long" in rows[6]
    assert len(rows) == 7


def test_a_text_runs_as_its_script_does(page: Page) -> None:
    """Arabic begins at the right, and its full stop stands at the left."""
    page.open("#/search?q=القطبي&mode=lexical")
    page.says(".hit h2", lambda texts: texts == ["الضوء"])
    left = (
        "const line = [...document.querySelectorAll('.hit .passage > *')].at(-1);"
        "const text = [...line.childNodes].at(-1); const range = document.createRange();"
        "range.setStart(text, text.length - 1); range.setEnd(text, text.length);"
        "const whole = document.createRange(); whole.selectNodeContents(line);"
        "return range.getBoundingClientRect().left - whole.getBoundingClientRect().left"
    )
    assert abs(page.run(left)) < 2


def test_the_earlier_mails_below_an_answer_are_folded(page: Page) -> None:
    """Until they are opened, or what was found stands in them."""
    is_open = "return document.querySelector('.text details').open"
    for words, is_shown in (("samovar", False), ("percolator", True)):
        page.open(f"#/search?q={words}&mode=lexical")
        page.says(".hit h2", lambda texts: texts == ["Re: Kettle"])
        page.one(".hit h2 a").click()
        page.says(
            ".text summary",
            lambda texts: texts == ["Earlier mail: On 2 Nov 2026 Bea <bea@example.org> wrote"],
        )
        assert page.run(is_open) is is_shown


def test_only_the_last_answer_is_shown(page: Page) -> None:
    """An answer that comes after that of a later search is dropped."""
    page.open().one("#q")
    page.run("""
        const real = window.fetch;
        window.fetch = async (path, options) => {
          if (String(path).includes("q=slow")) await new Promise((go) => setTimeout(go, 900));
          return real(path, options);
        };
        const field = document.getElementById("q");
        const type = (text) => { field.value = text; field.dispatchEvent(new Event("input")); };
        type("slow oiled spring");
        setTimeout(() => type("zebrafish"), 300);
    """)
    page.says(".hit h2", lambda texts: texts[:1] == ["The log"])
    later = "setTimeout(() => go(document.querySelector('.hit h2').textContent), 1000)"
    assert page.run(f"return new Promise((go) => {later})") == "The log"


def test_filters_narrow_and_are_taken_off(page: Page) -> None:
    """A tag is chosen from those that there are, stands in the address, and can be taken off."""
    page.open("#/search?q=oak")
    page.says(".hit h2", lambda texts: {"The boat", "The table"} <= set(texts))
    page.says("#filter-tag option", lambda texts: "sea (1)" in texts)
    page.one("#filter-tag option[value=sea]").click()
    page.says(".hit h2", lambda texts: texts == ["The boat"])
    assert page.place == "#/search?q=oak&tag=sea"
    page.one("#filter-kind option[value=file]").click()
    page.says(".filters .chip.on", lambda texts: texts == ["#sea ×", "file ×"])
    page.one(".filters .chip.on").click()
    page.says(".hit h2", lambda texts: "The table" in texts)
    assert page.place == "#/search?q=oak&kind=file"
    page.one(f"#filter-source option[value='{EXAMPLES / 'house'}']").click()
    page.says(".hit .where", lambda texts: len(texts) > 0 and all("energy" in one for one in texts))
    assert page.texts(".filters .chip.on") == ["file ×", "house ×"]


def test_a_score_is_explained(page: Page) -> None:
    """Both ranks, the fit and what the order follows are shown where that is wanted."""
    page.open("#/search?q=zebrafish").one("#explain").click()
    rows = page.says(".hit:first-child .explain dt", lambda texts: len(texts) == 6)
    assert rows[:4] == ["rank by words", "rank by meaning", "fit", "rank score"]
    assert rows[4:] == ["fused score", "boost"]
    assert page.texts(".hit:first-child .explain dd")[0] == "1"
    assert page.place.endswith("&explain=1")


def test_what_answers_a_question_is_remembered(page: Page) -> None:
    """A click keeps the question with the hit's doc, and says so."""
    page.open("#/search?q=zebrafish")
    page.says(".hit:first-child .answers", lambda texts: texts == ["This was the one"])
    page.one(".hit:first-child .answers").click()
    page.says(".hit:first-child .answers", lambda texts: texts == ["Remembered"])


def test_what_is_not_found_is_said_kindly(page: Page) -> None:
    """No hit, a filter that may be at fault, and a server's refusal each have their words."""
    page.open("#/search?q=qqqq&mode=lexical")
    page.says(".notice-title", lambda texts: texts == ["Nothing was found."])
    page.open("#/search?q=oak&mode=lexical&tag=none")
    page.one(".notice button").click()
    page.says(".hit h2", lambda texts: "The boat" in texts)
    page.open("#/doc/d00000000")
    page.says(".notice-title", lambda texts: texts == ["This is not there"])


def test_a_hit_opens_at_its_passage(page: Page, server: Running) -> None:
    """The whole doc is shown, the passage marked and in sight, however far down it stands."""
    page.open("#/search?q=zebrafish").one(".hit:first-child a").click()
    marked = page.says("mark.found", lambda texts: any("zebrafish" in text for text in texts))
    (hit,) = server.get("/v1/search?q=zebrafish&k=1&marks=true").json["hits"]
    assert "".join(marked) == hit["text"].replace("\n\n", "")
    until(lambda: page.is_in_sight("mark.found"))
    assert page.run("return scrollY") > 1000
    assert "Paragraph 149" in page.texts(".prose")[0]
    assert page.texts("h1") == ["The log"]
    assert "line" in page.texts(".where")[0]
    page.says(".aside h2", lambda texts: texts == ["Like this"])
    assert page.is_focused("mark.found")


def test_a_page_of_a_pdf_is_named(page: Page) -> None:
    """A hit in a PDF says its page, and so does the doc."""
    page.open("#/search?q=mineral+wool+grant+form")
    page.says(".hit:first-child .where", lambda texts: bool(texts) and "page 2" in texts[0])
    page.one(".hit:first-child a").click()
    page.says(".leaf", lambda texts: "Page 2" in texts)
    assert "page 2" in page.texts(".where")[0]


def test_back_and_forward_and_reload_keep_what_was_shown(page: Page) -> None:
    """Each search and each doc is a step; the address alone brings any of them back."""
    page.open().type("#q", "oiled")
    page.says(".hit h2", lambda texts: texts[:1] == ["The table"])
    page.one(".hit a").click()
    page.says("h1", lambda texts: texts == ["The table"])
    page.driver.back()
    page.says(".hit h2", lambda texts: texts[:1] == ["The table"])
    assert page.one("#q").get_attribute("value") == "oiled"
    # The hit that was opened is where one goes on.
    until(lambda: page.is_focused(".hit:first-child a"))
    page.driver.forward()
    page.says("h1", lambda texts: texts == ["The table"])
    page.driver.refresh()
    page.says("h1", lambda texts: texts == ["The table"])
    page.press(ESCAPE)
    page.says(".hit h2", lambda texts: texts[:1] == ["The table"])
    page.driver.forward()
    page.says("h1", lambda texts: texts == ["The table"])
    assert page.driver.title == "The table – kb"


def test_everything_is_done_by_keys(page: Page) -> None:
    """/ to the field, arrows and j/k through hits, Enter opens, Esc goes back, g and ? as told."""
    page.open("#/stats").one(".figures")
    page.press("/")
    until(lambda: page.is_focused("#q"))
    page.press("oak keel")
    page.says(".hit h2", lambda texts: len(texts) > 1)
    page.press(DOWN)
    assert page.is_focused(".hit:nth-child(1) a")
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.press("j")
    assert page.is_focused(".hit:nth-child(2) a")
    page.press("k", UP)
    assert page.is_focused("#q")
    page.press(DOWN, ENTER)
    page.says("h1", lambda texts: texts == ["The boat"])
    page.press(ESCAPE)
    page.says(".hit h2", lambda texts: len(texts) > 1)
    until(lambda: page.is_focused(".hit:nth-child(1) a"))
    page.press("?")
    assert page.is_focused("dialog button")
    page.press(ESCAPE)
    until(lambda: not page.all("dialog"))
    page.press("g", "a")
    page.says("h1", lambda texts: texts == ["Add"])
    assert page.is_focused("h1")


def test_light_and_dark_are_the_systems_or_ones_own(page: Page) -> None:
    """The page follows the system; what is chosen counts before that, and is kept."""
    dark, light = "rgb(21, 23, 24)", "rgb(251, 250, 248)"

    def system(scheme: str) -> None:
        said = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", said)

    system("dark")
    page.open()
    assert page.style("body", "backgroundColor") == dark
    page.one("#theme").click()
    assert page.style("body", "backgroundColor") == light
    page.open()
    assert page.style("body", "backgroundColor") == light
    system("light")
    page.one("#theme").click()
    assert page.style("body", "backgroundColor") == dark
    page.one("#theme").click()
    assert page.style("body", "backgroundColor") == light


VIEWS = (
    *("search?q=oak", "search?q=zebrafish&explain=1", "add", "ask?q=oak", "library"),
    *("topics", "packs", "sources", "jobs", "stats", "signin"),
)


def test_a_phone_is_wide_enough(page: Page) -> None:
    """At 360 pixels no view scrolls sideways, and the views are behind a button."""
    page.size(*PHONE)
    for view in VIEWS:
        page.open(f"#/{view}").one("main h1")
        until(lambda: not page.all("[aria-busy=true]"))
        assert page.run("return document.documentElement.scrollWidth") <= PHONE[0], view
    page.open("#/search?q=zebrafish&tag=sea").one("#more-filters")
    shown = (
        "return [...document.querySelectorAll('.filters > *')]"
        ".filter((e) => e.checkVisibility()).length"
    )
    assert page.run(shown) == 2
    page.one("#more-filters").click()
    assert page.run(shown) > 4
    page.open("#/search?q=zebrafish").one(".hit a").click()
    page.one("mark.found")
    assert page.run("return document.documentElement.scrollWidth") <= PHONE[0]
    assert not page.one("nav").is_displayed()
    page.one("#menu").click()
    assert page.one("nav").is_displayed()


def test_every_control_has_a_name(page: Page) -> None:
    """Whatever can be focused in a view tells a screen reader what it is."""
    nameless = """return [...document.querySelectorAll("a, button, input, select, textarea")]
        .filter((e) => !(e.textContent.trim() || e.ariaLabel || e.labels?.length))
        .map((e) => e.outerHTML)"""
    for view in VIEWS:
        page.open(f"#/{view}").one("main h1")
        until(lambda: not page.all("[aria-busy=true]"))
        assert page.run(nameless) == [], view


def test_a_citation_leads_to_its_passage(page: Page) -> None:
    """An answer cites its sources, and each citation opens the doc at the passage."""
    page.open("#/ask")
    page.one("#question").send_keys("What is the keel made of?", ENTER)
    page.says(".said", lambda texts: bool(texts) and "oak" in texts[0])
    assert page.place == "#/ask?q=What+is+the+keel+made+of%3F"
    page.one(".said .cite").click()
    page.says("h1", lambda texts: texts == ["The boat"])
    page.says(".prose", lambda texts: "oak" in "".join(texts))
    # All of this doc is the passage: a mark would say nothing.
    assert page.all("mark.found") == []


def test_the_state_of_the_home_is_drawn(page: Page, server: Running) -> None:
    """Counts are those of the server, with a plot for each; sources say when they were synced."""
    page.open("#/stats")
    numbers = page.says(".figure .number", lambda texts: len(texts) == 5)
    docs = str(server.get("/v1/stats").json["docs"]["active"])
    assert numbers[0] == docs
    (month,) = server.get("/v1/growth").json["months"]
    assert page.run(
        "return [...document.querySelectorAll('.plot svg[aria-label]')].map((e) => e.ariaLabel)"
    ) == [
        f"{title}: {month['month']} {docs}" for title in ("Documents, by month", "Added, by month")
    ]
    plots = dict(zip(page.texts(".plot:has(dl) figcaption"), page.texts(".plot dl"), strict=True))
    # A kind of file is one, too.
    assert plots["Kinds"] == f"file{docs}document1"
    assert plots["What waits"] == "documents0jobs ready0running0failed0"
    assert plots["Answers, by how long they took"].startswith("to 5 ms")
    page.open("#/jobs")
    page.says(".lead", lambda texts: texts == ["0 waiting, 0 running, 0 failed"])


def test_the_words_of_a_query_are_told_with_the_hits(server: Running) -> None:
    """`marks` gives the spans of a hit's text, by characters; unasked, a search is a tool's."""
    found = server.get("/v1/search?q=zebrafish&marks=true&k=1").json
    (span,) = found["marks"][0]
    assert found["hits"][0]["text"][slice(*span)] == "zebrafish"
    plain = server.get("/v1/search?q=zebrafish&k=1").json
    assert "zebrafish" in plain["hits"][0]["snippet"]["text"]
    plain["hits"][0]["snippet"] = None
    assert plain == json.loads(
        server.post("/v1/tools/kb_search", {"query": "zebrafish", "limit": 1}).body
    )
