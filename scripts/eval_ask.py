"""Measure what `kb ask` is built on: whether the right note is found, and what the check sees.

    python scripts/eval_ask.py [--cfg KEY=VALUE]...

The notes and questions are those of tests/data/ask_questions.json; no language model is asked.
Prints recall@5 of the right note and the median time of a search for each mode, then how many
answers the check supports: those that cite the right note, near to its words or loosely, those with
a number changed or a name added, and those that cite any of the other notes.
"""

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from eval_retrieval import MODES, take_in

from kb.home.app import App
from kb.knowledge.answers.checking import CitationChecker
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import Hit, SearchMode, SearchRequest

QUESTIONS = Path(__file__).parents[1] / "tests/data/ask_questions.json"
K = 5


def measure(cfg: list[str]) -> None:
    """Take the notes in, and print the figures."""
    said = json.loads(QUESTIONS.read_text("utf-8"))
    rows = said["questions"]
    with tempfile.TemporaryDirectory() as folder, App.open(Path(folder), load([], cfg)) as app:
        take_in(app, ((name, "", text) for name, text in said["notes"].items()))
        for mode in MODES:
            found, ms = recall(app, rows, mode)
            print(f"{mode:8} recall@{K} {found:.3f}  {ms:.1f} ms  ({len(rows)} questions)")
        print_checks(app, rows)


def recall(app: App, rows: list[dict[str, str]], mode: SearchMode) -> tuple[float, float]:
    """The share of questions whose note is among the first, and the median time in ms."""
    found, seconds = 0, []
    for row in rows:
        started = time.perf_counter()
        request = SearchRequest(query=row["question"], k=K, mode=mode)
        hits = app.searcher.search(request, OPERATOR).hits
        seconds.append(time.perf_counter() - started)
        found += row["note"] in [hit.source for hit in hits]
    return found / len(rows), statistics.median(seconds) * 1000


def print_checks(app: App, rows: list[dict[str, str]]) -> None:
    """How many answers of each sort are supported."""
    hits = {row["note"]: note_of(app, row) for row in rows}
    right = [(row["answer"], hits[row["note"]]) for row in rows]
    loosely = [(row["loosely"], hits[row["note"]]) for row in rows if "loosely" in row]
    others = [
        (text, hit)
        for text, own in (*right, *loosely)
        for hit in hits.values()
        if hit.source != own.source
    ]
    changed = [(re.sub(r"\d", "6", text, count=1), hit) for text, hit in right]
    kinds = {
        "the right note": right,
        "the right note, said loosely": loosely,
        "a number changed": [(text, hit) for text, hit in changed if (text, hit) not in right],
        "a name added": [(text[:-1] + ", says Theodora.", hit) for text, hit in right],
        "any other note": others,
    }
    for name, pairs in kinds.items():
        print(f"supported, {name}: {' of '.join(map(str, counted(app, pairs)))}")


def note_of(app: App, row: dict[str, str]) -> Hit:
    """The passage of a question's note: each note has one."""
    found = app.searcher.search(SearchRequest(query=row["answer"], k=20), OPERATOR).hits
    return next(hit for hit in found if hit.source == row["note"])


def counted(app: App, pairs: Sequence[tuple[str, Hit]]) -> tuple[int, int]:
    """How many sentences are supported by their passage, and how many there are."""
    given = [
        CitationChecker([hit], lambda: app.embedder).checked([f"{text} [1]"]).sentences[0].supported
        for text, hit in pairs
    ]
    return sum(given), len(given)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cfg", action="append", default=[], metavar="KEY=VALUE")
    measure(parser.parse_args().cfg)
