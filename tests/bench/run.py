"""Speed and memory, each as a ratio to a reference taken in the same run.

    python tests/bench/run.py [--quick] [--out FILE]

Prints a table and writes JSON. Times are medians of whole processes, taken in turn with their
reference, because machines drift; --quick measures a tenth of the passages and notes.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import corpus
from bench_notes import place_notes
from bench_packs import import_packs

from kb.home.app import App
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.knowledge.topics import Learned, LearnInput, LearnLimits, Topic, execute
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest, SpaceName
from kb.operations import search

KB = str(Path(sys.executable).with_name("kb"))
IMPORTS = "import numpy, onnxruntime, tokenizers, tantivy, lmdb"
ROUNDS = 9

EMBED_ALONE = """
import sys
from kb.home.app import App
from kb.model.config import load
from kb.intake.embed.onnx import OnnxEmbedder, builtin_model_dir
from kb.model.text import indexed_text
from kb.store import chunks, docs
from pathlib import Path
with App.open(Path(sys.argv[1]), load([], []), create=False) as app, app.store.read() as txn:
    found = (chunks.get_active(txn, no) for no in chunks.all_numbers(txn))
    texts = [indexed_text(d.title, c.heading, c.text) for c, d in filter(None, found)]
OnnxEmbedder(builtin_model_dir()).embed_documents(texts)
"""


# Starts a command and says how long and how much memory it took. A child of this process would
# be counted with what this process held when it forked.
PEAK = """
import resource, subprocess, sys, time
started = time.perf_counter()
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - started
print(code, seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def spent(argv: list[str], home: Path) -> tuple[float, float]:
    """Wall seconds and peak resident MB of one process; its failure is ours."""
    env = {**os.environ, "KB_HOME": str(home)}
    # An installed program has its bytecode; a checkout is given it by the first round.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-S", "-c", PEAK, *argv], capture_output=True, text=True, env=env
    )
    code, seconds, peak_kb = done.stdout.split()
    if code != "0":
        sys.exit(f"{argv}: exit {code}: {done.stderr[-500:]}")
    return float(seconds), int(peak_kb) / 1024


def versus(
    name: str, argv: list[str], reference: list[str], home: Path, rounds: int
) -> dict[str, Any]:
    """Two commands in turn; the ratio is that of the medians."""
    ours: list[float] = []
    theirs: list[float] = []
    memory = 0.0
    for turn in range(rounds + 1):
        seconds, peak = spent(argv, home)
        base, _ = spent(reference, home)
        if turn:
            ours.append(seconds)
            theirs.append(base)
            memory = max(memory, peak)
    row = {
        "name": name,
        "seconds": statistics.median(ours),
        "reference_seconds": statistics.median(theirs),
        "ratio": statistics.median(ours) / statistics.median(theirs),
        "peak_mb": memory,
    }
    return said(row)


def said(row: dict[str, Any]) -> dict[str, Any]:
    """Print a row as it is known, and hand it on."""
    figures = "  ".join(f"{key} {value:.3f}" for key, value in row.items() if key != "name")
    print(f"{row['name']:34} {figures}", flush=True)
    return row


def cold_searches(scratch: Path, sizes: list[int]) -> tuple[list[dict[str, Any]], Path]:
    """`kb search` as a new process, against importing what it needs; homes stay for more."""
    rows = []
    home = scratch / "none"
    for size in sizes:
        home = scratch / f"home-{size}"
        corpus.make_home(home, scratch / f"books-{size}", size)
        subprocess.run([KB, "trust", str(home)], check=True, capture_output=True)
        ask = [KB, "search", "water garden market", "--json"]
        imports = [sys.executable, "-c", IMPORTS]
        rows.append(versus(f"cold search, {size} passages", ask, imports, home, ROUNDS))
        words = [*ask, "--mode", "lexical"]
        rows.append(versus("  by words alone", words, imports, home, ROUNDS))
    return rows, home


def warm_search(home: Path, count: int) -> dict[str, Any]:
    """Searches in one process, after a few to warm up; the reference is the query's embedding."""
    seconds: list[float] = []
    embedding: list[float] = []
    with App.open(home, load([], []), create=False) as app:
        for number, query in enumerate(corpus.queries(count + 10)):
            started = time.perf_counter()
            app.searcher.search(SearchRequest(query=query), OPERATOR)
            middle = time.perf_counter()
            app.embedder.embed_query(query)
            if number >= 10:
                seconds.append(middle - started)
                embedding.append(time.perf_counter() - middle)
    seconds.sort()
    return said(
        {
            "name": "warm search",
            "p50_ms": statistics.median(seconds) * 1000,
            "p95_ms": seconds[int(len(seconds) * 0.95)] * 1000,
            "ratio": statistics.median(seconds) / statistics.median(embedding),
        }
    )


