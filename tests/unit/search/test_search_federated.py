"""Several homes searched as one: the order, the scores, and what both hold."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from search_home import MODES, SearchHome, titles

from kb.errors import StoreFull
from kb.home.open_home import OpenHome
from kb.home.spaces.spaces import Spaces
from kb.intake.embed.hashing import HashingEmbedder
from kb.model.doc import OPERATOR, Scope
from kb.model.search import Hit, SearchRequest, SearchResult, SpaceName
from kb.operations import search
from kb.search.engine import Searcher

NAMES: tuple[SpaceName, ...] = ("project", "user")
BOB = Scope(user="bob")
WORDS = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("arn", "eld", "ock", "ist")]
BOILER = "# Boiler\n\nBleed the radiators, then raise the pressure of the boiler to 1.5 bar."
Make = Callable[[str], SearchHome]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes homes by name, and closes them in the end."""
    homes: list[SearchHome] = []

    def made(name: str) -> SearchHome:
        homes.append(SearchHome(tmp_path / name))
        return homes[-1]

    yield made
    for home in homes:
        home.close()


def together(*homes: SearchHome) -> Spaces:
    """The homes as the spaces that a search reads."""
    return Spaces(
        [
            OpenHome(name=name, store=home.store, content=home.content, searcher=home.searcher)
            for name, home in zip(NAMES, homes, strict=False)
        ]
    )


def ask(query: str, *homes: SearchHome, scope: Scope = OPERATOR, **request: Any) -> SearchResult:
    return search.run(together(*homes), SearchRequest(query=query, **request), scope)


def test_an_unrelated_doc_of_the_other_home_scores_less(make: Make) -> None:
    """It is its home's best hit, and scores no more for that."""
    one, other = make("one"), make("other")
    one.give("boiler.md", BOILER)
    one.give("radio.md", "# Radio\n\nThe boiler man repairs radios, too.")
    other.give("tulips.md", "# Tulips\n\nPlant them a hand deep before the first frost.")
    for mode in MODES:
        result = ask("pressure of the boiler", one, other, mode=mode)
        assert titles(result)[0] == "Boiler"
        scores = {hit.title: hit.score for hit in result.hits}
        assert scores.get("Tulips", 0.0) < 0.9 * scores["Boiler"]
        assert scores.get("Tulips", 0.0) < scores["Radio"]
    weak = {hit.title: hit.weak for hit in ask("pressure of the boiler", one, other).hits}
    assert not weak["Boiler"]
    assert weak["Tulips"]


def _rank_score(hit: Hit) -> float:
    assert hit.explain is not None
    return float(hit.explain["rank_score"])


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_that_of_one_home(make: Make, seed: int) -> None:
    """Docs split over two homes are ranked as in one.

    Exactly so by meaning. With words, the average length of a text stays that of each home's own
    index, so docs whose scores are close may change places.
    """
    rng = random.Random(seed)
    whole, *halves = make("whole"), make("one"), make("other")
    for number in range(40):
        words = rng.choices(WORDS, weights=range(1, len(WORDS) + 1), k=rng.randint(20, 40))
        text = f"# Doc {number}\n\n{' '.join(words)}."
        for home in (whole, rng.choice(halves)):
            home.give(f"{number}.md", text, work=False)
    for home in (whole, *halves):
        home.work()
    overlaps: list[float] = []
    for _ in range(8):
        query = " ".join(rng.sample(WORDS, 4))
        expected = titles(ask(query, whole, mode="dense"))
        assert titles(ask(query, *halves, mode="dense")) == expected
        for mode in ("hybrid", "lexical"):
            whole_hits = ask(query, whole, mode=mode, k=11, explain=True).hits
            hits = ask(query, *halves, mode=mode, k=10).hits
            expected = [hit.title for hit in whole_hits[:10]]
            actual = [hit.title for hit in hits]
            # By what they are ordered by; a hit's score is its fit.
            ranks = {hit.title: _rank_score(hit) for hit in whole_hits}
            assert ranks[actual[0]] > 0.97 * max(ranks.values())
            overlaps.append(len({*expected} & {*actual}) / len(expected))
    assert sum(overlaps) / len(overlaps) >= 0.95


