"""From where on is a section of an entry an answer? Measured on labelled questions.

    python scripts/calibrate_guide.py [QUESTIONS.json]

QUESTIONS is a list of {"question", "entry"}: the id of the shipped entry that answers, or null
where none does. Each is asked of the shipped entries through the code that users run. Every second
question of either sort, in the order of the file, is for choosing the score from which on a section
counts; the others say what that choice is worth. Prints the curve of both halves: the share of
answerable questions whose entry is among the three, and of the others that are answered.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.home.core import open_core
from kb.knowledge.guide.catalog import CHUNKS_MAX, EntryCatalog, scored
from kb.model.doc import OPERATOR

QUESTIONS: Final = Path(__file__).parents[1] / "tests/data/guide_questions.json"
STEPS: Final = tuple(step / 100 for step in range(20, 71, 2))


class Asked(Struct, frozen=True, kw_only=True):
    """A question and how sure the best answer is."""

    question: str
    is_answerable: bool
    score: float
    """Of the entry that is right, 0 where it is not among the best; else of the best of all."""


class Rates(Struct, frozen=True, kw_only=True):
    """What a least score does to some questions."""

    found_right: float
    found_wrong: float


def measured(questions: Path = QUESTIONS) -> list[Asked]:
    """Every question, asked of the shipped entries."""
    rows = json.loads(questions.read_text("utf-8"))
    backgrounds: dict[str, float] = {}
    with ExitStack() as resources:
        app = open_core(resources, None, None)
        catalog = EntryCatalog(name="kb", store=lambda: app.store, searcher=app.opened().searcher)
        found = [scored(catalog, row["question"], OPERATOR, backgrounds).chunks for row in rows]
    asked = []
    for row, chunks in zip(rows, found, strict=True):
        best = sorted(chunks, key=lambda chunk: (-chunk.score, chunk.zettel_id))[:CHUNKS_MAX]
        wanted = row["entry"]
        scores = [one.score for one in best if wanted in (None, one.zettel_id)]
        asked.append(
            Asked(
                question=row["question"],
                is_answerable=wanted is not None,
                score=max(scores, default=0.0),
            )
        )
    return asked


def halves(asked: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """Those for the choice, and those for the report: every second one of either sort."""
    sorts = [[one for one in asked if one.is_answerable is sort] for sort in (True, False)]
    fit, report = ([one for sort in sorts for one in sort[start::2]] for start in (0, 1))
    return fit, report


def rates(asked: Sequence[Asked], score_min: float) -> Rates:
    """The shares that are found from a score on."""

    def found(sort: bool) -> float:
        scores = [one.score for one in asked if one.is_answerable is sort]
        return sum(score >= score_min for score in scores) / len(scores)

    return Rates(found_right=found(True), found_wrong=found(False))


def chosen(asked: Sequence[Asked]) -> float:
    """The step where as many are missed as are wrong, or nearly so; of equal ones the lowest."""

    def gap(step: float) -> float:
        at = rates(asked, step)
        return round(abs(1.0 - at.found_right - at.found_wrong), 6)

    return min(STEPS, key=lambda step: (gap(step), step))


def main() -> None:
    """Print the curve."""
    asked = measured(*map(Path, sys.argv[1:2]))
    fit, report = halves(asked)
    print("| score from | right, fit | wrong, fit | right, report | wrong, report |")
    print("|---|---|---|---|---|")
    for step in STEPS:
        at, there = rates(fit, step), rates(report, step)
        cells = (at.found_right, at.found_wrong, there.found_right, there.found_wrong)
        print(f"| {step:.2f} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    best = chosen(fit)
    at = rates(report, best)
    print(f"\nchosen on the fit half: {best:.2f}; on the report half right ", end="")
    print(f"{at.found_right:.3f}, wrong {at.found_wrong:.3f}")
    for one in sorted(asked, key=lambda one: one.score):
        if one.is_answerable is (one.score < best):
            print(f"  {'missed' if one.is_answerable else 'wrong'} {one.score:.3f} {one.question}")


if __name__ == "__main__":
    main()
