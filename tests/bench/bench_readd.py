"""What adding an unchanged folder costs beside recollindex; `make bench-readd`.

    python tests/bench/bench_readd.py [--files COUNT] [--rounds COUNT]

Processor time of whole processes in turn, so that it may be measured beside other work. Prints one
JSON object: of each command the median in milliseconds, and its ratio to recollindex, which has to
be installed.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
from bench_growth import ClusteredEmbedder, processor_s
from run import IMPORTS, KB

from kb.intake.embed.onnx import builtin_model_dir

FILES = 5_183
ROUNDS = 15


def main() -> None:
    """Make a home and recoll's index of the same notes, and measure both in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    if shutil.which("recollindex") is None:
        sys.exit("recollindex is not installed")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        notes, home, recoll = scratch / "notes", scratch / "home", scratch / "recoll"
        corpus.write_notes(notes, options.files)
        corpus.take_in(home, notes, ClusteredEmbedder(builtin_model_dir()))
        recoll.mkdir()
        (recoll / "recoll.conf").write_text(f"topdirs = {notes}\n")
        subprocess.run([KB, "trust", str(home)], check=True, capture_output=True)
        add = [KB, "add", "--recursive", str(notes)]
        commands = {
            "add": add,
            "add_json": [*add, "--json"],
            "recollindex": ["recollindex", "-c", str(recoll)],
            "imports": [sys.executable, "-c", IMPORTS],
        }
        costs: dict[str, list[float]] = {name: [] for name in commands}
        # Not counted are the first rounds: one reads the notes again, the next writes bytecode.
        for turn in range(options.rounds + 2):
            for name, argv in commands.items():
                cost_s = processor_s(argv, home)
                if turn > 1:
                    costs[name].append(cost_s)
        medians = {name: statistics.median(found) for name, found in costs.items()}
        reference_s = medians["recollindex"]
        rows = {
            name: {
                "cpu_ms": round(median_s * 1e3, 1),
                "to_recollindex": round(median_s / reference_s, 2),
            }
            for name, median_s in medians.items()
        }
        print(json.dumps({"files": options.files, **rows}, indent=2))


if __name__ == "__main__":
    main()
