"""The page's files, read as text, and how they are handed out."""

import re

import pytest

from kb.serve.http_page import page_files, page_routes

TEXTS = {name: reply.body.decode() for name, reply in page_files().items()}
SCRIPTS = sorted(name for name in TEXTS if name.endswith(".js"))
LINES_MAX = 400


def test_the_page_is_whole() -> None:
    """Each file that another one names is there, and each that is there is named by another."""
    named = {"index.html"}
    for text in TEXTS.values():
        named |= set(re.findall(r'(?:/page/|from "\./)([\w.]+)"', text))
    assert named == set(TEXTS)
    assert {route.path for route in page_routes()} == {"/", "/page/{name}"}
    assert all(route.role is None for route in page_routes())


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_html_or_code_of_a_text(name: str) -> None:
    """Nothing that a document says can become an element, a script or a style."""
    ways = (
        r"\w+HTML\b|document\.write|\beval\b|new Function|\bstyle\b|createPolicy|srcdoc|\bon\w+ ?="
    )
    said = re.sub(r"//.*|/\*.*?\*/", "", TEXTS[name])
    assert re.findall(ways, said) == []
    assert len(TEXTS[name].splitlines()) <= LINES_MAX


def test_the_index_has_nothing_inline() -> None:
    """No script, style or handler stands in it, and nothing of another host."""
    index = TEXTS["index.html"]
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|//", index) == []
    assert re.findall(r"@import|url\(", TEXTS["style.css"]) == []
