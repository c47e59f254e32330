"""From where on does a passage fit a question? Measured on test sets in BEIR layout.

    python scripts/calibrate_floor.py DATA [--home KEEP] [--fusion spaced|plain] [--model KIND]

DATA holds folders of corpus.jsonl, queries.jsonl and qrels.tsv. A question that a set has an answer
to is answerable there; asked of another set, it is foreign. Sets of one language are asked each
other's questions. A set of several subjects or languages is taken apart by its ids; one that is
alone in its language is halved, and each half is asked the questions of the other.

Every question is asked through the engine that users run. `explain` gives the fit of each hit, and
with it the sum of signs that the floor is set for. The floor is the lowest one at which a share of
the foreign questions, FOREIGN_WEAK, has weak hits alone, each pair of sets counting alike. For the
report each set is left out in turn, as corpus and as questions, and judged by the floor of the
others. Skips what is not there, and says so.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import eval_retrieval as retrieval
from msgspec import Struct

from kb.home.app import App
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import SearchMode, SearchRequest
from kb.search.fit import FitRule, fit_rule, fit_strength
from kb.search.hits import FIT_THRESHOLD
from kb.search.index.analysis import ANALYSIS_VERSION

FOREIGN_WEAK: Final = 0.88
FOREIGN_WEAK_BY_WORDS: Final = 0.80
QUESTIONS_MAX: Final = 60
HITS: Final = 10
_HALF: Final = 0.5
DIGITS: Final = 2
STEPS: Final = tuple(step / 50 for step in range(9, 26))
LANGUAGES: Final = ("el", "hi", "ro", "th", "tr", "vi")


class LabelledSet(Struct, frozen=True, kw_only=True):
    """A corpus, and questions that it answers."""

    name: str
    family: str
    """What is left out as one: parts of one corpus are not strangers to each other."""
    language: str
    docs: tuple[tuple[str, str, str], ...]
    """Id, title and text."""
    questions: tuple[str, ...]


class Pair(Struct, frozen=True, kw_only=True):
    """Questions of one set asked of another, or of itself."""

    corpus: str
    questions: str
    families: tuple[str, str]
    strengths: tuple[float, ...]
    """The best hit's sum of signs for each question, as far as it is told."""
    by_words: bool
    """Whether words alone spoke, for the model does not read the script."""

    @property
    def is_foreign(self) -> bool:
        """Whether nothing there answers."""
        return self.corpus != self.questions

    def weak(self, floor: float) -> float:
        """The share of questions with weak hits alone."""
        return sum(one < floor for one in self.strengths) / len(self.strengths)


def labelled(data: Path) -> Iterator[LabelledSet]:
    """The sets that are there."""
    yield from _parts(data, "cranfield", "en", lambda _: "cranfield")
    yield from _parts(data, "chunking_evaluation", "en", lambda ident: ident.split("#")[0])
    yield from _halves(data, "cmrc2018_trial", "zh", "")
    for language in LANGUAGES:
        yield from _halves(data, "xquad_six_languages", language, f"{language}-")


def _parts(
    data: Path, folder: str, language: str, part_of: Callable[[str], str]
) -> Iterator[LabelledSet]:
    docs = _docs(data / folder)
    for part in dict.fromkeys(part_of(ident) for ident, _, _ in docs):
        mine = [doc for doc in docs if part_of(doc[0]) == part]
        yield _made(data / folder, part, part, language, mine, "")


def _halves(data: Path, folder: str, language: str, prefix: str) -> Iterator[LabelledSet]:
    docs = [doc for doc in _docs(data / folder) if doc[0].startswith(prefix)]
    name = f"{folder.split('_', maxsplit=1)[0]}-{language}"
    middle = len(docs) // 2
    for half, mine in (("a", docs[:middle]), ("b", docs[middle:])):
        if mine:
            yield _made(data / folder, f"{name}-{half}", name, language, mine, prefix)


def _docs(folder: Path) -> list[tuple[str, str, str]]:
    if not (folder / "corpus.jsonl").is_file():
        print(f"skipped: {folder} is not there", file=sys.stderr)
        return []
    return [*retrieval.entries(folder)]


def _made(
    folder: Path,
    name: str,
    family: str,
    language: str,
    docs: Sequence[tuple[str, str, str]],
    prefix: str,
) -> LabelledSet:
    grades = retrieval.judgements(folder)
    idents = {ident for ident, _, _ in docs}
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    questions = [
        row["text"]
        for row in rows
        if row["_id"].startswith(prefix) and not idents.isdisjoint(grades.get(row["_id"], ()))
    ]
    return LabelledSet(
        name=name,
        family=family,
        language=language,
        docs=tuple(docs),
        questions=tuple(_some(questions)),
    )


def _some(questions: Sequence[str]) -> Sequence[str]:
    return questions[:: max(1, math.ceil(len(questions) / QUESTIONS_MAX))]


