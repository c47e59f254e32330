"""Would weights that are learned from questions order the candidates better?

    python scripts/learn_order.py OUT

OUT is what `explore_fusion.py dump` wrote. To the engine's score of the best candidates, weights
are learned for what is known of each besides: on pairs of a doc that answers and one that does not,
each pair with the nDCG@10 that swapping it would change (LambdaRank; Burges, From RankNet to
LambdaRank to LambdaMART, 2010). Each set is left out once, with those made of the same texts, and
the weights of the others order it. Prints what each set gains over today's engine, in thousandths
of nDCG@10: by each feature alone, by all, and by all where the set itself was learned from, too,
which nothing that holds for other questions can reach.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from explore_fusion import Dumped, Passages, Postings, Question, ndcg, pooled, postings_of
from fusion_methods import FAMILIES, Pool, spread
from msgspec import Struct

Array = Any
FEATURES: Final = (
    "words",
    "meaning",
    "share of the ceiling",
    "cosine",
    "coverage",
    "rarest words",
    "pairs of words",
    "title",
    "support",
    "position",
)
_ENGINE: Final = FAMILIES["shown scores of the nearest"]["50, 5, 0.2"]
_BEST: Final = 50
_NEAREST: Final = 5
_RAREST: Final = 2
_JUDGED: Final = 10
_ROUNDS: Final = 4
_STEPS: Final = 20
# Of the squares of the weights; ten times more or less changes little.
_RIDGE: Final = 1e-4
_LEAST_CHANGE: Final = 1e-4
_DISCOUNTS: Final = 1 / np.log2(np.arange(2, _JUDGED + 2))
_SAME_TEXTS: Final = {
    "titles": "cranfield",
    "long_docs": "chunking_evaluation",
    "foreign_manuals": "manuals",
}


class Asked(Struct, frozen=True, kw_only=True):
    """The best candidates of a question, best first as the engine has them."""

    features: Array
    """The engine's score and the features, shape (n, 1 + len(FEATURES))."""
    docs: Array
    """Shape (n,)."""
    grades: Mapping[int, int]


class Pairs(Struct, frozen=True, kw_only=True):
    """The p pairs of docs of a set of which one answers better, each by its first candidate."""

    rows: Array
    """Features of the better less those of the worse, shape (p, 1 + len(FEATURES))."""
    question: Array
    better: Array
    """The positions of both among the candidates of the question, shape (p,)."""
    worse: Array
    gain: Array
    """The difference of their grades, as a share of the best nDCG@10 of the question."""
    features: Array
    """Of all questions, shape (m, n, 1 + len(FEATURES))."""
    rivals: Array
    """Which candidates are the first of their docs, shape (m, n)."""


class Measured(Struct, frozen=True, kw_only=True):
    """A set: the questions that both legs judge, and nDCG@10 of the others."""

    questions: Sequence[Asked]
    others: Sequence[float]
    pairs: Pairs


def rarities(question: Question, postings: Postings, count: int) -> dict[int, float]:
    """The weight of each of the question's terms."""
    found = {}
    for term in dict.fromkeys(question.terms):
        holding = len(postings.get(term, ()))
        found[term] = math.log1p((count - holding + 0.5) / (holding + 0.5))
    return found


def of_terms(passages: Passages, question: Question, places: Array, rarity: Any) -> Array:
    """Shares of the rarest words, of adjacent pairs, and of words in the title; shape (n, 3)."""
    terms = [term for term in rarity if term >= 0]
    rarest = sorted(terms, key=lambda term: -rarity[term])[:_RAREST]
    pairs = {
        (one, other): rarity[one] + rarity[other]
        for one, other in pairwise(question.terms)
        if min(one, other) >= 0
    }
    rows = np.zeros((len(places), 3))
    for row, place in zip(rows, places, strict=True):
        own = passages.terms[place].tolist()
        held, titled = set(own), set(own[: passages.titled[place]])
        adjacent = set(pairwise(own))
        row[0] = sum(rarity[term] for term in rarest if term in held)
        row[1] = sum(weight for pair, weight in pairs.items() if pair in adjacent)
        row[2] = sum(rarity[term] for term in terms if term in titled)
    most = (sum(rarity[term] for term in rarest), sum(pairs.values()), sum(rarity.values()))
    return rows / np.maximum(most, 1e-9)


