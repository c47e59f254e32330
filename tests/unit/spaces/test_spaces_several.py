"""Several stores asked as one, in this process: models, scopes, ids and budgets."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kb.errors import AmbiguousId, NotFound
from kb.home.app import App
from kb.home.services.models import SharedModels
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import AddOptions
from kb.model.config import Settings, load
from kb.model.doc import OPERATOR, Scope, Visibility
from kb.model.embedder import EmbedderChoice
from kb.model.ids import doc_id
from kb.model.search import SearchResult
from kb.model.source import file_lsid
from kb.operations import docs, entities, search, show, similar
from kb.operations.entities import EntitiesRequest
from kb.operations.search import SearchRequest
from kb.operations.show import WholeDoc
from kb.operations.similar import SimilarRequest

SETTINGS = load([], ["embed.kind=hashing"])
ANYBODY = Scope(user=None)
HARBOUR = "The harbour master paints boats for #summer and @ann. "


class Pair:
    """A project's home and a user's, and the folder that their notes lie in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.homes = (
            SpaceHome(name="project", home=root / "project"),
            SpaceHome(name="user", home=root / "user"),
        )

    def add(self, name: str, *notes: str, visibility: Visibility = "private") -> None:
        """Take notes of the folder in, and do the work."""
        home = next(one.home for one in self.homes if one.name == name)
        paths = [str(self.root / note) for note in notes]
        with App.open(home, SETTINGS) as app, app.parser() as parser:
            app.adder(parser, AddOptions(ingest_options=IngestOptions(visibility=visibility))).add(
                paths
            )
            pool = app.pool()
            pool.start()
            pool.drain()
            pool.shutdown()

    def write(self, **notes: str) -> None:
        for name, text in notes.items():
            (self.root / f"{name}.md").write_text(text)

    def open(self) -> Spaces:
        return Spaces.open(self.homes, self._settings)

    def _settings(self, home: Path) -> Settings:
        assert home.is_relative_to(self.root)
        return SETTINGS


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Two homes that hold one note each, and one that both hold."""
    made = Pair(tmp_path)
    made.write(
        boats=f"# Boats\n\n{HARBOUR}", rope=f"# Rope\n\n{HARBOUR}Rope.", both="# Both\n\nHarbour."
    )
    made.add("project", "boats.md", "both.md")
    made.add("user", "rope.md", "both.md")
    return made


@pytest.fixture
def spaces(pair: Pair) -> Iterator[Spaces]:
    with pair.open() as opened:
        yield opened


def found(result: SearchResult) -> list[tuple[str, str | None]]:
    return [(hit.title, hit.source_space) for hit in result.hits]


def test_what_both_have_is_the_projects(spaces: Spaces) -> None:
    """A file in both stores is one hit, and the answer's own limits hold for it."""
    result = search.run(spaces, SearchRequest(query="harbour"), OPERATOR)
    assert sorted(found(result)) == [("Boats", "project"), ("Both", "project"), ("Rope", "user")]
    assert [hit.score for hit in result.hits] == sorted(
        (h.score for h in result.hits), reverse=True
    )
    assert result.warnings == ()


def test_a_stale_copy_is_not_answered(pair: Pair) -> None:
    """What the user's store still says of a file that the project holds is no answer."""
    pair.write(both="# Both\n\nAnchors.")
    pair.add("project", "both.md")
    for words, expected in (("harbour", ["Boats", "Rope"]), ("anchors", ["Both"])):
        request = SearchRequest(query=words, mode="lexical")
        with pair.open() as spaces:
            assert [title for title, _ in found(search.run(spaces, request, OPERATOR))] == expected


def test_what_an_asker_may_not_see_hides_nothing(pair: Pair) -> None:
    """A private copy in the project leaves the user's public one to be found by anybody."""
    pair.write(open="# Open\n\nHarbour.", seen="# Seen\n\nHarbour wall.")
    pair.add("project", "open.md")
    pair.add("project", "seen.md", visibility="public")
    pair.add("user", "open.md", visibility="public")
    request = SearchRequest(query="harbour", mode="lexical")
    with pair.open() as spaces:
        shown = found(search.run(spaces, request, ANYBODY))
        assert sorted(shown) == [("Open", "user"), ("Seen", "project")]
        assert ("Open", "project") in found(search.run(spaces, request, OPERATOR))