def measured(
    sets: Sequence[LabelledSet], root: Path, settings: Sequence[str], mode: SearchMode
) -> list[Pair]:
    """Every set asked its own questions and those of the others in its language."""
    pairs: list[Pair] = []
    for one in sets:
        with App.open(root / one.name, load([], list(settings))) as app:
            with app.store.read() as txn:
                known = txn.count("versions")
            if not known:
                retrieval.take_in(app, iter(one.docs))
            for other in sets:
                if other.language == one.language:
                    asked = [_strength(app, text, mode) for text in other.questions]
                    pair = Pair(
                        corpus=one.name,
                        questions=other.name,
                        families=(one.family, other.family),
                        strengths=tuple(strength for strength, _ in asked),
                        by_words=statistics.fmean(by_words for _, by_words in asked) > _HALF,
                    )
                    pairs.append(pair)
    return pairs


def _strength(app: App, text: str, mode: SearchMode) -> tuple[float, bool]:
    request = SearchRequest(query=text, k=HITS, mode=mode, explain=True)
    found = app.searcher.search(request, OPERATOR)
    fits = [float(hit.explain["fit"]) for hit in found.hits if hit.explain]
    by_words = mode == "lexical" or any("by words alone" in one for one in found.warnings)
    rule = fit_rule(None if by_words else app.embedder.fingerprint, app.settings.search.fusion)
    return _strength_of(max(fits, default=0.0), rule), by_words


def _strength_of(fit: float, rule: FitRule) -> float:
    """The inverse of `FitRule.fit`."""
    floor, most = rule.coverage_floor, 1.0
    if rule.combined_floor is not None:
        floor, most = rule.combined_floor, fit_strength(1.0, 1.0)
    if fit < FIT_THRESHOLD:
        return fit / FIT_THRESHOLD * floor
    return floor + (fit - FIT_THRESHOLD) / (1.0 - FIT_THRESHOLD) * (most - floor)


def floor_of(pairs: Sequence[Pair], wanted: float) -> float:
    """The lowest step at which that share of the foreign questions is weak."""
    foreign = [pair for pair in pairs if pair.is_foreign]
    for step in range(1, 100):
        floor = step / 10**DIGITS
        if statistics.fmean(pair.weak(floor) for pair in foreign) >= wanted:
            return floor
    return 1.0


def report(title: str, pairs: Sequence[Pair], wanted: float) -> None:
    """Print the floor, the curve, and what each set's questions get by the floor of the others."""
    foreign = [pair for pair in pairs if pair.is_foreign]
    own = [pair for pair in pairs if not pair.is_foreign]
    print(f"\n{title}: {floor_of(pairs, wanted):.{DIGITS}f}\n")
    print("| floor | foreign, weak | answerable, not weak |\n|---|---|---|")
    for step in STEPS:
        marked = statistics.fmean(pair.weak(step) for pair in foreign)
        kept = statistics.fmean(1 - pair.weak(step) for pair in own)
        print(f"| {step:.2f} | {marked:.3f} | {kept:.3f} |")
    print("\n| left out | floor of the others | foreign, weak | answerable, not weak |")
    print("|---|---|---|---|")
    rows: list[tuple[float, float]] = []
    for family in dict.fromkeys(pair.families[0] for pair in pairs):
        others = [pair for pair in pairs if family not in pair.families]
        floor = floor_of(others, wanted)
        marked = statistics.fmean(p.weak(floor) for p in foreign if family in p.families)
        kept = statistics.fmean(1 - p.weak(floor) for p in own if family in p.families)
        rows.append((marked, kept))
        print(f"| {family} | {floor:.2f} | {marked:.3f} | {kept:.3f} |")
    marked, kept = (statistics.fmean(column) for column in zip(*rows, strict=True))
    print(f"| mean | | {marked:.3f} | {kept:.3f} |")


def main() -> None:
    """Parse the call, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--home", type=Path, help="keep the homes here and use them again")
    parser.add_argument("--fusion", choices=("spaced", "plain"), help="this one alone")
    parser.add_argument("--model", default="onnx", help="the kind of model; onnx is the built-in")
    said = parser.parse_args()
    sets = [one for one in labelled(said.data) if one.questions]
    if not sets:
        print(f"skipped: {said.data} has none of the test sets")
        return
    with tempfile.TemporaryDirectory() as temporary:
        root = (said.home or Path(temporary)) / said.model
        for fusion in (said.fusion,) if said.fusion else ("spaced", "plain"):
            key = f"{said.model}, {fusion}, analysis {ANALYSIS_VERSION}"
            settings = [f"search.fusion={fusion}", f"embed.kind={said.model}"]
            by_both = measured(sets, root, settings, "hybrid")
            near = [pair for pair in by_both if not pair.by_words]
            report(f"both signs, {key}", near, FOREIGN_WEAK)
            by_words = measured(sets, root, settings, "lexical")
            report(f"words alone, {key}", by_words, FOREIGN_WEAK_BY_WORDS)


if __name__ == "__main__":
    main()