@pytest.mark.parametrize("mode", MODES)
def test_docs_of_equal_length_have_the_scores_of_one_home(make: Make, mode: str) -> None:
    """Then the average length is the same everywhere, and so is every byte but the space."""
    rng = random.Random(7)
    whole, *halves = make("whole"), make("one"), make("other")
    for number in range(30):
        text = f"# Doc {number}\n\n{' '.join(rng.choices(WORDS, k=24))} #tag{number % 3}."
        for home in (whole, halves[number % 2]):
            home.give(f"{number}.md", text, work=False)
    for home in (whole, *halves):
        home.work()
    for number in range(6):
        query = " ".join(rng.sample(WORDS, 5))
        limits: dict[str, Any] = {"mode": mode, "explain": True, "k": 8}
        limits |= ({}, {"boost_entities": ("#tag1",)}, {"require_entities": ("#tag2",)})[number % 3]
        one = ask(query, whole, **limits)
        two = ask(query, *halves, **limits)
        assert titles(two) == titles(one)
        for hit, expected in zip(two.hits, one.hits, strict=True):
            assert hit.score == pytest.approx(expected.score, abs=1e-4)
            assert (hit.text, hit.weak, hit.rank) == (expected.text, expected.weak, expected.rank)
        assert (two.warnings, two.entity_alignment) == (one.warnings, one.entity_alignment)


def test_what_both_hold_is_the_first_homes(make: Make) -> None:
    """A source of both, in whatever version, and an equal text of two sources, is one hit."""
    one, other = make("one"), make("other")
    for home in (one, other):
        home.give("boiler.md", BOILER)
    one.give("changed.md", "# Changed\n\nNow it is about tulips.")
    other.give("changed.md", "# Changed\n\nPressure of the boiler.")
    one.give("copy.md", "# Copy\n\nThe boiler hums.")
    other.give("copied.md", "# Copy\n\nThe boiler hums.")
    other.give("own.md", "# Own\n\nThe boiler of the neighbour.")
    for mode in MODES:
        result = ask("pressure boiler hums", one, other, mode=mode)
        hits = {hit.title: hit.source_space for hit in result.hits}
        assert len(hits) == len(result.hits)
        assert hits.pop("Changed", "project") == "project"
        assert hits == {"Boiler": "project", "Copy": "project", "Own": "user"}
        assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))


@pytest.mark.parametrize("models", ["one", "two"])
def test_a_minus_holds_in_each_home(make: Make, models: str) -> None:
    """A copy that is left out hides no other home's, as with a filter that lets it not through."""
    one, other = make("one"), make("other")
    if models == "two":
        other.embedder = HashingEmbedder(32)
        other.dense.close()
        other.dense = type(other.dense)(
            other.paths.index / "other", other.embedder.fingerprint, other.embedder.dim
        )
    one.give("boiler.md", BOILER, tags=("journal",))
    other.give("boiler.md", BOILER)
    one.give("own.md", "# Own\n\nThe boiler hums.")
    other.give("old/theirs.md", "# Theirs\n\nThe boiler whistles.", tags=("journal/old",))
    for mode in MODES:
        every = ask("boiler", one, other, mode=mode)
        assert sorted(titles(every)) == ["Boiler", "Own", "Theirs"]
        left = ask("boiler -tag:journal", one, other, mode=mode)
        spaces = {hit.title: hit.source_space for hit in left.hits}
        assert spaces == {"Boiler": "user", "Own": "project"}
        assert titles(ask("boiler -kind:file", one, other, mode=mode)) == []
        placed = ask("boiler -source:/notes/old -title:own", one, other, mode=mode)
        assert titles(placed) == ["Boiler"]
    assert left.warnings == ()
    (hint,) = ask("boiler -tag:journl", one, other).warnings
    assert hint == "no doc has the tag 'journl'; did you mean 'journal' or 'journal/old'?"


def test_a_budget_joins_neighbours_within_each_home(make: Make) -> None:
    """A budget is one for all; a hit grows by the chunks beside it in its own home."""
    one, other = make("one"), make("other")
    for home, name in ((one, "harbour"), (other, "lighthouse")):
        parts = [f"{name} part{number} " + "word " * 40 for number in range(8)]
        home.give(f"{name}.md", f"# {name}\n\n" + "\n\n".join(parts))
    whole = ask("harbour lighthouse part3", one, other)
    for max_tokens in (60, 300, 5_000):
        result = ask("harbour lighthouse part3", one, other, max_tokens=max_tokens)
        assert {hit.source_space for hit in result.hits} <= {"project", "user"}
        for hit in result.hits:
            assert {hit.title} == {name for name in ("harbour", "lighthouse") if name in hit.text}
        assert sum(len(hit.text.split()) for hit in result.hits) <= max_tokens
    assert len(result.hits) < len(whole.hits)
    assert all(len(hit.text.split()) > 100 for hit in result.hits)


