"""What an agent is told of packs: those that its scope sees, in slim rows, within bounds."""

from pathlib import Path
from typing import Any

import pytest
from packs_folder import doc, pack_of
from tools_home import BOB, NOBODY, OPERATOR, SCOPES, ToolsHome

from kb.knowledge.packs.register import register
from kb.model.doc import Scope, Visibility


def give(
    home: ToolsHome,
    pack_id: str,
    *docs: dict[str, Any],
    visibility: Visibility = "public",
    owner: str = "local",
    selector: str | None = None,
) -> Path:
    """Write a pack and register it; each doc says its title many times."""
    folder = home.root.parent / pack_id
    pack = pack_of(folder, *docs, pack_id=pack_id, selector=selector)
    for row in docs:
        (folder / row["source_path"]).write_text(f"{row['title']}\n" * 100)
    register(home.store, pack, visibility=visibility, owner=owner)
    return folder


BOATS = (
    doc("hull", summary="About hulls.", related=[("part_of", "boat")]),
    doc("boat", tags=["wood"], related=[("defines", "lost")]),
    doc("sail", related=[("part_of", "p.boat")]),
)


def test_docs_and_what_they_say(home: ToolsHome) -> None:
    """Each of the four answers in slim rows."""
    give(home, "boats", *BOATS, selector="pkg:boats")
    hull = {
        "id": "p.hull",
        "selector": "hull",
        "title": "Hull",
        "summary": "About hulls.",
        "kind": "reference",
        "tags": [],
        "related": [{"type": "part_of", "target": "boat"}],
        "links": 1,
    }
    said = home.ask("kb_pack_list", NOBODY)
    assert said["packs"] == [{"pack_id": "boats", "selector": "pkg:boats", "version": "1"}]
    assert (said["docs"], said["pack_id"], said["total"]) == ([], None, 1)
    said = home.ask("kb_pack_list", NOBODY, pack="pkg:boats")
    assert [row["selector"] for row in said["docs"]] == ["hull", "boat", "sail"]
    assert (said["docs"][0], said["packs"], said["next_skip"]) == (hull, [], None)
    said = home.ask("kb_pack_list", NOBODY, pack="boats", related_to="boat", edge_type="part_of")
    assert [row["selector"] for row in said["docs"]] == ["hull", "sail"]
    said = home.ask("kb_pack_read", NOBODY, pack="boats", doc="p.hull")
    assert (said["document"], said["text"], said["rest"]) == (hull, "Hull\n" * 100, None)
    said = home.ask("kb_pack_search", NOBODY, pack="boats", query="hull")
    assert said["hits"] == [
        {"document": hull, "score": 500, "matched": ["id", "selector", "summary", "title"]}
    ]
    said = home.ask("kb_pack_neighbors", NOBODY, pack="boats", doc="hull")
    assert [(edge["type"], edge["target"]["selector"]) for edge in said["edges"]] == [
        ("part_of", "boat")
    ]
    said = home.ask("kb_pack_neighbors", NOBODY, pack="boats", doc="boat")
    assert (said["edges"], len(said["warnings"])) == ([], 1)


def test_pages_and_budgets(home: ToolsHome) -> None:
    """What is cut can be asked for; nothing is shown twice or missed."""
    give(home, "boats", *(doc(f"d{n:02}", summary="About.") for n in range(25)))
    for bound in ({"limit": 10}, {"max_tokens": 200}):
        seen: list[str] = []
        skip: int | None = 0
        while skip is not None:
            said = home.ask("kb_pack_list", pack="boats", skip=skip, **bound)
            assert said["total"] == 25
            seen += [row["selector"] for row in said["docs"]]
            skip = said["next_skip"]
        assert seen == [f"d{n:02}" for n in range(25)]
    text, start = "", 0
    while start is not None:
        said = home.ask("kb_pack_read", pack="boats", doc="d00", start=start, max_tokens=20)
        assert 0 < len(said["text"]) <= 80
        text += said["text"]
        start = said["rest"]
    assert text == "D00\n" * 100
    said = home.ask("kb_pack_search", pack="boats", query="about", max_tokens=1)
    assert (len(said["hits"]), said["total"]) == (1, 25)
    error = home.error("kb_pack_read", pack="boats", doc="d00", start=401)
    assert (error["code"], error["field"]) == ("invalid_input", "start")


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("kb_pack_list", {}),
    ("kb_pack_read", {"doc": "boat"}),
    ("kb_pack_search", {"query": "boat"}),
    ("kb_pack_neighbors", {"doc": "boat"}),
)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize("scope", [NOBODY, BOB])
def test_a_hidden_pack_is_as_one_that_is_not_there(
    home: ToolsHome, scope: Scope, name: str, arguments: dict[str, Any]
) -> None:
    """By its id, by its selector, and in the list; a shared selector is not ambiguous for it."""
    give(home, "boats", *BOATS, selector="pkg:b")
    asked = [{**arguments, "pack": pack} for pack in ("hush", "pkg:hush", "pkg:b", "boats")]
    before = [home.raw(name, scope, **one) for one in asked]
    listed = home.raw("kb_pack_list", scope)
    give(home, "hush", *BOATS, visibility="private", owner="ann", selector="pkg:hush")
    give(home, "hush2", *BOATS, visibility="private", owner="ann", selector="pkg:b")
    assert [home.raw(name, scope, **one) for one in asked] == before
    assert home.raw("kb_pack_list", scope) == listed
    assert home.ask(name, OPERATOR, **arguments, pack="hush")["pack_id"] == "hush"
    assert home.error(name, OPERATOR, **arguments, pack="pkg:b")["code"] == "ambiguous_id"


def test_who_sees_which_pack(home: ToolsHome) -> None:
    """The words and rules are those of docs."""
    give(home, "all", visibility="public")
    give(home, "named", visibility="shared")
    give(home, "bobs", visibility="private", owner="bob")
    give(home, "anns", visibility="private", owner="ann")
    seen = [
        [row["pack_id"] for row in home.ask("kb_pack_list", scope)["packs"]] for scope in SCOPES
    ]
    assert seen == [["all"], ["all", "bobs", "named"], ["all", "anns", "bobs", "named"]]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_a_pack_that_cannot_be_read(home: ToolsHome, name: str, arguments: dict[str, Any]) -> None:
    """Gone, another's or broken: the place is for the person at the machine."""
    folder = give(home, "boats", *BOATS)
    for text in (None, '{"pack_id": "ships"}', "{"):
        (folder / "manifest.json").unlink(missing_ok=True)
        if text is not None:
            (folder / "manifest.json").write_text(text)
        error = home.error(name, BOB, **arguments, pack="boats")
        assert error["code"] == "unavailable"
        assert str(folder) not in error["message"]
        assert str(folder) in home.error(name, OPERATOR, **arguments, pack="boats")["message"]


def test_a_doc_that_is_not_there_or_cannot_be_read(home: ToolsHome) -> None:
    """An unknown name is not found; a body that is gone is told, without its folder."""
    folder = give(home, "boats", *BOATS)
    for name in ("kb_pack_read", "kb_pack_neighbors"):
        assert home.error(name, BOB, pack="boats", doc="lost")["code"] == "not_found"
    (folder / "docs/boat.md").unlink()
    said = home.ask("kb_pack_read", BOB, pack="boats", doc="boat")
    assert (said["text"], said["chars"], said["rest"]) == (None, 0, None)
    assert said["warnings"] == ["docs/boat.md: no such file"]
