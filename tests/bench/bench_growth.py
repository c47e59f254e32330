"""How do costs grow with a home? Prints one JSON object for each size; `make bench-growth`.

    python tests/bench/bench_growth.py [--homes FOLDER] [--data FOLDER] [PASSAGES ...]

Homes are made of docs of twenty passages each: of edited sentences of the test sets in --data, or
of made-up ones. Vectors lie around 1,000 centres, as those of real texts do. With --homes the homes
are kept, and used again. A cold search is compared
with the bare imports of what it needs, in turn and by processor time, so that it may be measured
beside other work; `cpu` is processor time everywhere.
"""

import argparse
import functools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import corpus
from msgspec import structs
from run import IMPORTS, KB, ROUNDS

from kb.home.app import App
from kb.intake.embed.onnx import builtin_model_dir
from kb.intake.embed.protocol import Span
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.ids import sha256_hex
from kb.model.search import SearchRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZES = (10_000, 100_000, 1_000_000)
DOCS_A_ROUND = 1_000
CENTRES = 1_000
NOISES = 4_096
WARM = 200
EDITS = 9
CATCH_UP = """
import sys
from pathlib import Path
from kb.home.app import App
from kb.model.config import load
with App.open(Path(sys.argv[1]), load([], []), create=False) as app:
    app.catch_up()
"""
_SPANS: list[Span] = []


