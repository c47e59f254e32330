"""How many bytes does a home write for each passage? Prints one JSON object; `make bench-writes`.

    python tests/bench/bench_writes.py [--home FOLDER] [PASSAGES]

Passages are added to the home in FOLDER, or to a new one, 5,000 at a time. `written` is what was
handed to the system (`wchar` of /proc/self/io). `write_bytes` beside it counts whole folios of the
page cache: where the file system keeps large ones, a page of 4 KB may count as one of a megabyte.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import corpus
from bench_growth import ClusteredEmbedder

from kb.home.app import App
from kb.intake.embed.onnx import builtin_model_dir
from kb.intake.sync.add import AddOptions
from kb.model.config import load

AT_ONCE = 5_000
COUNTERS = ("wchar", "write_bytes")


def counters() -> dict[str, int]:
    """What this process has written so far, by the system's counters."""
    rows = (line.split(":") for line in Path("/proc/self/io").read_text().splitlines())
    return {name: int(count) for name, count in rows if name in COUNTERS}


def main() -> None:
    """Add passages, work them off and bring the indexes level, each counted by itself."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passages", nargs="?", type=int, default=10_000)
    parser.add_argument("--home", type=Path)
    options = parser.parse_args()
    spent: dict[str, dict[str, int]] = {}

    def counted(phase: str, do: Callable[[], object]) -> None:
        before = counters()
        do()
        row = spent.setdefault(phase, dict.fromkeys(COUNTERS, 0))
        for name, count in counters().items():
            row[name] += count - before[name]

    with tempfile.TemporaryDirectory() as temporary:
        home = options.home or Path(temporary) / "home"
        embedder = ClusteredEmbedder(builtin_model_dir())
        for first in range(0, options.passages, AT_ONCE):
            folder = Path(temporary) / f"books-{first}"
            corpus.write_books(folder, min(AT_ONCE, options.passages - first), seed=os.getpid())
            with App.open(home, load([], [])) as app, app.parser() as reader:
                adder = app.adder(reader, AddOptions(recursive=True))
                counted("taken in", lambda: adder.add([str(folder)]))  # noqa: B023
                counted("worked off", lambda: corpus.drain(app, embedder))
                counted("indexed", app.catch_up)
        store = (home / "store" / "data.mdb").stat().st_size
    for phase, row in spent.items():
        each = {f"{name}_each": count // options.passages for name, count in row.items()}
        print(json.dumps({"phase": phase, **each}))
    print(json.dumps({"passages": options.passages, "store_bytes": store}))


if __name__ == "__main__":
    main()
