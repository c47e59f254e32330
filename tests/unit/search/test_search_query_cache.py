"""The query cache: it changes no result, and saves the work where nothing changed."""

import os
from pathlib import Path

import msgspec
import pytest
from search_home import SearchHome, titles

from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.embed.protocol import FloatVector
from kb.intake.ingest.ingest import seen_record
from kb.intake.sync.read import read_file
from kb.model.doc import OPERATOR, Scope
from kb.model.ids import Lsid, sha256_hex
from kb.model.search import SearchRequest
from kb.search import query_cache
from kb.search.query_cache import CachingSearcher
from kb.store import docs
from kb.store.keys import lsid_key
from kb.store.records import SEEN

OAK = SearchRequest(query="the keel is oak")


class Counting(HashingEmbedder):
    """Counts the queries, for each that is worked out is embedded once."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.queries = 0

    def embed_query(self, text: str) -> FloatVector:
        self.queries += 1
        return super().embed_query(text)


@pytest.fixture
def model(home: SearchHome) -> Counting:
    home.embedder = Counting(64)
    home.give("boat.md", "# Boat\n\nThe keel is oak.", visibility="shared", owner="ada")
    home.give("soup.md", "# Soup\n\nNo oak in it.", visibility="private", owner="ada")
    return home.embedder


def test_an_unchanged_store_is_asked_once(home: SearchHome, model: Counting) -> None:
    """The second answer is that of any searcher, and nothing was worked out for it."""
    searcher = home.searcher(kind=CachingSearcher)
    first = searcher.search(OAK, OPERATOR)
    assert model.queries == 1
    assert searcher.search(OAK, OPERATOR) == first
    assert model.queries == 1
    assert first == home.searcher().search(OAK, OPERATOR)


def test_each_scope_and_request_has_its_own(home: SearchHome, model: Counting) -> None:
    """What one may see is never the answer to another, nor to another question."""
    searcher = home.searcher(kind=CachingSearcher)
    for scope in (Scope(user="ada"), Scope(user="bob"), Scope(user=None), OPERATOR):
        for request in (OAK, msgspec.structs.replace(OAK, k=1)):
            for _ in range(2):
                assert searcher.search(request, scope) == home.searcher().search(request, scope)
    assert titles(searcher.search(OAK, Scope(user="bob"))) == ["Boat"]


def test_a_change_is_seen_at_once(home: SearchHome, model: Counting) -> None:
    """Whatever is committed, by whomever, the next answer is a new one."""
    searcher = home.searcher(kind=CachingSearcher)
    searcher.search(OAK, OPERATOR)
    home.give("ship.md", "# Ship\n\nThe keel is oak and long.")
    found = searcher.search(OAK, OPERATOR)
    assert "Ship" in titles(found)
    assert found == home.searcher().search(OAK, OPERATOR)


def test_a_file_is_looked_at_each_time(home: SearchHome, model: Counting, tmp_path: Path) -> None:
    """That a source changed or went is no change of the store, and is said all the same."""
    file = tmp_path / "mast.md"
    placed(home, file, "# Mast\n\nA mast of pine.")
    searcher = home.searcher(kind=CachingSearcher)

    def said() -> tuple[str, int]:
        """How fresh the hit is, and how often a query was worked out for it."""
        before = model.queries
        hit = searcher.search(SearchRequest(query="pine mast", k=1), OPERATOR).hits[0]
        assert hit.title == "Mast"
        return hit.freshness, model.queries - before

    assert (said(), said()) == (("fresh", 1), ("fresh", 0))
    # Of the same length, at another time: only the bytes tell, so nothing is kept.
    os.utime(file, ns=(1, 1))
    assert (said(), said()) == (("fresh", 1), ("fresh", 1))
    file.write_text("# Mast\n\nA mast of wood.")
    assert said() == ("changed", 1)
    file.write_text("# Mast\n\nA mast of steel.")
    assert (said(), said()) == (("changed", 0), ("changed", 0))
    file.unlink()
    assert (said(), said()) == (("gone", 1), ("gone", 0))


def test_an_index_written_anew_is_asked(home: SearchHome, model: Counting) -> None:
    """BM25 forgets what is gone then: scores may be others, in a store that has not changed."""
    searcher = home.searcher(kind=CachingSearcher)
    searcher.search(OAK, OPERATOR)
    home.give("boat.md", "# Boat\n\nThe keel is oak, and so are the ribs.", visibility="shared")
    worn = searcher.search(OAK, OPERATOR)
    before = model.queries
    assert searcher.search(OAK, OPERATOR) == worn
    assert model.queries == before
    assert home.lexical.compact(home.store, wait_s=1.0, dead_share_max=0.0) == []
    assert searcher.search(OAK, OPERATOR) == home.searcher().search(OAK, OPERATOR)
    assert model.queries == before + 2


def placed(home: SearchHome, file: Path, text: str) -> None:
    """Write a file and take it in, with what was seen of it."""
    file.write_text(text)
    request = home.request(file.name, text)
    lsid = Lsid(file.as_uri())
    home.commit(home.ingestor.stage(msgspec.structs.replace(request, lsid=lsid, source=str(file))))
    home.work()
    data, stamp = read_file(file, 1 << 20, 0)
    with home.store.write() as txn:
        doc = docs.latest_of(txn, lsid)
        assert doc is not None
        SEEN.put(txn, lsid_key(lsid), seen_record(lsid, doc.doc_id, sha256_hex(data), stamp))


def test_what_may_pass_is_not_kept(home: SearchHome, model: Counting) -> None:
    """An answer with a warning is worked out again."""
    searcher = home.searcher(kind=CachingSearcher)
    asked = msgspec.structs.replace(OAK, require_entities=("#none",))
    assert searcher.search(asked, OPERATOR).warnings
    before = model.queries
    searcher.search(asked, OPERATOR)
    assert model.queries == before + 1


def test_the_room_is_bounded(
    home: SearchHome, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that was asked for longest ago goes first; one too large is not kept at all."""
    monkeypatch.setattr(query_cache, "_RESULTS_MAX", 2)
    searcher = home.searcher(kind=CachingSearcher)
    one, two, three = (SearchRequest(query=f"oak {word}") for word in ("keel", "boat", "soup"))
    for request in (one, two, one, three):
        searcher.search(request, OPERATOR)
    before = model.queries
    searcher.search(one, OPERATOR)
    assert model.queries == before
    searcher.search(two, OPERATOR)
    assert model.queries == before + 1
    monkeypatch.setattr(query_cache, "_CHARS_MAX", 16)
    large = SearchRequest(query="oak")
    for _ in range(2):
        searcher.search(large, OPERATOR)
    assert model.queries == before + 3
