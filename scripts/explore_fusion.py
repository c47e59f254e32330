"""Try other ways to fuse words and meaning, on what both legs said once of every question.

    python scripts/explore_fusion.py dump OUT DIR... [--home HOMES] [--cfg KEY=VALUE]...
    python scripts/explore_fusion.py try OUT [--only FAMILY]...

`dump` asks both legs of a home, as `eval_retrieval.py` makes it, for the score of every passage,
and writes them with the passages' vectors and terms. `try` reads all of OUT (of several models, if
it has a folder for each), orders the candidates of each question by the methods of
`fusion_methods.py`, and prints nDCG@10: of today, of the engine, and what each variant gains over
today, set by set; then what a family gains on each set with the variant that is best on the others.
Boosts by names and near-duplicates are left out, so that `today` differs a little from the engine.
"""

import argparse
import json
import math
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from eval_retrieval import entries, judgements, take_in
from fusion_methods import FAMILIES, Method, Pool, prepare, spread

from kb.home.app import App
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest
from kb.model.text import indexed_text
from kb.search.candidates import CandidateFilter
from kb.search.index.analysis import analyzer, normalize, query_words
from kb.search.order import Ordering
from kb.store import chunks

QUERIES_MAX: Final = 350
CANDIDATES: Final = 200
TOP_SHARE: Final = 0.3
TODAY: Final = "today"
_ORDERED: Final = 60
# As in tantivy.
_K1: Final = 1.2


class Passages(msgspec.Struct, frozen=True, kw_only=True):
    """The n passages of a set."""

    vectors: Any
    """Float32 of length 1, shape (n, dim)."""
    docs: Any
    """The position of each one's doc, shape (n,)."""
    terms: list[Any]
    """The terms of each, as numbers, in order."""
    titled: Any
    """How many of these are of the title and the heading, which come first; shape (n,)."""


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
    titles = [indexed_text(row[1].label, row[0].heading, "") if row else "" for row in rows]
    index = app.searcher._backends.dense(None).index  # noqa: SLF001
    vectors, _ = index.vectors(nos)
    passages = Passages(
        vectors=np.asarray(vectors),
        docs=np.array([positions[s] for s in sources]),
        terms=terms,
        titled=np.array([len(analyse.analyze(normalize(title))) for title in titles]),
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


class Dumped(pickle.Unpickler):
    """Reads what this file wrote, also when it was run as a program."""

    def find_class(self, module: str, name: str) -> Any:
        """The class of that name, of this file where it is one of its own."""
        own = {"Passages": Passages, "Question": Question}
        return own.get(name) or super().find_class(module, name)


def best(scores: Any, count: int) -> Any:
    """Positions of the best that have a score."""
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:count]
    return order[~np.isnan(scores[order])]


Postings = Mapping[int, Any]
"""The positions of the passages with a term."""


def postings_of(passages: Passages) -> Postings:
    """The postings of all terms."""
    found: dict[int, list[int]] = {}
    for place, terms in enumerate(passages.terms):
        for term in set(terms.tolist()):
            found.setdefault(term, []).append(place)
    return {term: np.array(places) for term, places in found.items()}


def covered(question: Question, postings: Postings, count: int) -> Any:
    """The share of the question's terms in each passage, weighted by rarity; shape (count,)."""
    coverage, total = np.zeros(count), 1e-9
    for term in dict.fromkeys(question.terms):
        holding = postings.get(term, ())
        weight = math.log1p((count - len(holding) + 0.5) / (len(holding) + 0.5))
        total += weight
        if len(holding):
            coverage[holding] += weight
    return coverage / total


def pooled(passages: Passages, question: Question, postings: Postings) -> Pool | None:
    """The candidates of a question; None where a leg has none, as nothing is to be fused."""
    by_words = best(question.lexical, CANDIDATES)
    by_meaning = best(question.dense, CANDIDATES)
    if not len(by_words) or not len(by_meaning):
        return None
    own = np.union1d(by_words, by_meaning)
    lexical = np.zeros(len(question.lexical))
    lexical[by_words] = question.lexical[by_words]
    top = max(float(lexical.max()), TOP_SHARE * question.ceiling)
    coverage = covered(question, postings, len(passages.docs))
    return prepare(
        Pool(
            query=question.vector,
            vectors=passages.vectors[own].astype(np.float32),
            docs=passages.docs[own],
            places=own,
            words=lexical[own] / top,
            first_cosines=question.dense[own],
            foreign=question.foreign[own],
            familiarity=question.familiarity,
            top_share=float(lexical.max()) / question.ceiling if question.ceiling else 1.0,
            coverage=coverage[own],
            unit=question.ceiling / (_K1 + 1) / top,
        )
    )