def asked(passages: Passages, question: Question, pool: Pool, postings: Postings) -> Asked:
    """The best candidates with their features."""
    scores = _ENGINE(pool)
    shown = spread(pool.today)
    best = np.argsort(-scores, kind="stable")[:_BEST]
    places = pool.places[best]
    cosines = pool.first_cosines
    rarity = rarities(question, postings, len(passages.docs))
    lexical = np.nan_to_num(question.lexical[places])
    starts = np.searchsorted(passages.docs, passages.docs[places])
    columns = (
        scores,
        pool.words,
        pool.meaning,
        None,
        (cosines - cosines.mean()) / (cosines.std() + 1e-9),
        pool.coverage,
        None,
        None,
        None,
        shown[pool.near[:, :_NEAREST]].mean(axis=1) - shown,
        None,
    )
    features = np.zeros((len(best), 1 + len(FEATURES)))
    for number, column in enumerate(columns):
        if column is not None:
            features[:, number] = column[best]
    features[:, 3] = lexical / question.ceiling if question.ceiling else 0.0
    features[:, 6:9] = of_terms(passages, question, places, rarity)
    features[:, 10] = np.log1p(places - starts)
    return Asked(features=features, docs=pool.docs[best], grades=question.grades)


def read(path: Path) -> tuple[list[Asked], list[float]]:
    """A set as it was dumped: its questions that both legs judge, and nDCG@10 of the others."""
    with path.open("rb") as file:
        passages, questions = Dumped(file).load()
    order = np.argsort(passages.docs, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        # Docs whose passages do not lie together have no positions to tell.
        raise ValueError(path)
    postings = postings_of(passages)
    both, others = [], []
    for question in questions:
        pool = pooled(passages, question, postings)
        if pool is None:
            others.append(ndcg(question.best, question.grades))
        else:
            both.append(asked(passages, question, pool, postings))
    return both, others


def paired(questions: Sequence[Asked]) -> Pairs:
    """All pairs."""
    features = np.zeros((len(questions), _BEST, 1 + len(FEATURES)))
    rivals = np.zeros((len(questions), _BEST), dtype=bool)
    parts: list[tuple[Array, ...]] = []
    for number, question in enumerate(questions):
        features[number, : len(question.docs)] = question.features
        first = np.unique(question.docs, return_index=True)[1]
        rivals[number, first] = True
        grades = np.array([question.grades.get(doc, 0) for doc in question.docs[first].tolist()])
        better, worse = np.nonzero(grades[:, None] > grades[None, :])
        ideal = np.sort([*question.grades.values()])[::-1][:_JUDGED]
        gain = (grades[better] - grades[worse]) / (ideal * _DISCOUNTS[: len(ideal)]).sum()
        own = np.full(len(better), number)
        parts.append((own, first[better], first[worse], gain))
    own, better, worse, gain = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Pairs(
        rows=features[own, better] - features[own, worse],
        question=own,
        better=better,
        worse=worse,
        gain=gain,
        features=features,
        rivals=rivals,
    )


def swapped(pairs: Pairs, columns: Array, weights: Array) -> Array:
    """What swapping each pair changes of nDCG@10 in the order by these weights; shape (p,)."""
    scores = np.where(pairs.rivals, pairs.features[:, :, columns] @ weights, -np.inf)
    ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    discounts = np.where(ranks < _JUDGED, _DISCOUNTS[np.minimum(ranks, _JUDGED - 1)], 0.0)
    own = pairs.question
    return pairs.gain * np.abs(discounts[own, pairs.better] - discounts[own, pairs.worse])


def learned(sets: Sequence[Measured], columns: Array) -> Array:
    """The weights that order these sets best, each set counting the same."""
    start = np.zeros(len(columns))
    start[0] = 1.0
    weights = start
    for _ in range(_ROUNDS):
        rows, changes = [], []
        for one in sets:
            change = swapped(one.pairs, columns, weights)
            matter = change > _LEAST_CHANGE
            rows.append(one.pairs.rows[np.ix_(matter, columns)])
            changes.append(change[matter] / len(one.questions))
        every = np.concatenate(changes)
        weights = regressed(np.concatenate(rows), every / every.sum(), start, weights)
    return weights


def regressed(rows: Array, changes: Array, start: Array, weights: Array) -> Array:
    """The minimum of the logistic loss by Newton's method, drawn towards the start."""
    for _ in range(_STEPS):
        wrong = 1 / (1 + np.exp(np.clip(rows @ weights, -50, 50)))
        slope = -(changes * wrong) @ rows + 2 * _RIDGE * (weights - start)
        bend = (rows * (changes * wrong * (1 - wrong))[:, None]).T @ rows
        step = np.linalg.solve(bend + 2 * _RIDGE * np.eye(len(weights)), slope)
        weights = weights - step
        if np.abs(step).max() < _LEAST_CHANGE:
            break
    return weights


def mean(one: Measured, columns: Array, weights: Array) -> float:
    """nDCG@10 of a set by these weights."""
    values = [*one.others]
    for question in one.questions:
        scores = question.features[:, columns] @ weights
        docs = question.docs[np.argsort(-scores.round(6), kind="stable")]
        values.append(ndcg(list(dict.fromkeys(docs.tolist())), question.grades))
    return float(np.mean(values))


def texts(name: str) -> str:
    """What a set is made of; sets of the same are left out together."""
    last = name.rsplit("/", 1)[-1]
    return "xquad" if last.startswith("xquad") else _SAME_TEXTS.get(last, last)


def table(sets: Mapping[str, Measured]) -> Iterator[str]:
    """Lines of Markdown."""
    alone = np.zeros(1, dtype=int)
    before = {name: mean(one, alone, np.ones(1)) for name, one in sets.items()}
    every = np.arange(1 + len(FEATURES))
    rows = [(name, np.array([0, number]), True) for number, name in enumerate(FEATURES, 1)]
    rows += [("all", every, True), ("all, learned from the set, too", every, False)]
    yield "| | " + " | ".join(sets) + " | mean | least |"
    yield "|---" * (len(sets) + 3) + "|"
    for label, columns, is_left_out in rows:
        gains = []
        kept: dict[str, Array] = {}
        for name, one in sets.items():
            left = texts(name) if is_left_out else ""
            if left not in kept:
                others = [other for key, other in sets.items() if texts(key) != left]
                kept[left] = learned(others, columns)
            gains.append(1000 * (mean(one, columns, kept[left]) - before[name]))
        cells = " | ".join(f"{gain:+.1f}" for gain in (*gains, np.mean(gains), min(gains)))
        yield f"| {label} | {cells} |"


def scaled(sets: Mapping[str, tuple[list[Asked], list[float]]]) -> dict[str, Measured]:
    """The sets, each feature divided by its spread over all of them."""
    rows = np.concatenate([question.features for own, _ in sets.values() for question in own])
    spreads = rows.std(axis=0) + 1e-9
    for own, _ in sets.values():
        for question in own:
            question.features[:] /= spreads
    return {
        name: Measured(questions=own, others=others, pairs=paired(own))
        for name, (own, others) in sets.items()
    }


def main() -> None:
    """Read what was dumped, learn, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path)
    out: Path = parser.parse_args().out
    sets = {
        str(path.relative_to(out).with_suffix("")): read(path)
        for path in sorted(out.rglob("*.pickle"))
    }
    # A set that one leg alone judges has nothing to learn from.
    judged = {name: one for name, one in sets.items() if len(one[0]) > len(one[1])}
    for line in table(scaled(judged)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
