"""The whole pipeline, over a real store and real caches."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from builders import make_chunk, make_doc
from search_home import MODES, SearchHome, titles

from kb.errors import EmbedError, ModelMissing
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.ingest.changes import tombstone
from kb.model.config import SearchSettings
from kb.model.doc import OPERATOR, Scope
from kb.model.search import Hit, SearchMode
from kb.search import pending
from kb.store import chunks, docs, log

BOB, ANN, NOBODY = Scope(user="bob"), Scope(user="ann"), Scope(user=None)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchHome]:
    """10,000 docs about tea; one of them, with six poor passages, is tagged and is Bob's."""
    home = SearchHome(tmp_path_factory.mktemp("crowd") / "home")
    texts = [["green tea water leaf"]] * 10_000
    rare = 7_777
    texts[rare] = [f"tea among {n} other things that have nothing to do with it" for n in range(6)]
    numbers = itertools.count(1)
    with home.store.write() as txn:
        for place, passages in enumerate(texts):
            source_no = docs.ensure_source_no(txn, make_doc(place + 1).lsid)
            is_rare = place == rare
            doc = make_doc(
                source_no,
                tags=("rare",) if is_rare else ("common",),
                owner="bob" if is_rare else "ann",
                visibility="private",
            )
            docs.put_new_version(txn, doc)
            rows = [
                msgspec.structs.replace(
                    make_chunk(next(numbers), text, source_no=source_no, ordinal=n),
                    doc_id=doc.doc_id,
                )
                for n, text in enumerate(passages)
            ]
            chunks.replace_all(txn, source_no, rows, {})
            log.append(txn, [row.no for row in rows], words=True, vectors=True)
            if place < 50 or is_rare:
                for row, vector in zip(
                    rows, home.embedder.embed_documents([row.text for row in rows]), strict=True
                ):
                    chunks.put_vector(txn, home.embedder.fingerprint, row.text_hash, vector)
    yield home
    home.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_that_lets_one_doc_in_10000_through_fills_k(
    crowd: SearchHome, mode: SearchMode
) -> None:
    """A filter reaches through to the candidates: the one doc's passages fill k."""
    result = crowd.search("green tea water", k=5, mode=mode, tags=("rare",))
    assert [hit.title for hit in result.hits] == ["Note 7778"] * 5


@pytest.mark.parametrize("mode", MODES)
def test_a_scope_that_sees_one_doc_in_10000_fills_k(crowd: SearchHome, mode: SearchMode) -> None:
    """So does what the caller may see."""
    result = crowd.search("green tea water", BOB, k=5, mode=mode)
    assert [hit.title for hit in result.hits] == ["Note 7778"] * 5
    assert crowd.search("green tea water", NOBODY, mode=mode).hits == ()


def test_a_doc_filter_names_the_newest_version(crowd: SearchHome) -> None:
    """A doc id lets that doc's source through and nothing else."""
    doc = make_doc(7_778)
    result = crowd.search("green tea", doc_ids=(doc.doc_id,))
    assert {hit.doc_id for hit in result.hits} == {doc.doc_id}


class EnglishOnly(HashingEmbedder):
    """A model that reads Latin script alone."""

    scripts = frozenset({"Latin"})


def test_a_script_the_model_cannot_read_leaves_the_dense_leg_out(home: SearchHome) -> None:
    """A Chinese query to an English model is answered by words alone, and says so."""
    home.give("milk.md", "# 伊利\n\n伊利生产牛奶和酸奶。")
    home.give("tea.md", "# Tea\n\nGreen tea and milk.")
    hybrid = home.search("牛奶", embedder=EnglishOnly(64))
    lexical = home.search("牛奶", mode="lexical")
    assert hybrid.hits == lexical.hits
    assert titles(hybrid) == ["伊利"]
    (warning,) = hybrid.warnings
    assert "words alone: the embedding model does not read this script;" in warning
    assert warning.endswith("kb embedder set multilingual")
    assert lexical.warnings == ()
    assert home.search("green tea", embedder=EnglishOnly(64)).warnings == ()