def test_an_asker_hears_of_no_cause(pair: Pair) -> None:
    """Only the operator is told where a store lies that cannot be read, and what is wrong."""
    (pair.root / "user" / "store" / "data.mdb").write_bytes(b"not a store at all" * 1000)
    with pair.open() as spaces:
        request = SearchRequest(query="harbour", mode="lexical")
        (said,) = search.run(spaces, request, OPERATOR).warnings
        assert str(pair.root) in said
        assert "--space user" in said
        told = search.run(spaces, request, ANYBODY).warnings
        assert told[0] == "the user space cannot be read at the moment"


def test_one_model_is_loaded_for_both(spaces: Spaces) -> None:
    """Two homes with one model share it."""
    first, second = (app.embedder for app in spaces._apps)
    assert first is second


def test_a_query_is_embedded_once() -> None:
    """The last text's vector is kept, for the model that made it."""
    asked: list[str] = []
    shared = SharedModels()
    choice = EmbedderChoice(kind="hashing")
    embedder = shared.made(choice, 0)
    assert shared.made(choice, 0) is embedder

    class Counting(type(embedder)):  # type: ignore[misc]
        def embed_query(self, text: str) -> object:
            asked.append(text)
            return super().embed_query(text)

    one, other = Counting(), Counting()
    for text in ("tea", "tea", "milk", "tea"):
        assert (shared.embed_query(one, text) == embedder.embed_query(text)).all()
    assert asked == ["tea", "milk", "tea"]
    shared.embed_query(other, "tea")
    assert asked[-2:] == ["tea", "tea"]


def test_what_is_like_a_doc_is_sought_in_both(spaces: Spaces) -> None:
    """A passage of one store is compared with those of the other, but never with its own file."""
    for title, others in (("Boats", {"Both", "Rope"}), ("Both", {"Boats", "Rope"})):
        ident = ids(spaces)[title]
        result = similar.run(spaces, SimilarRequest(id=ident), OPERATOR)
        assert {hit.title for hit in result.hits} == others
        assert {hit.title for hit in result.hits if hit.source_space == "user"} == {"Rope"}
        assert (result.query, result.warnings) == (ident, ())


def test_vectors_of_two_models_are_not_compared(spaces: Spaces) -> None:
    """A store whose passages another model embedded says so, and brings nothing."""
    searcher = spaces._apps[0].searcher
    seed = searcher.seed(ids(spaces)["Boats"], OPERATOR)
    assert searcher.like(seed, 10, OPERATOR).hits
    other = searcher.like(msgspec.structs.replace(seed, fingerprint="other"), 10, OPERATOR)
    assert other.hits == ()
    assert "another model" in other.warnings[0]


def test_an_id_is_looked_for_in_both(spaces: Spaces) -> None:
    """Docs and passages are shown from where they are; what both have, from the project."""
    for title, space in (("Boats", "project"), ("Rope", "user"), ("Both", "project")):
        shown = show.run(spaces, show.ShowRequest(id=ids(spaces)[title]), OPERATOR)
        assert (shown.space, shown.shown.doc.title) == (space, title)
        assert isinstance(shown.shown, WholeDoc)
        passage = show.run(spaces, show.ShowRequest(id=shown.shown.passages[0].chunk_id), OPERATOR)
        assert (passage.space, passage.shown.doc.title) == (space, title)
    with pytest.raises(NotFound):
        show.run(spaces, show.ShowRequest(id="dffffffff"), OPERATOR)


def test_docs_that_are_named_are_searched_where_they_are(spaces: Spaces) -> None:
    """An id of either store will do, and one of none is not found."""
    known = ids(spaces)

    def search_docs(*doc_ids: str) -> SearchResult:
        return search.run(spaces, SearchRequest(query="harbour", doc_ids=doc_ids), OPERATOR)

    assert found(search_docs(known["Rope"])) == [("Rope", "user")]
    assert sorted(found(search_docs(known["Rope"], known["Boats"]))) == [
        ("Boats", "project"),
        ("Rope", "user"),
    ]
    with pytest.raises(NotFound):
        search_docs(known["Rope"], "dffffffff")


