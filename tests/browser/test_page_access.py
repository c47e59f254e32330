"""Who gets in by the page, and what a hostile document can do there: nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from commands import Home, surroundings
from http_server import Running, serving, until
from page_browser import Page, looking

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

TRAP = "https://trap.example/"
# Whatever runs, loads or leads somewhere, in any form that a browser might take.
HOSTILE = f"""---
title: "<img src=x onerror='window.hit=1'>"
tags: ["<script>window.hit=2</script>", "'\"><svg onload=window.hit=3>"]
---
# Harmless <script>window.hit=4</script>

<script>window.hit = 5</script> <img src="{TRAP}a.png" onerror="window.hit=6">

![<b onclick=window.hit=7>]({TRAP}b.png) and ![]({TRAP}c.png)

[press](javascript:window.hit=8) [press](JaVaScRiPt:window.hit=9) [press](data:text/html,<b>)
[press](vbscript:x) [press](//trap.example/d) [press](\\\\trap.example)
[a link]({TRAP}e?x="onmouseover=window.hit=10) [post](mailto:a@example.org)

<style>body {{ background: url({TRAP}f.png) }} main {{ display: none }}</style>
<div style="position: fixed; inset: 0; background: url({TRAP}g.png)">over all</div>
<a href="javascript:window.hit=11">press</a> <iframe src="{TRAP}h"></iframe>
<svg><use href="{TRAP}i#x" /></svg> <base href="{TRAP}">
<form action="{TRAP}j"><button>go</button></form>
<meta http-equiv="refresh" content="0; url={TRAP}k"> {{{{alert.constructor('window.hit=12')()}}}}

| <script>window.hit=13</script> | `<img src=x onerror=window.hit=14>` |
|---|---|
| [press](javascript:window.hit=15) | {TRAP}l |

[<img src=x onerror=window.hit=16>](https://ok.example/"><script>window.hit=17</script>)
"""
SLOW = (
    "# Slow\n\nslowness\n\n" + "[" * 40_000 + "\n\n" + "![a](" * 20_000 + "\n\n" + "**_`" * 20_000
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = Home(tmp_path_factory.mktemp("access") / "home")
    with serving(home) as running:
        for title, text in (("Hostile", HOSTILE), ("Slow", SLOW)):
            body = {"text": text, "title": title, "tags": ["<i onclick=window.hit=18>"]}
            assert running.post("/v1/docs", body).status == 200
        until(lambda: all(row["indexed"] for row in running.get("/v1/docs").json["docs"]))
        yield running


def test_a_hostile_document_does_nothing(page: Page) -> None:
    """Nothing of it runs, nothing is loaded, and no link leads but to http, https or mailto."""
    links = """return [...document.querySelectorAll("main a[href]")].filter(
        (e) => !e.getAttribute("href").startsWith("#/"))
        .map((e) => [e.protocol, e.rel, e.target])"""
    made = "main :is(script, style, img, iframe, object, embed, base, form:not([role]), meta, svg)"
    for view in ("search?q=harmless", "ask?q=harmless+press", "library"):
        page.open(f"#/{view}").one("main [data-entry]")
        assert page.all(made) == [] or view.startswith("ask")
        assert page.run(links) == [], view
    page.open("#/search?q=harmless").one(".hit a").click()
    page.one("mark.found")
    for _ in range(2):
        found = page.run(links)
        assert {protocol for protocol, _, _ in found} <= {"http:", "https:", "mailto:"}
        assert {(rel, target) for _, rel, target in found} <= {("noopener noreferrer", "_blank")}
        assert page.all(made) == []
        assert page.run("return [...document.querySelectorAll('main [style]')].length") == 0
        assert "onerror" in page.texts("main .text")[0]
        page.one("main .row button.plain").click()
    assert page.texts(".picture") == [] or all("trap.example" in t for t in page.texts(".picture"))
    assert page.run("return window.hit ?? null") is None
    assert page.style("body", "backgroundImage") == "none"


def test_pictures_and_links_are_shown_as_what_they_are(page: Page) -> None:
    """A picture is its description and address, in words; a link that is none is its text."""
    page.open("#/search?q=harmless").one(".hit a").click()
    shown = page.says(".picture", lambda texts: len(texts) >= 2)
    assert shown[1] == f"picture: without a description ({TRAP}c.png)"
    assert {"a link", "post", f"{TRAP}l"} <= set(page.texts(".prose a"))


def test_no_text_takes_long_to_show(page: Page) -> None:
    """Text that is made to cost much is shown as soon as any other."""
    page.open("#/search?q=slowness").one(".hit a")
    took_ms = page.run("""
        const {rendered} = await import("/page/markdown.js");
        const began = performance.now();
        rendered("[".repeat(1e5)); rendered("![a](".repeat(4e4)); rendered("**_`".repeat(4e4));
        rendered("> - 1. | ".repeat(4e4)); rendered("a\\n".repeat(1e5)); rendered("|a".repeat(1e5));
        return performance.now() - began;""")
    assert took_ms < 5_000


def test_the_page_forbids_what_it_does_not_need(server: Running) -> None:
    """Each of its files has the policy, its own type, and an ETag; a name beside them has none."""
    for path, media in {
        "/": "text/html; charset=utf-8",
        "/page/app.js": "text/javascript; charset=utf-8",
        "/page/style.css": "text/css; charset=utf-8",
        "/page/icon.svg": "image/svg+xml",
    }.items():
        got = server.get(path)
        assert (got.status, got.headers["content-type"]) == (200, media)
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["referrer-policy"] == "no-referrer"
        policy = got.headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert {"script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} < set(policy)
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in got.headers["content-security-policy"]
        assert server.get(path, if_none_match=got.headers["etag"]).status == 304
    for name in (
        "http_page.py",
        "..%2Fhttp_page.py",
        "..",
        "%2e%2e%2fhttp_page.py",
        "app.js%00",
        "",
    ):
        assert server.get(f"/page/{name}").status in (400, 404), name
    assert server.get("/page/../http_page.py").status in (401, 404)


def test_a_token_lets_in_until_it_is_removed(driver: "Chrome", tmp_path: Path) -> None:
    """The page asks for a token, keeps it for the session, and asks anew once it is gone."""
    home = Home(tmp_path / "home")
    secret = home.run("token", "add", "desk", "--role", "admin").out.strip()
    with serving(home) as running, looking(driver, running.port) as page:
        assert running.post("/v1/docs", {"text": "The oak.", "title": "Oak"}, secret).status == 200
        until(lambda: running.get("/v1/docs", secret).json["docs"][0]["indexed"])
        page.open("#/search?q=oak")
        page.says("h1", lambda texts: texts == ["Sign in"])
        page.one("#token").send_keys("kb_wrong", "\ue007")
        page.says("form .bad-text", lambda texts: "no token of this server" in "".join(texts))
        page.type("#token", secret)
        page.one("form button").click()
        page.says(".hit h2", lambda texts: texts == ["Oak"])
        assert page.place == "#/search?q=oak"
        assert page.run("return [sessionStorage.length, localStorage.length]") == [1, 0]
        assert secret not in page.driver.current_url
        assert home.run("token", "add", "other", "--role", "admin").code == 0
        assert home.run("token", "rm", "desk").code == 0
        page.type("#q", "elm")
        page.says("form .bad-text", lambda texts: "not taken any more" in "".join(texts))
        assert page.run("return sessionStorage.length") == 0
        assert not page.one("#leave").is_displayed()


def test_a_reader_is_told_what_wants_more(driver: "Chrome", tmp_path: Path) -> None:
    """What the token's role does not allow is said; signing out forgets the token."""
    home = Home(tmp_path / "home")
    secret = home.run("token", "add", "guest", "--user", "ada").out.strip()
    with serving(home) as running, looking(driver, running.port) as page:
        page.open()
        page.one("#keep").click()
        page.one("#token").send_keys(secret, "\ue007")
        page.says(".notice-title", lambda texts: texts == ["Nothing is kept here yet."])
        assert page.run("return localStorage.getItem('kb.token')") == secret
        offered = ["Search", "Ask", "Library", "Topics", "Packs"]
        page.says("nav a", lambda texts: texts == offered)
        page.open("#/stats")
        page.says(".notice-title", lambda texts: texts == ["Your token does not allow this"])
        page.one("#leave").click()
        page.says("h1", lambda texts: texts == ["Sign in"])
        assert page.run("return [sessionStorage.length, localStorage.length]") == [0, 0]


def test_a_link_lets_the_operator_in(driver: "Chrome", tmp_path: Path) -> None:
    """The page is open by it, its cookie is not for scripts, and nothing is kept in the browser."""
    env = surroundings(HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data"))
    home = Home(tmp_path / "home")
    with (
        serving(home, wants_token=True, env=env) as running,
        looking(driver, running.port) as page,
    ):
        page.open()
        page.says("h1", lambda texts: texts == ["Sign in"])
        made = home.run("token", "link", "--port", running.port, env=env)
        driver.get(made.out.strip())
        page.says(".notice-title", lambda texts: texts == ["Nothing is kept here yet."])
        assert page.run("return [document.cookie, localStorage.length]") == ["", 0]
