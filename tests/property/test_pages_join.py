"""Pages of any size, joined, are the one list of their hits: none comes twice, none is missing."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kb.errors import UsageError
from kb.home.open_home import OpenHome
from kb.home.spaces.spaces import Spaces
from kb.intake.embed.hashing import HashingEmbedder
from kb.model.config import SearchSettings
from kb.model.doc import OPERATOR, Scope
from kb.model.search import SearchRequest, SearchResult
from kb.operations import search

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "search"))

from search_home import MODES, SearchHome

WORDS = ("boiler", "tulip", "harbour", "radio", "kettle", "garden", "lease", "train")
SHAPES = ("one home", "two homes", "two models")
CANDIDATES = 24
# The long campaign; `make test-pages`.
SEEDS = 20
ANN = Scope(user="ann")
NOBODY = Scope(user="nobody")


def some_text(rng: random.Random, number: int) -> str:
    """Few texts for many docs, so that there are ties, copies and crowds of near-duplicates."""
    kind = rng.randrange(4)
    body = " ".join(rng.choices(WORDS, k=rng.randint(3, 12)))
    if kind == 0:
        return f"# Copy\n\n{WORDS[number % 2]} {WORDS[2]}\n"
    if kind == 1:
        return (
            f"# {rng.choice(WORDS)}\n\n{WORDS[0]} {WORDS[1]} {'and so on ' * 9}{rng.randrange(3)}\n"
        )
    parts = "\n\n".join(f"## {word}\n\n{body} {word} #tag{rng.randrange(3)}" for word in WORDS[:2])
    day = f"---\ndate: 2026-0{rng.randint(1, 9)}-11\n---\n" if kind == 2 else ""
    return f"{day}# Doc {number}\n\n{parts}\n"


class World:
    """Homes with random docs, asked as spaces."""

    def __init__(self, root: Path, shape: str, rng: random.Random) -> None:
        names = ("project", "user")[: 1 if shape == "one home" else 2]
        self.homes = {name: SearchHome(root / name) for name in names}
        for home in self.homes.values():
            home.settings = SearchSettings(candidates=CANDIDATES)
        if shape == "two models":
            other = self.homes["user"]
            other.embedder = HashingEmbedder(32)
            other.dense = type(other.dense)(
                other.paths.index / "other", other.embedder.fingerprint, other.embedder.dim
            )
        for number in range(30):
            text = some_text(rng, number)
            # Some sources are in both.
            for home in rng.sample(list(self.homes.values()), k=rng.choice((1, len(names)))):
                is_bobs = rng.random() < 0.1
                owner = {"owner": "bob"} if is_bobs else {"visibility": "public"}
                home.give(f"{number}.md", text, work=False, **owner)
        for home in self.homes.values():
            home.work()

    def spaces(self) -> Spaces:
        return Spaces(
            [
                OpenHome(name=name, store=home.store, content=home.content, searcher=home.searcher)
                for name, home in self.homes.items()
            ]
        )

    def ask(self, request: SearchRequest, scope: Scope) -> SearchResult:
        return search.run(self.spaces(), request, scope)

    def close(self) -> None:
        for home in self.homes.values():
            home.close()


@pytest.fixture(
    params=[
        pytest.param((shape, seed), marks=[pytest.mark.slow] if seed else [])
        for shape in SHAPES
        for seed in range(SEEDS)
    ],
    ids=str,
)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, random.Random]]:
    shape, seed = request.param
    rng = random.Random(seed)
    made = World(tmp_path, shape, rng)
    yield made, rng
    made.close()


def requests(rng: random.Random) -> Iterator[tuple[search.ShownSearch, Scope]]:
    """In every mode and order, narrow and wide."""
    narrow: list[dict[str, Any]] = [
        {},
        {"sort": "date"},
        {"min_score": 0.3},
        {"boost_entities": ("#tag1",), "sort": "date", "min_score": 0.2},
        {"kinds": ("file",), "require_entities": ("#tag2",)},
        {"query": "Copy"},
        {"query": "boiler harbour -title:copy -source:3 -source:7.md -from:ada -until:2026-04"},
    ]
    for mode in MODES:
        for limits in narrow:
            query = " ".join(rng.sample(WORDS, rng.randint(1, 3)))
            asked = search.ShownSearch(**{"query": query, "mode": mode, "explain": True, **limits})
            yield asked, rng.choice((OPERATOR, ANN))


def test_pages_joined_are_the_one_list(world: tuple[World, random.Random]) -> None:
    """By cursor and by offset, whatever their sizes; the last page has no cursor."""
    made, rng = world
    for asked, scope in requests(rng):
        (whole,) = [made.ask(msgspec.structs.replace(asked, k=CANDIDATES), scope)]
        hits = list(whole.hits)
        assert len({hit.chunk_id for hit in hits}) == len(hits)
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        joined, cursor = [], None
        while True:
            page = made.ask(
                msgspec.structs.replace(asked, k=rng.randint(1, 9), cursor=cursor), scope
            )
            joined += page.hits
            assert page.warnings == whole.warnings
            cursor = page.next_cursor
            if cursor is None:
                break
        assert joined == hits
        size = rng.randint(1, 9)
        for offset in range(0, len(hits), size):
            page = made.ask(msgspec.structs.replace(asked, k=size, offset=offset), scope)
            assert list(page.hits) == hits[offset : offset + size]
        beyond = made.ask(msgspec.structs.replace(asked, offset=len(hits) + 1), scope)
        assert (beyond.hits, beyond.next_cursor) == ((), None)
        assert "hits" in beyond.warnings[-1]


def test_a_cursor_tells_what_it_does_not_fit(world: tuple[World, random.Random]) -> None:
    """Another query is an error; hits that came or went before the page are told of, others not."""
    made, _ = world
    asked = search.ShownSearch(query="boiler tulip", k=4)
    cursor = made.ask(asked, NOBODY).next_cursor
    assert cursor is not None
    for other in ({"query": "boiler"}, {"mode": "lexical"}, {"sort": "date"}, {"offset": 4}):
        with pytest.raises(UsageError, match="cursor"):
            made.ask(msgspec.structs.replace(asked, cursor=cursor, **other), NOBODY)
    following = msgspec.structs.replace(asked, cursor=cursor)
    home = made.homes["project"]
    home.give("unrelated.md", "# Nothing\n\nboiler tulip", owner="ann")
    assert made.ask(following, NOBODY).warnings == made.ask(asked, NOBODY).warnings
    home.give("best.md", "# boiler tulip\n\nboiler tulip", visibility="public")
    (warning,) = made.ask(following, NOBODY).warnings
    assert "changed since the page before" in warning


def test_an_answer_that_was_cut_goes_on_there(
    world: tuple[World, random.Random], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the budget that agents have: its next page begins with the first hit that was left out."""
    made, _ = world
    monkeypatch.setattr(search, "TOKENS_MAX_DEFAULT", 50)
    tool = search.SEARCH.tool
    assert tool is not None
    asked = SearchRequest(query="boiler harbour", k=CANDIDATES)
    whole = made.ask(asked, OPERATOR).hits
    joined: list[str] = []
    pages = 0
    while True:
        page = tool.run(made.spaces(), asked, OPERATOR)
        joined += [hit.chunk_id for hit in page.hits]
        pages += 1
        if page.next_cursor is None:
            break
        asked = msgspec.structs.replace(asked, k=7, cursor=page.next_cursor)
    assert joined == [hit.chunk_id for hit in whole]
    assert pages > len(whole) // 7 + 1
