"""Pulling entries: what a registry costs, and that no text is embedded twice.

Run as a script: `make bench-registry`. A registry of --count entries on a server of its own on
loopback. A figure that must hold and does not ends it with exit 1.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from loopback import HOST, serving
from registry_host import Files, entry_text

KB = str(Path(sys.executable).with_name("kb"))
ROUNDS = 5


class Bench:
    """A publisher's folder, its registry, and a home that pulls."""

    def __init__(self, scratch: Path, count: int) -> None:
        self.scratch, self.count = scratch, count
        self.source, self.to = scratch / "source", scratch / "public"
        self.source.mkdir()
        for number in range(count):
            self.write(number, "1.0.0")

    def write(self, number: int, version: str) -> None:
        ident = f"entry-{number}"
        text = entry_text(ident, version, f"word{number} of {version} " * 40)
        (self.source / f"{ident}.md").write_text(text)

    def kb(self, home: str, *args: object) -> tuple[Any, float]:
        """The answer of a command and its seconds."""
        allowed = ("--cfg", f'fetch.allow=["{HOST}"]')
        argv = [KB, "--home", str(self.scratch / home), *allowed, *map(str, args), "--json"]
        began = time.perf_counter()
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{args}: exit {done.returncode}: {done.stderr[-500:]}")
        return json.loads(done.stdout), time.perf_counter() - began

    def publish(self) -> tuple[Any, float]:
        return self.kb("publisher", "registry", "publish", self.source, "--to", self.to)


def measured(bench: Bench, url: str) -> list[dict[str, Any]]:
    """Each step beside what the same entries cost without a registry."""
    published, publish_s = bench.publish()
    bench.kb("reader", "registry", "add", "team", url)
    pulled, pull_s = bench.kb("reader", "sync-knowledge")
    plain = bench.scratch / "plain" / "knowledge"
    plain.parent.mkdir()
    bench.source.rename(plain)
    _, embed_s = bench.kb("plain", "sync-all", "--interval-min", 0)
    plain.rename(bench.source)
    idle = [bench.kb("reader", "sync-knowledge") for _ in range(ROUNDS)]
    for number in range(bench.count // 20):
        bench.write(number, "1.10.0")
    bench.publish()
    updated, update_s = bench.kb("reader", "sync-knowledge")
    idle_s = statistics.median(seconds for _, seconds in idle)
    is_idle = all(report["unchanged"] == bench.count for report, _ in idle)
    some = bench.count // 20
    return [
        {"name": "publish", "seconds": publish_s, "holds": published["new"] == bench.count},
        {
            "name": "pull all, against embedding them here",
            "seconds": pull_s,
            "reference_seconds": embed_s,
            "ratio": pull_s / embed_s,
            "holds": pulled["ready"] == bench.count,
        },
        {"name": "sync with nothing to do", "seconds": idle_s, "holds": is_idle},
        {"name": f"sync of {some} updates", "seconds": update_s, "holds": updated["ready"] == some},
    ]


def main() -> None:
    """Measure, print, judge."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--count", type=int, default=1_000)
    asked.add_argument("--out", type=Path, default=Path("bench-out/registry.json"))
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch, serving() as server:
        bench = Bench(Path(scratch), options.count)
        server.routes = Files(bench.to)
        rows = measured(bench, server.url("/"))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1) + "\n")
    for row in rows:
        ratio = (
            f"  {row['ratio']:.2f} of {row['reference_seconds']:.1f} s" if "ratio" in row else ""
        )
        print(f"{'ok ' if row['holds'] else 'NOT'} {row['name']}: {row['seconds']:.2f} s{ratio}")
    if not all(row["holds"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