def test_a_short_id_of_two_stores_is_refused(pair: Pair) -> None:
    """Both ids are named, and their spaces; a character more and it is one of them."""
    mine, theirs = colliding(pair.root)
    pair.write(**{name: f"# {name}\n\ntext of {name}" for name in (mine, theirs)})
    pair.add("project", f"{mine}.md")
    pair.add("user", f"{theirs}.md")
    one, other = (doc_id(file_lsid(pair.root / f"{name}.md"), 1) for name in (mine, theirs))
    with pair.open() as spaces:
        for call in (
            lambda short: show.run(spaces, show.ShowRequest(id=short), OPERATOR),
            lambda short: similar.run(spaces, SimilarRequest(id=short), OPERATOR),
            lambda short: search.run(spaces, SearchRequest(query="x", doc_ids=(short,)), OPERATOR),
        ):
            with pytest.raises(AmbiguousId) as refused:
                call(one[:4])
            assert f"{one} in the project space, {other} in the user space" in str(refused.value)
        assert show.run(spaces, show.ShowRequest(id=other[:12]), OPERATOR).space == "user"


def colliding(folder: Path) -> tuple[str, str]:
    """Two names of notes whose docs' ids start with the same four characters."""
    seen: dict[str, str] = {}
    for number in range(10_000):
        name = f"n{number}"
        start = doc_id(file_lsid(folder / f"{name}.md"), 1)[:4]
        if start in seen:
            return seen[start], name
        seen[start] = name
    raise AssertionError("no two of ten thousand names")


def test_one_budget_for_both(pair: Pair) -> None:
    """Each store could fill the budget; together they do not exceed it, and the answer says so."""
    words = " ".join(f"harbour word{number}" for number in range(600))
    pair.write(long=f"# Long\n\n{words}", length=f"# Length\n\n{words} more")
    pair.add("project", "long.md")
    pair.add("user", "length.md")
    with pair.open() as spaces:
        request = SearchRequest(query="harbour")
        whole = search.run(spaces, request, OPERATOR)
        cut = search.run(spaces, msgspec.structs.replace(request, max_tokens=600), OPERATOR)
        assert 0 < len(cut.hits) < len(whole.hits)
        assert {hit.source_space for hit in cut.hits} == {"project", "user"}
        assert sum(len(hit.text.split()) for hit in cut.hits) <= 600
        assert cut.truncated is not None
        assert "over 600 tokens" in cut.truncated


def test_entities_and_docs_of_both(spaces: Spaces) -> None:
    """Mentions are added up; docs come by their last change, each with its space."""
    said = entities.run(spaces, EntitiesRequest(prefix="#"), OPERATOR)
    assert [(one.surface, one.passages, one.docs) for one in said.entities] == [("#summer", 2, 2)]
    assert not said.more
    assert entities.run(spaces, EntitiesRequest(limit=1), OPERATOR).more
    listed = docs.run(spaces, docs.DocsRequest(limit=3), OPERATOR)
    assert (len(listed.docs), listed.total) == (3, 4)
    assert [doc.updated_ms for doc in listed.docs] == sorted(
        (doc.updated_ms for doc in listed.docs), reverse=True
    )
    assert {doc.space for doc in listed.docs} == {"project", "user"}


def test_a_doc_of_both_that_one_has_not_cut_is_answered_by_the_other(pair: Pair) -> None:
    """The first store's copy wins as soon as it can be found."""
    pair.write(new="# New\n\nAnchor.")
    pair.add("user", "new.md")
    with App.open(pair.homes[0].home, SETTINGS) as app, app.parser() as parser:
        app.adder(parser, AddOptions()).add([str(pair.root / "new.md")])
    request = SearchRequest(query="anchor", mode="lexical")
    with pair.open() as spaces:
        assert found(search.run(spaces, request, OPERATOR)) == [("New", "user")]
    pair.add("project")
    with pair.open() as spaces:
        assert found(search.run(spaces, request, OPERATOR)) == [("New", "project")]


def ids(spaces: Spaces) -> dict[str, str]:
    """Ids of docs by their titles."""
    return {
        row.title: row.doc_id for row in docs.run(spaces, docs.DocsRequest(limit=0), OPERATOR).docs
    }
