"""Measure retrieval on a test set in BEIR layout, through the engine that users run.

    python scripts/eval_retrieval.py DIR... [--home KEEP] [--cfg KEY=VALUE]... [--mode MODE]...
        [--typos] [--json]

DIR holds corpus.jsonl, queries.jsonl and qrels.tsv. Each entry of the corpus becomes a doc, taken
in, cut, embedded and indexed as any other; a doc's rank is that of its best passage. Prints
nDCG@10 (gain linear in the grade), recall@10 and @100, and MRR@10 for each mode. With --typos each
query has a wrong letter in one of its longer words.
"""

import argparse
import csv
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any

import msgspec

from kb.home.app import App
from kb.intake.ingest.request import IngestOptions, IngestRequest, StagedDoc
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.ids import Lsid, sha256_hex
from kb.model.search import SearchMode, SearchRequest
from kb.model.text import Canonical
from kb.search.evaluation import DEPTH, Scores, mean, scores

MODES: tuple[SearchMode, ...] = ("lexical", "dense", "hybrid")
PASSAGES = 200
BATCH = 256


def entries(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Id, title and text of every entry of the corpus that has a text."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            yield str(entry["_id"]), entry.get("title") or "", entry["text"]


def take_in(app: App, rows: Iterable[tuple[str, str, str]]) -> None:
    """Take entries in, each an id, a title and a text, and work every job off."""
    batch: list[StagedDoc] = []
    for ident, title, text in rows:
        raw = f"{title}\n{text}".encode()
        if not text.strip() and not title.strip():
            continue
        request = IngestRequest(
            lsid=Lsid(f"eval:{ident}"),
            source=ident,
            kind="entry",
            canonical=Canonical(markdown=text.strip() or title, title=title, mime="text/plain"),
            raw=raw,
            raw_sha256=sha256_hex(raw),
            extension="txt",
            canonicalizer="eval",
            ingest_options=IngestOptions(),
        )
        batch.append(app.ingestor.stage(request))
        if len(batch) == BATCH:
            app.ingestor.commit(batch)
            batch = []
    if batch:
        app.ingestor.commit(batch)
    pool = app.pool()
    pool.start()
    try:
        pool.drain()
    finally:
        pool.shutdown()
    app.catch_up()


def judgements(folder: Path) -> dict[str, dict[str, int]]:
    """Grades above 0 by query and entry."""
    found: dict[str, dict[str, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as lines:
        for query, entry, grade in csv.reader(lines, delimiter="\t"):
            if grade.lstrip("-").isdigit() and int(grade) > 0:
                found.setdefault(query, {})[entry] = int(grade)
    return found


def with_typo(query: str, random: Random) -> str:
    """The query with a letter left out, doubled, replaced or swapped in one word of four or more.

    The first letter stays, as people hardly get that one wrong (Pollock and Zamora, 1984).
    """
    words = [match.span() for match in re.finditer(r"[^\W\d_]{4,}", query)]
    if not words:
        return query
    start, stop = random.choice(words)
    at = random.randrange(start + 1, stop - 1)
    before, letter, after, rest = query[:at], query[at], query[at + 1], query[at + 2 :]
    other = random.choice([one for one in ascii_lowercase if one != letter.lower()])
    kinds = (after, letter * 2 + after, other + after, after + letter)
    return before + random.choice(kinds) + rest


def measure(app: App, folder: Path, mode: SearchMode, *, typos: bool) -> dict[str, float]:
    """Means over the queries that have judgements, and the median time of a query."""
    grades = judgements(folder)
    rows: list[Scores] = []
    recalls: list[float] = []
    seconds: list[float] = []
    random = Random(1)
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            query = json.loads(line)
            if str(query["_id"]) not in grades:
                continue
            text = with_typo(query["text"], random) if typos else query["text"]
            started = time.perf_counter()
            request = SearchRequest(query=text, k=PASSAGES, mode=mode)
            docs, _ = app.searcher.docs(request, OPERATOR)
            seconds.append(time.perf_counter() - started)
            ranked = [doc.source for doc in docs]
            wanted = grades[str(query["_id"])]
            rows.append(scores(ranked, wanted))
            recalls.append(len(wanted.keys() & set(ranked[:DEPTH])) / min(DEPTH, len(wanted)))
    return {
        **msgspec.structs.asdict(mean(rows)),
        "recall_at_10": statistics.fmean(recalls),
        "queries": len(rows),
        "query_ms_p50": statistics.median(seconds) * 1000,
    }


def run(
    folder: Path, home: Path, overrides: list[str], modes: list[SearchMode], *, typos: bool
) -> dict[str, Any]:
    """These modes over one set."""
    with App.open(home, load([], overrides)) as app:
        with app.store.read() as txn:
            known = txn.count("versions")
        if not known:
            take_in(app, entries(folder))
        return {mode: measure(app, folder, mode, typos=typos) for mode in modes}


def show(name: str, modes: dict[str, Any]) -> None:
    """Print what one set gave."""
    for mode, row in modes.items():
        print(
            f"{name:24} {mode:8} nDCG@10 {row['ndcg_at_10']:.4f}  recall@10 "
            f"{row['recall_at_10']:.4f}  recall@100 "
            f"{row['recall_at_100']:.4f}  MRR@10 {row['mrr_at_10']:.4f}  "
            f"p50 {row['query_ms_p50']:.1f} ms",
            flush=True,
        )


def main() -> None:
    """Parse the call, measure each set, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--home", type=Path, help="keep the homes here and use them again")
    parser.add_argument("--cfg", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--mode", action="append", choices=MODES, help="these alone")
    parser.add_argument("--typos", action="store_true", help="with a wrong letter in each query")
    parser.add_argument("--json", action="store_true", dest="as_json")
    said = parser.parse_args()
    results: dict[str, Any] = {}
    for folder in said.folders:
        if not (folder / "corpus.jsonl").is_file():
            sys.exit(f"{folder}: no corpus.jsonl there")
        with tempfile.TemporaryDirectory() as temporary:
            home = (said.home or Path(temporary)) / folder.resolve().name
            modes = results[folder.resolve().name] = run(
                folder, home, said.cfg, said.mode or [*MODES], typos=said.typos
            )
        if not said.as_json:
            show(folder.resolve().name, modes)
    if said.as_json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
