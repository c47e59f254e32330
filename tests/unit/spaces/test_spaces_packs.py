"""Packs in several stores that answer as one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packs_folder import doc, pack_of

from kb.home.app import App
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.intake.sync.add import AddOptions
from kb.intake.sync.sync_all import SyncOptions
from kb.knowledge.packs.load import UnknownPack
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.operations import docs, list_docs, search
from kb.operations.search import SearchRequest

SETTINGS = load([], ["embed.kind=hashing"])
HOMES = ("project", "user")


@pytest.fixture
def spaces(tmp_path: Path) -> Iterator[Spaces]:
    """A pack in the project, a note in the user's; both tell of oak."""
    pack_of(tmp_path / "pack", doc("hull", related=[("references", "keel")]), doc("keel"))
    (tmp_path / "pack/docs/hull.md").write_text("# Hull\n\nPlanks of oak.\n")
    (tmp_path / "note.md").write_text("# Note\n\nAn oak in the garden.\n")
    homes = [SpaceHome(name=name, home=tmp_path / name) for name in HOMES]
    for one in homes:
        with App.open(one.home, SETTINGS) as app, app.parser() as parser:
            if one.name == "project":
                placed = app.packs.place(app.packs.read(str(tmp_path / "pack")))
                app.syncer(parser, SyncOptions(only=placed.origin_id)).run()
            else:
                app.adder(parser, AddOptions()).add([str(tmp_path / "note.md")])
            pool = app.pool()
            pool.start()
            pool.drain()
            pool.shutdown()
    with Spaces.open(homes, lambda _: SETTINGS) as opened:
        yield opened


def ask(spaces: Spaces, *packs: str) -> list[tuple[str, str | None, bool]]:
    request = SearchRequest(query="oak", mode="lexical", packs=packs, with_neighbors=True)
    hits = search.run(spaces, request, OPERATOR).hits
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return [(hit.title, hit.source_space, hit.via is not None) for hit in hits]


def test_neighbours_follow_the_hits_of_all_spaces(spaces: Spaces) -> None:
    """Not only those of their own: a hit of the other space stands above them."""
    assert ask(spaces) == [
        ("Note", "user", False),
        ("Hull", "project", False),
        ("Keel", "project", True),
    ]


def test_a_pack_is_that_of_the_space_that_has_it(spaces: Spaces) -> None:
    """The other one is not asked; what none has is unknown."""
    assert ask(spaces, "p") == [("Hull", "project", False), ("Keel", "project", True)]
    with pytest.raises(UnknownPack):
        ask(spaces, "nobody")


def test_a_doc_of_one_space_and_a_pack_of_the_other_have_nothing_in_common(
    spaces: Spaces,
) -> None:
    """No doc is listed, by people's list and by agents'."""
    rows = docs.run(spaces, docs.DocsRequest(kinds=("file",)), OPERATOR).docs
    (note,) = (row.doc_id for row in rows if row.title == "Note")
    both: dict[str, Any] = {"doc_ids": (note,), "packs": ("p",)}
    assert docs.run(spaces, docs.DocsRequest(**both), OPERATOR).total == 0
    assert list_docs.run(spaces, list_docs.ListDocsRequest(**both), OPERATOR).total == 0
    assert docs.run(spaces, docs.DocsRequest(doc_ids=(note,)), OPERATOR).total == 1


def test_all_who_ask_share_one_guide(spaces: Spaces) -> None:
    """Who leaves no signals, or has other topics, is not guided by one that knows nothing yet."""
    assert spaces.without_signals().guide is spaces.guide
    assert spaces.with_topics(lambda _: ()).guide is spaces.guide