class Broken(HashingEmbedder):
    """A model whose files are gone."""

    def embed_query(self, text: str) -> "object":
        raise ModelMissing("the model is gone")


def test_a_model_that_fails_leaves_words(home: SearchHome) -> None:
    """Without a model a hybrid search goes on by words with a warning; a dense one is an error."""
    home.give("tea.md", "# Tea\n\nGreen tea.")
    result = home.search("tea", embedder=Broken(64))  # type: ignore[arg-type]
    assert titles(result) == ["Tea"]
    assert result.warnings == ("searched by words alone: the model is gone",)
    with pytest.raises(ModelMissing):
        home.search("tea", embedder=Broken(64), mode="dense")  # type: ignore[arg-type]
    assert issubclass(ModelMissing, Exception)
    assert issubclass(EmbedError, Exception)


def rank_score(hit: Hit) -> float:
    """What the order follows."""
    assert hit.explain is not None
    return float(hit.explain["rank_score"])


NOTES = {
    f"n{n}.md": f"# Note {n}\n\n{words} tea"
    for n, words in enumerate(["green", "black black", "white kettle", "green kettle", "red"])
}


def test_equal_requests_give_equal_bytes(home: SearchHome, tmp_path: Path) -> None:
    """The same question gives the same bytes, also after the caches were built anew."""
    for name, text in NOTES.items():
        home.give(name, text)

    def answer() -> bytes:
        return msgspec.json.encode(home.search("green kettle tea", explain=True))

    first = answer()
    assert answer() == first
    home.lexical.close()
    home.dense.close()
    import shutil

    from kb.search.index.dense import DenseIndex
    from kb.search.index.lexical_indexes import LexicalIndexes

    shutil.rmtree(home.paths.index)
    home.paths.make()
    home.lexical = LexicalIndexes(home.paths.index / "lexical")
    home.dense = DenseIndex(home.paths.index / "dense", home.embedder.fingerprint, 64)
    assert answer() == first


def test_rank_follows_score_then_id(home: SearchHome) -> None:
    """Hits stand by rank score, highest first, equals by passage id; no score rises again."""
    for n in range(8):
        home.give(f"n{n}.md", f"{'tea ' * (1 + n // 4)}")
    hits = home.search("tea", k=20, explain=True).hits
    assert [hit.rank for hit in hits] == list(range(1, 9))
    keys = [(-rank_score(hit), hit.chunk_id) for hit in hits]
    assert keys == sorted(keys)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= hit.score <= 1 for hit in hits)


_NEXT = "run `kb worker --drain` if no worker is at work"


def test_pending_work_is_said(home: SearchHome) -> None:
    """A doc that is not cut, or has no vectors yet, is told of; nothing is when all is done."""
    home.give("a.md", "# A\n\ntea", work=False)
    early = home.search("tea")
    assert early.hits == ()
    assert early.warnings == (f"1 doc is not searchable yet; {_NEXT}",)
    home.work("chunk")
    by_words = home.search("tea")
    assert titles(by_words) == ["A"]
    assert by_words.hits[0].legs.dense is None
    assert by_words.warnings == (f"1 doc has no vectors yet and is found by words alone; {_NEXT}",)
    assert home.search("tea", mode="lexical").warnings == ()
    home.work()
    done = home.search("tea")
    assert done.warnings == ()
    assert done.hits[0].legs.dense == 1


def test_pending_docs_are_counted_once(home: SearchHome) -> None:
    """Not once for each version, and not where they were removed meanwhile."""
    home.give("a.md", "# A\n\ntea", work=False)
    gone = home.give("b.md", "# B\n\ntea", work=False)
    home.give("a.md", "# A\n\nmore tea", work=False)
    assert home.search("tea").warnings == (f"2 docs are not searchable yet; {_NEXT}",)
    tombstone(home.store, [gone.doc_id])
    assert home.search("tea").warnings == (f"1 doc is not searchable yet; {_NEXT}",)