class ClusteredEmbedder(corpus.InstantEmbedder):
    """Vectors around centres, as real ones are, and tokens counted by letters.

    A vector is a centre and the sum of two of 4,096 noises, so that it costs next to nothing.
    """

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Unit vectors, the same for the same text."""
        import numpy as np

        seeds = np.array([int(sha256_hex(text)[:15], 16) for text in texts], np.uint64)
        centres, noises = (_drawn(count, self.dim) for count in (CENTRES, NOISES))
        rows = 1.5 * centres[seeds % CENTRES]
        rows += noises[seeds // CENTRES % NOISES] * np.float32(0.5**0.5)
        rows += noises[seeds // (CENTRES * NOISES) % NOISES] * np.float32(0.5**0.5)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """Four letters a token: a million passages need no better count."""
        return [[*_quarters(len(t) // 4), *_rest(len(t))] for t in texts]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `token_spans_batch`."""
        return [-(-len(text) // 4) for text in texts]


@functools.cache
def _drawn(rows: int, dim: int) -> "NDArray[np.float32]":
    import numpy as np

    return np.random.default_rng(rows).standard_normal((rows, dim), np.float32)


def _quarters(count: int) -> list[Span]:
    while len(_SPANS) < count:
        _SPANS.append((4 * len(_SPANS), 4 * len(_SPANS) + 4))
    return _SPANS[:count]


def _rest(length: int) -> list[Span]:
    return [(length // 4 * 4, length)] if length % 4 else []


def make_home(home: Path, passages: int, texts: Sequence[str]) -> None:
    """A home of so many passages, unless it is there. A killed run goes on where it was."""
    docs = passages // 20
    done = home / "made"
    made = int(done.read_text()) if done.exists() else 0
    while made < docs:
        count = min(DOCS_A_ROUND, docs - made)
        folder = home / "books" / f"{made:07d}"
        if not folder.exists():
            corpus.write_books(folder, count * 20, seed=made + 7, texts=texts)
        corpus.take_in(home / "home", folder, ClusteredEmbedder(builtin_model_dir()), index=False)
        made += count
        done.write_text(str(made))
    with App.open(home / "home", load([], [])) as app:
        app.catch_up()
    subprocess.run([KB, "trust", str(home / "home")], check=True, capture_output=True)


def processor_s(argv: Sequence[str], home: Path) -> float:
    """Processor seconds of one process."""
    env = {**os.environ, "KB_HOME": str(home)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{argv}: exit {process.returncode}")
    return used.ru_utime + used.ru_stime


def cold(home: Path, *options: str) -> dict[str, float]:
    """Processor time of a search in a new process against its imports, in turn."""
    ours, theirs = [], []
    for _ in range(ROUNDS + 1):
        ours.append(processor_s([KB, "search", "water garden market", "--json", *options], home))
        theirs.append(processor_s([sys.executable, "-c", IMPORTS], home))
    ratio = statistics.median(ours[1:]) / statistics.median(theirs[1:])
    return {"cpu_ms": round(statistics.median(ours[1:]) * 1e3, 1), "ratio": round(ratio, 2)}


def warm(app: App, request: SearchRequest) -> dict[str, float]:
    """Searches in one process, and of it the query's embedding, after a few to warm up."""
    took, cpu, embedding = [], [], []
    for query in corpus.queries(WARM + 10):
        began, started = time.process_time(), time.perf_counter()
        app.searcher.search(structs.replace(request, query=query), OPERATOR)
        took.append((time.perf_counter() - started) * 1e3)
        ended = time.process_time()
        cpu.append((ended - began) * 1e3)
        app.embedder.embed_query(query)
        embedding.append((time.process_time() - ended) * 1e3)
    took = sorted(took[10:])
    return {
        "p50_ms": round(took[len(took) // 2], 1),
        "p95_ms": round(took[-len(took) // 20], 1),
        "cpu_p50_ms": round(statistics.median(cpu[10:]), 1),
        "embedding_cpu_p50_ms": round(statistics.median(embedding[10:]), 1),
    }


def catching_up(home: Path) -> dict[str, float]:
    """Milliseconds from a changed file of a doc to level caches, the worker's part aside."""
    path = next(iter(sorted((home / "books").rglob("*.md"))))
    took, cpu = [], []
    for turn in range(EDITS):
        path.write_text(path.read_text() + f"\n\nEdit {turn} at {time.time_ns()}.\n")
        with App.open(home / "home", load([], []), create=False) as app:
            with app.parser() as parser:
                app.adder(parser, corpus.AddOptions(recursive=True)).add([str(path)])
            corpus.drain(app, ClusteredEmbedder(builtin_model_dir()))
            began, started = time.process_time(), time.perf_counter()
            app.catch_up()
            took.append((time.perf_counter() - started) * 1e3)
            cpu.append((time.process_time() - began) * 1e3)
    return {"ms": round(statistics.median(took), 1), "cpu_ms": round(statistics.median(cpu), 1)}


def upkeep(home: Path, argv: Sequence[str]) -> dict[str, float]:
    """Seconds, processor seconds and peak memory of a process that works on the whole home.

    Pages of files that are mapped belong to the system, which takes them back when it likes.
    """
    env = {**os.environ, "KB_HOME": str(home)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    before, started, peak_kb = os.times(), time.perf_counter(), 0
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        anonymous = re.search(r"RssAnon:\s*(\d+)", status)
        peak_kb = max(peak_kb, int(anonymous[1]) if anonymous else 0)
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"{argv}: exit {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(cpu, 1),
        "own_mb": peak_kb // 1024,
    }


def on_disk(home: Path) -> dict[str, int]:
    """Megabytes by folder of the home."""
    sizes: dict[str, int] = {}
    for folder, _, names in os.walk(home / "home"):
        part = Path(folder).relative_to(home / "home").parts[:1]
        for name in names:
            key = part[0] if part else name
            sizes[key] = sizes.get(key, 0) + os.lstat(Path(folder, name)).st_blocks * 512
    return {key: size // 1_000_000 for key, size in sorted(sizes.items()) if size > 1_000_000}


def measured(home: Path, passages: int) -> dict[str, Any]:
    """All figures of one size."""
    row: dict[str, Any] = {"passages": passages, "mb": on_disk(home)}
    row["cold"] = cold(home / "home")
    row["cold_words"] = cold(home / "home", "--mode", "lexical")
    with App.open(home / "home", load([], []), create=False) as app:
        row["warm"] = warm(app, SearchRequest(query=""))
        row["warm_filtered"] = warm(app, SearchRequest(query="", kinds=("file",)))
    row["one_edit"] = catching_up(home)
    print(json.dumps(row), file=sys.stderr, flush=True)
    row["check"] = upkeep(home / "home", [KB, "check"])
    row["compact"] = upkeep(home / "home", [KB, "compact"])
    shutil.rmtree(home / "home" / "index")
    made = upkeep(home / "home", [sys.executable, "-c", CATCH_UP, str(home / "home")])
    row["indexes_made_anew"] = made
    return row


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passages", nargs="*", type=int, default=SIZES)
    parser.add_argument("--homes", type=Path)
    parser.add_argument("--only-make", action="store_true")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    texts = corpus.real_texts(options.data) if options.data else []
    with tempfile.TemporaryDirectory() as temporary:
        for passages in options.passages:
            home = (options.homes or Path(temporary)) / str(passages)
            home.mkdir(parents=True, exist_ok=True)
            make_home(home, passages, texts)
            if not options.only_make:
                print(json.dumps(measured(home, passages)), flush=True)


if __name__ == "__main__":
    main()
