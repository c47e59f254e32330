"""Try other ways to fuse words and meaning, on what both legs said once of every question.

    python scripts/explore_fusion.py dump OUT DIR... [--home HOMES] [--cfg KEY=VALUE]...
    python scripts/explore_fusion.py try OUT [--only PART]...

`dump` asks both legs of a home, as `eval_retrieval.py` makes it, for the score of every passage, and
writes them with the passages' vectors and terms. `try` orders the candidates of each question by
every method below and prints nDCG@10, set by set, and which variant of each family is chosen for a
set by the mean of the others. Boosts by names and near-duplicates are left out, so that `today`
differs a little from what the engine gives.
"""

import argparse
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from eval_retrieval import entries, judgements, take_in

from kb.home.app import App
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest
from kb.model.text import indexed_text
from kb.search.candidates import CandidateFilter
from kb.search.index.analysis import analyzer, normalize, query_words
from kb.search.order import Ordering
from kb.store import chunks

QUERIES_MAX = 350


class Passages(msgspec.Struct, frozen=True, kw_only=True):
    """The n passages of a set."""

    vectors: Any
    """Float32 of length 1, shape (n, dim)."""
    docs: Any
    """The position of each one's doc, shape (n,)."""
    terms: list[Any]
    """The terms of each, as numbers, in order."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What both legs say of one question. Arrays have the shape (n,) of the passages."""

    text: str
    vector: Any
    lexical: Any
    """NaN where no word is found."""
    dense: Any
    foreign: Any
    """Which candidates words cannot judge; of those that are candidates today."""
    familiarity: float
    ceiling: float
    terms: list[int]
    """Numbers of the analysed words; -1 for one that no passage has."""
    grades: dict[int, int]
    """By position of the doc."""
    best: list[int]
    """The docs that the engine gives, best first."""


def dump(app: App, folder: Path) -> tuple[Passages, list[Question]]:
    """Ask both legs for everything."""
    with app.store.read() as txn:
        nos = list(chunks.all_numbers(txn))
        request = SearchRequest(query="-", k=200)
        found = CandidateFilter(txn, request, OPERATOR, lambda _: None)
        rows = [found.admit(no) for no in nos]
        sources = [row[1].source if row else "" for row in rows]
        texts = [
            indexed_text(row[1].label, row[0].heading, row[0].text) if row else "" for row in rows
        ]
    positions = {source: place for place, source in enumerate(dict.fromkeys(sources))}
    analyse = analyzer(drop_stop_words=True)
    numbers: dict[str, int] = {}
    terms = [
        np.array(
            [numbers.setdefault(term, len(numbers)) for term in analyse.analyze(normalize(text))]
        )
        for text in texts
    ]
    index = app.searcher._backends.dense(None).index  # noqa: SLF001
    vectors, _ = index.vectors(nos)
    passages = Passages(
        vectors=np.asarray(vectors), docs=np.array([positions[s] for s in sources]), terms=terms
    )
    grades = judgements(folder)
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        queries = [query for query in map(json.loads, lines) if str(query["_id"]) in grades]
    step = max(1, len(queries) // QUERIES_MAX)
    places = {no: place for place, no in enumerate(nos)}
    questions = []
    for query in queries[::step][:QUERIES_MAX]:
        wanted = {positions[s]: g for s, g in grades[str(query["_id"])].items() if s in positions}
        if wanted:
            asked = question(app, query["text"], passages, places, numbers)
            docs, _ = app.searcher.docs(SearchRequest(query=query["text"], k=200), OPERATOR)
            best = [positions[doc.source] for doc in docs]
            questions.append(msgspec.structs.replace(asked, grades=wanted, best=best))
    return passages, questions


def question(
    app: App, text: str, passages: Passages, places: dict[Any, int], numbers: dict[str, int]
) -> Question:
    """What both legs say of a question, without what answers it."""
    searcher = app.searcher
    legs = searcher.legs
    n = len(passages.docs)
    prepared, _ = searcher._prepared(SearchRequest(query=text, k=200), OPERATOR)  # noqa: SLF001
    lexical = np.full(n, np.nan)
    everything = legs.lexical_hits(
        msgspec.structs.replace(prepared, candidates_wanted=max(n, 1)), None
    )
    lexical[[places[no] for no in everything.nos]] = everything.scores
    foreign = np.zeros(n, dtype=bool)
    dense = np.full(n, np.nan)
    with app.store.read() as txn:
        admitting = CandidateFilter(txn, prepared.request, OPERATOR, lambda _: None)
        candidates, vector = searcher._candidates(prepared, None, admitting)  # noqa: SLF001
        familiarity, ceiling = 1.0, 0.0
        if vector is not None:
            marked = Ordering(searcher._settings, 10)._foreign(candidates, admitting)  # noqa: SLF001
            foreign[[places[no] for no in candidates.nos]] = marked
            dense = (passages.vectors @ vector).astype(np.float64)
            familiarity, ceiling = candidates.reading.familiarity, candidates.lexical_ceiling
    return Question(
        text=text,
        vector=vector,
        lexical=lexical,
        dense=dense,
        foreign=foreign,
        familiarity=familiarity,
        ceiling=ceiling,
        terms=[numbers.get(term, -1) for term in query_words(prepared.text)],
        grades={},
        best=[],
    )


def dump_all(out: Path, folders: list[Path], homes: Path, overrides: list[str]) -> None:
    """Each set into a file of its own."""
    out.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        name = folder.resolve().name
        with App.open(homes / name, load([], overrides)) as app:
            with app.store.read() as txn:
                known = txn.count("versions")
            # What an interrupted call has begun goes on.
            take_in(app, () if known else entries(folder))
            found = dump(app, folder)
        (out / f"{name}.pickle").write_bytes(pickle.dumps(found))
        print(name, len(found[0].docs), len(found[1]), flush=True)


def main() -> None:
    """Parse the call and do it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("dump", "try"))
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--home", type=Path, default=Path("build/eval_homes"))
    parser.add_argument("--cfg", action="append", default=[], metavar="KEY=VALUE")
    said = parser.parse_args()
    if said.what == "dump":
        dump_all(said.out, said.folders, said.home, said.cfg)
        return
    sys.exit("not yet")


if __name__ == "__main__":
    main()