def test_many_pending_docs_are_said_to_be_many(
    home: SearchHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count that was cut off is not given as the number."""
    for name in "abc":
        home.give(f"{name}.md", f"# {name}\n\ntea", work=False)
    monkeypatch.setattr(pending, "_COUNT_MAX", 2)
    assert home.search("tea").warnings == (f"over 2 docs are not searchable yet; {_NEXT}",)


def test_similar_never_gives_the_source_itself(home: SearchHome) -> None:
    """What is like a doc are passages of other docs, the nearest first."""
    seed = home.give("a.md", "# A\n\ngreen tea from the hills")
    home.give("b.md", "# B\n\ngreen tea from the valley")
    home.give("c.md", "# C\n\nnothing in common whatsoever")
    assert titles(home.searcher().similar(seed.doc_id, 5, OPERATOR)) == ["B", "C"]


def _long(paragraphs: int) -> str:
    return "# Long\n\n" + "\n\n".join(
        f"Paragraph {n}: " + " ".join(f"w{n}x{m}" for m in range(30)) for n in range(paragraphs)
    )


@pytest.mark.parametrize("tokens_max", [1, 50, 100, 200, 400, 10_000])
def test_a_budget_is_never_exceeded(home: SearchHome, tokens_max: int) -> None:
    """The passages shown fit the budget, save that the first hit is always shown."""
    for n in range(4):
        home.give(f"{n}.md", _long(6).replace("w", f"v{n}"))
    result = home.search("paragraph", k=50, max_tokens=tokens_max)
    counts = home.embedder.count_tokens([hit.text for hit in result.hits])
    assert result.hits
    assert sum(counts) <= tokens_max or len(result.hits) == 1
    shown = home.search("paragraph", k=50)
    if result.truncated:
        assert f"over {tokens_max} tokens" in result.truncated
    else:
        assert sum(counts) >= sum(home.embedder.count_tokens([shown.hits[0].text]))


def test_what_a_budget_cut_is_said(home: SearchHome) -> None:
    """How many hits had no room is told; nothing is where all had."""
    for n in range(3):
        home.give(f"{n}.md", f"# N{n}\n\n" + f"tea word{n} " * 15)
    assert home.search("tea", max_tokens=40).truncated == "2 of 3 hits left out: over 40 tokens"
    assert home.search("tea", max_tokens=4000).truncated is None


def test_joined_neighbours_are_the_markdown_as_it_stands(home: SearchHome) -> None:
    """Passages that are joined give markdown[start:end], not a patchwork with doubled overlap."""
    doc = home.give("a.md", _long(8))
    markdown = home.content.read(doc.md_path, doc.md_sha256).decode()
    (hit,) = home.search("w4x3", k=1, mode="lexical", max_tokens=200).hits
    assert hit.text == markdown[hit.start : hit.end]
    with home.store.read() as txn:
        longest = max(len(chunk.text) for chunk in chunks.of_source(txn, doc.source_no))
    assert len(hit.text) > longest


def test_single_passages_are_the_markdown_as_it_stands(home: SearchHome) -> None:
    """Without a budget, too, a hit's text is markdown[start:end]."""
    doc = home.give("a.md", _long(5))
    markdown = home.content.read(doc.md_path, doc.md_sha256).decode()
    for hit in home.search("paragraph", k=20).hits:
        assert hit.text == markdown[hit.start : hit.end]


def test_the_third_copy_waits(home: SearchHome) -> None:
    """Two copies may stand together; the third waits behind what says something else."""
    for n in range(4):
        home.give(f"copy{n}.md", "# Copy\n\ngreen tea is brewed at seventy degrees")
    home.give("other.md", "# Other\n\ngreen tea is brewed at seventy degrees or cold")
    home.give("far.md", "# Far\n\nthe ferry leaves from the second quay")
    order = titles(home.search("green tea brewed at seventy degrees", k=5))
    assert order[:3] == ["Copy", "Copy", "Other"]
    home.settings = SearchSettings(mmr_crowd=4)
    assert titles(home.search("green tea brewed at seventy degrees", k=5))[:4] == ["Copy"] * 4


@pytest.mark.parametrize("fusion", ["spaced", "plain"])
def test_both_fusions_answer(home: SearchHome, fusion: Literal["spaced", "plain"]) -> None:
    """Either way of fusing finds what both legs put first, with ranks of both in the hit."""
    home.settings = SearchSettings(fusion=fusion)
    for name, text in NOTES.items():
        home.give(name, text)
    top = home.search("white kettle tea").hits[0]
    assert top.title == "Note 2"
    assert (top.legs.lexical, top.legs.dense) == (1, 1)
    assert top.score == 1.0


def test_the_two_fusions_differ(home: SearchHome) -> None:
    """Spaced fusion lets a runaway first stand further ahead than plain fusion does."""
    for name, text in NOTES.items():
        home.give(name, text)
    gaps = {}
    for fusion in ("spaced", "plain"):
        home.settings = SearchSettings(fusion=fusion, feedback_passages=0)  # type: ignore[arg-type]
        first, second, *_ = home.search("white kettle tea", explain=True).hits
        gaps[fusion] = rank_score(first) - rank_score(second)
    assert gaps["spaced"] > gaps["plain"] > 0


def test_a_boosted_score_is_at_most_1(home: SearchHome) -> None:
    """However many of a passage's entities are boosted; the order and the shares stay."""
    home.give("a", "# A\n\nGreen tea #matcha #sencha #bancha.\n")
    home.give("b", "# B\n\nTea and cake, at some other table of ours.\n")
    plain = home.search("green tea", explain=True).hits
    boosted = ("#matcha", "#sencha", "#bancha")
    lifted = home.search("green tea", boost_entities=boosted, explain=True).hits
    assert [hit.title for hit in lifted] == ["A", "B"]
    assert (plain[0].title, rank_score(lifted[0])) == ("A", 1.0)
    assert rank_score(lifted[1]) < rank_score(plain[1])
    # A boost moves a passage, and says nothing of how it fits.
    assert [hit.score for hit in lifted] == [hit.score for hit in plain]


def test_entities_required_boosted_and_aligned(home: SearchHome) -> None:
    """Required entities must be in a passage, boosted ones lift it, missing ones are told."""
    home.give("a.md", "# A\n\ntea tea tea")
    home.give("b.md", "# B\n\ntea with #matcha")
    assert titles(home.search("tea", require_entities=("#matcha",))) == ["B"]
    plain, boosted = (
        {hit.title: rank_score(hit) for hit in home.search("tea", explain=True, **boost).hits}
        for boost in ({}, {"boost_entities": ("#matcha",)})
    )
    assert boosted["B"] > plain["B"]
    assert boosted["A"] == plain["A"]
    missing = home.search("tea", require_entities=("#nothing",))
    assert missing.hits == ()
    assert missing.warnings == ("no passage mentions #nothing",)
    (line,) = home.search("tea #matcha").entity_alignment
    assert (line.entity, line.known, line.in_hits) == ("#matcha", True, 1)
    unknown = home.search("tea #nope")
    assert unknown.warnings == ("the query names #nope, which no passage mentions",)
    apart = home.search("tea #matcha", tags=("none",))
    assert apart.warnings == (
        "the query names #matcha, but no hit mentions it; 1 other passage(s) do",
    )


@pytest.mark.parametrize("query", ["", "?!", "\x00", "\ud800", "a" * 9_000, '"', "tea\x00"])
def test_no_query_is_an_error(home: SearchHome, query: str) -> None:
    """Every query is answered in every mode."""
    home.give("a.md", "# A\n\ntea")
    for mode in MODES:
        result = home.search(query, mode=mode)
        assert result.query == query
        if not any(letter.isalnum() for letter in query):
            assert result.hits == ()
            assert "the query has no words to search for" in result.warnings