def two_spaces(scratch: Path, passages: int) -> dict[str, Any]:
    """Searches of two spaces together, in turn with those of one that holds what both hold."""
    names: tuple[SpaceName, ...] = ("project", "user")
    one = SpaceHome(name="home", home=scratch / "space-home")
    both = [SpaceHome(name=name, home=scratch / f"space-{name}") for name in names]
    for seed, space in enumerate(both):
        books = scratch / f"books-{space.name}"
        corpus.write_books(books, passages, seed)
        corpus.take_in(space.home, books)
        corpus.take_in(one.home, books)
    together: list[float] = []
    alone: list[float] = []
    with (
        Spaces.open(both, lambda _: load([], [])) as two,
        Spaces.open([one], lambda _: load([], [])) as single,
    ):
        for query in corpus.queries(210):
            request = SearchRequest(query=query)
            started = time.perf_counter()
            search.run(two, request, OPERATOR)
            middle = time.perf_counter()
            search.run(single, request, OPERATOR)
            together.append(middle - started)
            alone.append(time.perf_counter() - middle)
    return said(
        {
            "name": f"two spaces of {passages} passages",
            "p50_ms": statistics.median(together[10:]) * 1000,
            "reference_p50_ms": statistics.median(alone[10:]) * 1000,
            "ratio": statistics.median(together[10:]) / statistics.median(alone[10:]),
        }
    )


def adding(scratch: Path, count: int) -> list[dict[str, Any]]:
    """Add end to end against embedding alone; then again, with nothing changed.

    In the order add, alone, alone, add, so that a machine that slows down favours neither.
    """
    notes, home = scratch / "notes", scratch / "home-notes"
    corpus.write_notes(notes, count)
    add = [KB, "add", "--recursive", str(notes)]
    first, peak = spent(add, home)
    alone = [spent([sys.executable, "-c", EMBED_ALONE, str(home)], home)[0] for _ in range(2)]
    second, _ = spent(add, scratch / "home-notes-again")
    rows = [
        said(
            {
                "name": f"add {count} notes",
                "seconds": (first + second) / 2,
                "reference_seconds": sum(alone) / 2,
                "ratio": (first + second) / sum(alone),
                "peak_mb": peak,
            }
        )
    ]
    # Files written a moment ago are read once more, since their stamps cannot be trusted yet.
    spent(add, home)
    imports = [sys.executable, "-c", IMPORTS]
    rows.append(versus("unchanged re-add, to the imports", add, imports, home, ROUNDS // 2))
    if shutil.which("recollindex"):
        (scratch / "recoll").mkdir()
        (scratch / "recoll/recoll.conf").write_text(f"topdirs = {notes}\n")
        recoll = ["recollindex", "-c", str(scratch / "recoll")]
        spent(recoll, home)
        rows.append(versus("unchanged re-add, to recollindex", add, recoll, home, ROUNDS // 2))
        rows.append(versus("  with --json", [*add, "--json"], recoll, home, ROUNDS // 2))
    else:
        print("recollindex is not installed: no re-add beside it")
    return rows


def processor() -> str:
    """The kind of processor, as far as speed depends on it."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.is_file() else ""
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    flags = set(text.split())
    has = [
        flag for flag in ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "asimddp") if flag in flags
    ]
    return f"{name[1] if name else platform.processor()}, {os.cpu_count()} cores, {' '.join(has)}"


def findable(scratch: Path, count: int) -> dict[str, Any]:
    """From files to findable by words, embedding aside: the chunk stage with every fsync."""
    notes = scratch / "notes"
    started = time.perf_counter()
    corpus.take_in(scratch / "home-words", notes)
    seconds = time.perf_counter() - started
    return said(
        {"name": "findable by words", "seconds": seconds, "notes_a_second": count / seconds}
    )


def topic_listing(scratch: Path, count: int) -> dict[str, Any]:
    """A topic's list in one process, against walking its folder alone."""
    folder = scratch / "topic"
    for number in range(count):
        part = folder / f"part-{number % 20}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"subject-{number}.md").write_text("# A subject\n")
    topic = Topic(id="bench", folder=folder, learned=("part-1/*",), disabled=("part-2/**",))
    asked = LearnInput(topic=topic, subjects=None, limits=LearnLimits(answer_bytes_max=1 << 30))
    listing: list[float] = []
    walking: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        found = execute(asked)
        middle = time.perf_counter()
        walked = sum(len(names) for _, _, names in os.walk(folder))
        listing.append(middle - started)
        walking.append(time.perf_counter() - middle)
        assert isinstance(found, Learned)
        assert len(found.subjects) == walked * 9 // 10
    return said(
        {
            "name": f"list a topic of {count} subjects",
            "seconds": statistics.median(listing),
            "reference_seconds": statistics.median(walking),
            "ratio": statistics.median(listing) / statistics.median(walking),
        }
    )


def main() -> None:
    """Measure everything, print it, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("bench-out/bench.json"))
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    print(f"processor: {processor()}")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        rows = [
            versus(
                "kb --help", [KB, "--help"], [sys.executable, "-c", "import click"], scratch, ROUNDS
            )
        ]
        sizes = [10_000 // scale, 100_000 // scale]
        cold, home = cold_searches(scratch, sizes)
        rows += [*cold, warm_search(home, 200)]
        rows.append(two_spaces(scratch, 50_000 // scale))
        rows += adding(scratch, 5_000 // scale)
        rows.append(findable(scratch, 5_000 // scale))
        rows.append(topic_listing(scratch, 2_000))
        rows.append(said(place_notes(scratch / "notebook", 1_000 // scale)))
        rows += map(said, import_packs(scratch / "packs", 5_000 // scale))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"processor": processor(), "rows": rows}
    options.out.write_text(json.dumps(document, indent=2) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