def test_homes_of_two_models_are_merged_by_rank(make: Make) -> None:
    """Their vectors do not compare; by words alone they do."""
    one, other = make("one"), make("other")
    other.embedder = HashingEmbedder(32)
    other.dense = type(other.dense)(
        other.paths.index / "dense", other.embedder.fingerprint, other.embedder.dim
    )
    one.give("boiler.md", BOILER)
    other.give("tulips.md", "# Tulips\n\nThe boiler is not for tulips.")
    hits = ask("pressure boiler", one, other, explain=True).hits
    assert [hit.explain["rank_score"] for hit in hits if hit.explain] == [1.0, 1.0]
    first, second = ask("pressure boiler", one, other, mode="lexical").hits
    assert (first.title, second.title) == ("Boiler", "Tulips")
    assert second.score < first.score


def test_a_home_that_fails_is_left_out(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other answers as if it were alone, and a warning names the one that failed."""
    one, other = make("one"), make("other")
    one.give("boiler.md", BOILER)
    one.give("kettle.md", "# Kettle\n\nIt is no boiler.")
    other.give("tulips.md", "# Tulips\n\nThe boiler is not for tulips.")
    alone = ask("boiler", one, k=1)
    broken = other.searcher()

    def fail(*_: object) -> None:
        raise StoreFull("the disk is full", place="/user")

    monkeypatch.setattr(broken.legs, "lexical_hits", fail)
    spaces = together(one, other)
    failing = msgspec.structs.replace(spaces.homes[1], searcher=lambda: broken)
    result = search.run(
        Spaces([spaces.homes[0], failing]), SearchRequest(query="boiler", k=1), OPERATOR
    )
    assert (result.hits, result.next_cursor) == (alone.hits, alone.next_cursor)
    assert "the user space is left out" in result.warnings[0]


def test_entities_are_counted_over_all_hits(make: Make) -> None:
    """What one home mentions is not missed in the other."""
    one, other = make("one"), make("other")
    one.give("ann.md", "# Ann\n\nThe boiler is serviced by @ann.")
    other.give("tulips.md", "# Tulips\n\nThe boiler is not for tulips.")
    result = ask("boiler @ann", one, other)
    (alignment,) = result.entity_alignment
    assert (alignment.known, alignment.in_hits) == (True, 1)
    assert result.warnings == ()
    result = ask("boiler @bob", one, other)
    assert result.warnings == ("the query names @bob, which no passage mentions",)


def test_hidden_docs_of_a_home_change_nothing(make: Make) -> None:
    """Joint statistics count only what the scope reads in each home; held means held for it."""
    answers: list[bytes] = []
    for hidden in (False, True):
        homes = make(f"one-{hidden}"), make(f"other-{hidden}")
        for home, name in zip(homes, ("boiler", "tulips"), strict=True):
            home.give(f"{name}.md", f"# {name}\n\nThe boiler and the {name}.", visibility="public")
            home.give(f"bobs-{name}.md", f"# Bob\n\nBob's {name}, boiler.", owner="bob")
        if hidden:
            for number, home in enumerate((*homes, *homes)):
                text = "# Secret\n\nThe boiler and the tulips. " + "boiler " * 9
                home.give(f"secret-{number}.md", text, owner="ann")
            homes[0].give("tulips.md", "# tulips\n\nThe boiler and the tulips.", owner="ann")
        for mode in MODES:
            for query in ("boiler tulips", '"the boiler" @ann', "secret"):
                result = ask(query, *homes, scope=BOB, mode=mode, explain=True)
                answers.append(msgspec.json.encode(result))
    assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]


def test_one_home_is_not_searched_together(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single home, or the only one with docs, answers by its own search."""
    one, other = make("one"), make("other")
    one.give("boiler.md", BOILER)
    calls: list[str] = []
    own = Searcher.search

    def counted(self: Searcher, request: SearchRequest, scope: Scope) -> SearchResult:
        calls.append(request.query)
        return own(self, request, scope)

    monkeypatch.setattr(Searcher, "search", counted)
    ask("alone", one)
    ask("beside an empty one", one, other)
    assert calls == ["alone", "beside an empty one"]
    other.give("tulips.md", "# Tulips\n\nNot for tulips.")
    ask("both", one, other)
    assert len(calls) == 2
