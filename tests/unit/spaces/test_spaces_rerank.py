"""Several stores reranked as one list, ranked together or merged by rank."""

from pathlib import Path

import msgspec
import pytest
from cross_encoder import score_of, write_cross_encoder
from test_spaces_several import Pair

from kb.errors import ModelMissing
from kb.model.config import RerankSettings, Settings, load
from kb.model.doc import OPERATOR
from kb.operations import search
from kb.operations.search import SearchRequest, SearchResult

NOTES = {
    "project": {
        "a": "# Letters\n\nthe man bites a dog and the dog bites",
        "b": "# Vets\n\na man and a dog",
        "both": "# Both\n\nman bites",
    },
    "user": {
        "c": "# News\n\nyesterday a dog bites man in a park",
        "d": "# Cats\n\na dog man dog man",
    },
}
QUERY = "dog bites man"


class RerankedPair(Pair):
    """Two homes whose words are the same and whose order is not."""

    def __init__(self, root: Path, user_model: str) -> None:
        super().__init__(root)
        folder = write_cross_encoder(root / "model", QUERY)
        self.settings: dict[str, Settings] = {}
        for name, kind in (("project", "hashing"), ("user", user_model)):
            plain = load([], [f"embed.kind={kind}"])
            rerank = RerankSettings(kind="onnx", model=str(folder), candidates=3)
            self.settings[name] = msgspec.structs.replace(plain, rerank=rerank)

    def _settings(self, home: Path) -> Settings:
        return self.settings[home.name]

    def search(self, **wishes: object) -> SearchResult:
        request = SearchRequest(query=QUERY, explain=True, **wishes)  # type: ignore[arg-type]
        with self.open() as spaces:
            return search.run(spaces, request, OPERATOR)


@pytest.fixture(params=["hashing", "onnx"])
def pair(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """Ranked together where both have one model, else merged by rank."""
    made = RerankedPair(tmp_path, request.param)
    for name, notes in NOTES.items():
        made.write(**notes)
        monkeypatch.setattr("test_spaces_several.SETTINGS", made.settings[name])
        made.add(name, *(f"{note}.md" for note in notes))
    made.write(both=NOTES["project"]["both"])
    made.add("user", "both.md")
    return made


def test_the_best_of_all_are_reranked(pair: RerankedPair) -> None:
    """Once, and not in each store: a hit of the second is first if it answers best."""
    plain = pair.search(rerank=False)
    result = pair.search()
    assert result.warnings == plain.warnings
    assert plain.hits[0].title != "News"
    scores = [(hit.explain or {}).get("rerank") for hit in result.hits]
    assert (result.hits[0].title, result.hits[0].source_space) == ("News", "user")
    assert scores[0] == score_of(2) > scores[1] >= scores[2]
    assert scores[3:] == [None] * (len(plain.hits) - 3) != []
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    assert [hit.score for hit in result.hits] == sorted(
        (h.score for h in result.hits), reverse=True
    )
    assert sorted(hit.chunk_id for hit in result.hits) == sorted(h.chunk_id for h in plain.hits)
    assert [hit.chunk_id for hit in result.hits[3:]] == [hit.chunk_id for hit in plain.hits[3:]]


def test_few_hits_are_the_first_of_many(pair: RerankedPair) -> None:
    """A hit that is third in its store may be the best of all; a token budget changes no order."""
    first = [hit.title for hit in pair.search().hits]
    assert [hit.title for hit in pair.search(k=1).hits] == first[:1]
    assert pair.search(max_tokens=10_000).hits[0].title == "News"


def test_wanted_and_not_set_up(pair: RerankedPair) -> None:
    """One clear error, whichever way they are ranked."""
    for name, settings in pair.settings.items():
        pair.settings[name] = msgspec.structs.replace(settings, rerank=RerankSettings())
    with pytest.raises(ModelMissing, match="no reranker is set up"):
        pair.search(rerank=True)
    assert pair.search().hits == pair.search(rerank=False).hits


def test_a_store_that_fails_leaves_the_other_reranked(pair: RerankedPair) -> None:
    """With the warning of that store, and no more hits than were asked for."""
    (pair.root / "project" / "store" / "data.mdb").write_bytes(b"not a store at all" * 1000)
    result = pair.search(k=1, mode="lexical")
    assert [hit.title for hit in result.hits] == ["News"]
    assert any("the project space is left out" in line for line in result.warnings)
