"""What a pack's links bring along: after the hits, within bounds, and nothing that is hidden."""

from pathlib import Path
from typing import Any

import msgspec
from packs_folder import doc, pack_of
from tools_home import BOB, NOBODY, ToolsHome

from kb.knowledge.packs.register import register
from kb.model.doc import PackPart, Visibility
from kb.model.source import member_lsid

FOLLOWERS = tuple(f"f{number}" for number in range(8))
DOCS = (
    doc("hull", related=[("references", name) for name in FOLLOWERS[::-1]]),
    doc("keel", related=[("part_of", "hull"), ("defines", "f7"), ("defines", "f6")]),
    *(doc(name) for name in FOLLOWERS),
)


def take(home: ToolsHome, name: str, text: str, visibility: Visibility = "public") -> str:
    """Take a doc of the pack in, as a sync does."""
    request = msgspec.structs.replace(
        home.request(name, text), lsid=member_lsid("pack", "p", f"docs/{name}.md"), kind="pack"
    )
    ingest_options = msgspec.structs.replace(
        request.ingest_options, visibility=visibility, pack=PackPart(pack_id="p", selector=name)
    )
    doc_id = home.commit(
        home.ingestor.stage(msgspec.structs.replace(request, ingest_options=ingest_options))
    )
    home.work()
    return doc_id


def boats(home: ToolsHome, hidden: tuple[str, ...] = (), visibility: Visibility = "public") -> Path:
    folder = home.root.parent / "boats"
    register(home.store, pack_of(folder, *DOCS), visibility=visibility)
    take(home, "hull", "# Hull\n\nPlanks of oak.\n")
    take(home, "keel", "# Keel\n\nA beam of oak.\n")
    for name in FOLLOWERS:
        take(home, name, f"# {name}\n\nRope.\n", "private" if name in hidden else "public")
    return folder


def ask(home: ToolsHome, query: str, scope: Any = NOBODY, **said: object) -> Any:
    asked = {"query": query, "mode": "lexical", "with_neighbors": True, **said}
    return home.ask("kb_search", scope, **asked)


def names(said: Any) -> list[str]:
    return [hit["pack"]["selector"] for hit in said["hits"]]


def brought(said: Any) -> list[tuple[str, str, str]]:
    return [
        (hit["pack"]["selector"], hit["via"]["selector"], hit["via"]["edge"])
        for hit in said["hits"]
        if hit["via"]
    ]


def test_five_to_a_hit_none_twice_and_none_above_a_hit(home: ToolsHome) -> None:
    """In the order of the hits, then of the links; hits themselves are no neighbours."""
    boats(home)
    said = ask(home, "planks")
    five = [(name, "hull", "references") for name in FOLLOWERS[:5]]
    assert (names(said)[0], brought(said)) == ("hull", five)
    said = ask(home, "oak beam")
    assert names(said)[:2] == ["keel", "hull"]
    later = [("f6", "keel", "defines"), ("f7", "keel", "defines"), *five]
    assert brought(said) == later
    scores = [hit["score"] for hit in said["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert scores[2] < scores[1]
    assert [hit["rank"] for hit in said["hits"]] == list(range(1, 10))


def test_a_count_counts_hits(home: ToolsHome) -> None:
    """Neighbours come on top of `k`, and only where they are asked for."""
    boats(home)
    assert len(ask(home, "oak", limit=1)["hits"]) > 1
    assert names(ask(home, "oak beam", limit=1, with_neighbors=False)) == ["keel"]
    found = [hit for hit in ask(home, "oak beam", limit=1)["hits"] if hit["via"] is None]
    assert len(found) == 1


def test_what_is_hidden_is_not_brought(home: ToolsHome) -> None:
    """Neither a private doc, nor by the links of a pack that is not seen."""
    boats(home, hidden=("f0", "f2"))
    assert [row[0] for row in brought(ask(home, "planks"))] == ["f1", "f3", "f4", "f5", "f6"]
    assert brought(ask(home, "planks", BOB))[0][0] == "f1"


def test_a_hidden_pack_links_nothing(home: ToolsHome) -> None:
    """A doc of it may have been shown by itself; its links are not, and nothing tells of them."""
    boats(home, visibility="private")
    said = ask(home, "planks")
    assert (names(said), said["warnings"]) == (["hull"], [])
    hidden, absent = (
        home.error("kb_search", NOBODY, query="oak", packs=[name])["message"] for name in "pq"
    )
    assert hidden == absent.replace("id q", "id p")


def test_limits_hold_for_neighbours(home: ToolsHome) -> None:
    """Tags and packs do; doc ids, which name what is to match, do not."""
    boats(home)
    hull = ask(home, "planks")["hits"][0]["doc_id"]
    assert len(brought(ask(home, "planks", doc_ids=[hull], packs=["p"]))) == 5
    assert ask(home, "oak", kinds=["file"])["hits"] == []


def test_a_budget_leaves_room_or_says_so(home: ToolsHome) -> None:
    """What does not fit is counted."""
    boats(home)
    said = ask(home, "planks", max_tokens=12)
    assert names(said)[0] == "hull"
    assert len(said["hits"]) < 6
    assert "neighbors left out" in said["truncated"]


def test_a_manifest_that_is_gone(home: ToolsHome) -> None:
    """The hits stay, with a warning."""
    (boats(home) / "manifest.json").unlink()
    said = ask(home, "planks")
    assert names(said) == ["hull"]
    assert "no neighbors" in said["warnings"][0]
