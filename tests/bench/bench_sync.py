"""Keeping sources current: what a sync costs, and that only what changed is done again.

Run as a script: `make bench-sync`. A home of --count notes, embedded by hashing, so that the
figures are those of the engine. A figure that must hold and does not ends it with exit 1.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

KB = str(Path(sys.executable).with_name("kb"))
ROUNDS = 5


class Bench:
    """One home over one folder of notes."""

    def __init__(self, scratch: Path, count: int) -> None:
        self.home, self.notes = scratch / "home", scratch / "notes"
        self.count = count
        for number in range(count):
            path = self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text(number, "first"))

    def path(self, number: int) -> Path:
        return self.notes / f"part-{number % 50}" / f"note-{number}.md"

    def text(self, number: int, word: str) -> str:
        sections = (f"## Part {part}\n\n" + f"word{number}x{part} " * 60 for part in range(3))
        return f"# Note {number}\n\n{word} lines of note {number}.\n\n" + "\n\n".join(sections)

    def argv(self, *args: object) -> list[str]:
        return [KB, "--home", str(self.home), "--cfg", "embed.kind=hashing", *map(str, args)]

    def kb(self, *args: object) -> Any:
        done = subprocess.run(self.argv(*args, "--json"), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{args}: exit {done.returncode}: {done.stderr[-500:]}")
        return json.loads(done.stdout)

    def sync(self) -> Any:
        return self.kb("sync-all", "--interval-min", 0)

    def vectors(self) -> int:
        return int(self.kb("stats")["vectors"])

    def timed(self, *args: object) -> float:
        began = time.perf_counter()
        self.kb(*args)
        return time.perf_counter() - began


def unchanged(bench: Bench) -> dict[str, Any]:
    """A sync with nothing to do, in turn with adding the folder again."""
    syncs, adds = [], []
    for _ in range(ROUNDS):
        syncs.append(bench.timed("sync-all", "--interval-min", 0))
        adds.append(bench.timed("add", "-r", bench.notes))
    ratio = statistics.median(syncs) / statistics.median(adds)
    return {
        "name": "unchanged sync-all against unchanged re-add",
        "seconds": statistics.median(syncs),
        "reference_seconds": statistics.median(adds),
        "ratio": ratio,
        "holds": ratio <= 1.5,
    }


def edited(bench: Bench) -> dict[str, Any]:
    """One passage is edited in each of 50 files: so many texts are embedded."""
    before = bench.vectors()
    for number in range(50):
        bench.path(number).write_text(bench.text(number, "second"))
    report = bench.sync()
    embedded = bench.vectors() - before
    holds = (report["updated"], embedded) == (50, 50)
    return {"name": "50 files edited", "embedded": embedded, "holds": holds}


def renamed(bench: Bench) -> dict[str, Any]:
    """A tenth of the files get another name: nothing is embedded."""
    before = bench.vectors()
    some = bench.count // 10
    for number in range(some):
        path = bench.path(number)
        path.rename(path.with_name(f"renamed-{number}.md"))
    report = bench.sync()
    embedded = bench.vectors() - before
    holds = (report["moved"], report["removed"], embedded) == (some, 0, 0)
    return {"name": f"{some} files renamed", "embedded": embedded, "holds": holds}


def compacted(bench: Bench) -> dict[str, Any]:
    """Marked, then removed; after that there is nothing left to free."""
    for _ in range(2):
        bench.kb("compact", "--grace-min", 0)
    last = bench.kb("compact", "--grace-min", 0)
    done = {key: value for key, value in last.items() if value and key != "dry_run"}
    return {"name": "compact again", "freed": len(done), "holds": not done}


def together(bench: Bench) -> dict[str, Any]:
    """Two syncs and a compaction at once, over fresh changes; then everything is whole."""
    for number in range(bench.count // 2, bench.count // 2 + 200):
        bench.path(number).write_text(bench.text(number, "third"))
    calls = [("sync-all", "--interval-min", 0)] * 2 + [("compact", "--grace-min", 0)]
    running = [
        subprocess.Popen(bench.argv(*call), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for call in calls
    ]
    codes = [process.wait() for process in running]
    findings = bench.kb("check")["findings"]
    holds = codes == [0, 0, 0] and not findings
    return {"name": "two syncs and a compaction", "findings": len(findings), "holds": holds}


def main() -> None:
    """Measure, print, write down; exit 1 where a figure does not hold."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--out", type=Path, default=Path("bench-out/bench-sync.json"))
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(Path(scratch).resolve(), options.count)
        bench.kb("add", "-r", bench.notes)
        for part in (unchanged, edited, renamed, compacted, together):
            rows.append(part(bench))
            print(json.dumps(rows[-1]), flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=2) + "\n")
    sys.exit(0 if all(row["holds"] for row in rows) else 1)


if __name__ == "__main__":
    main()