def ndcg(docs: list[int], grades: Mapping[int, int]) -> float:
    """nDCG@10 of docs, best first and without repeats."""
    ideal = sorted(grades.values(), reverse=True)[:10]
    gains = [grades.get(doc, 0) for doc in docs[:10]]
    discounts = [1 / math.log2(place + 2) for place in range(10)]
    most = sum(grade * share for grade, share in zip(ideal, discounts, strict=False))
    return sum(gain * share for gain, share in zip(gains, discounts, strict=False)) / most


def ranked(pool: Pool, scores: Any, ties: Any) -> list[int]:
    """The docs of the best passages; equals are in an order that has no meaning."""
    first = np.argsort(-scores, kind="stable")[:_ORDERED]
    rounded = spread(scores[first]).round(5)
    order = first[np.lexsort((ties[first], -rounded))]
    return list(dict.fromkeys(pool.docs[order].tolist()))


def measured(path: Path, methods: Mapping[str, Method]) -> dict[str, float]:
    """Means of a set, by method; those of the engine for questions that one leg alone judges."""
    with path.open("rb") as file:
        passages, questions = Dumped(file).load()
    postings = postings_of(passages)
    ties = np.random.default_rng(1).permutation(2 * CANDIDATES)
    rows: dict[str, list[float]] = {name: [] for name in ("words", "meaning", "engine", *methods)}
    for question in questions:
        given = ndcg(question.best, question.grades)
        rows["engine"].append(given)
        for name, scores in (("words", question.lexical), ("meaning", question.dense)):
            docs = list(dict.fromkeys(passages.docs[best(scores, CANDIDATES)].tolist()))
            rows[name].append(ndcg(docs, question.grades))
        pool = pooled(passages, question, postings)
        for name, method in methods.items():
            docs = ranked(pool, method(pool), ties) if pool else question.best
            rows[name].append(ndcg(docs, question.grades))
    better = np.maximum(rows["words"], rows["meaning"])
    return {name: float(np.mean(row)) for name, row in rows.items()} | {"oracle": better.mean()}


def try_all(out: Path, only: list[str]) -> None:
    """Print the tables."""
    families = {name: own for name, own in FAMILIES.items() if not only or name in only}
    methods: dict[str, Method] = {TODAY: lambda pool: pool.today}
    for family, variants in families.items():
        methods |= {f"{family}: {variant}": method for variant, method in variants.items()}
    sets = {}
    for path in sorted(out.rglob("*.pickle")):
        name = str(path.relative_to(out).with_suffix(""))
        row = sets[name] = measured(path, methods)
        legs = "  ".join(
            f"{leg} {row[leg]:.4f}" for leg in ("words", "meaning", "oracle", "engine", TODAY)
        )
        print(f"{name:36} {legs}", flush=True)
    for line in gains(sets, families):
        print(line, flush=True)


def gains(
    sets: Mapping[str, Mapping[str, float]], families: Mapping[str, Mapping[str, Method]]
) -> Iterator[str]:
    """Over today, in thousandths: of each variant on each set; and of each family, one set out."""
    heads = [f"{number:>6}" for number in range(1, len(sets) + 1)]
    yield f"{'':36}{''.join(heads)}   mean  least"
    for family, variants in families.items():
        rows = {TODAY: [0.0] * len(sets)} | {
            variant: [row[f"{family}: {variant}"] - row[TODAY] for row in sets.values()]
            for variant in variants
        }
        chosen = [
            max(rows, key=lambda name: sum(rows[name]) - rows[name][left])
            for left in range(len(sets))
        ]
        rows["one set out"] = [rows[name][left] for left, name in enumerate(chosen)]
        for variant, row in rows.items():
            if variant != TODAY:
                cells = "".join(f"{1000 * gain:+6.1f}" for gain in row)
                total = f"{1000 * sum(row) / len(row):+7.1f}{1000 * min(row):+7.1f}"
                yield f"{family + ': ' + variant:36}{cells}{total}"


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
    parser.add_argument("--only", action="append", default=[], metavar="FAMILY")
    said = parser.parse_args()
    if said.what == "dump":
        dump_all(said.out, said.folders, said.home, said.cfg)
    else:
        try_all(said.out, said.only)


if __name__ == "__main__":
    main()
