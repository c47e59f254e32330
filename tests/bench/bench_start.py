"""What a cold `kb search` costs beside that of another revision: time, and files it opens.

Both are checked out into an empty folder, so that their source lies alike, have a home of their own
made of the same notes, and are run in turn by the same Python. Files are counted by strace, where
it is installed. Run with `make bench-start BEFORE=REVISION`.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import corpus

REPOSITORY: Final = Path(__file__).parents[2]
NOTES: Final = 300
ROUNDS: Final = 21
WARM_UP: Final = 3
_KB: Final = (sys.executable, "-c", "from kb_cli.main import main; main()")
_SEARCH: Final = ("search", "the water in the garden", "--json")


class Side:
    """A revision, checked out, with a home."""

    def __init__(self, scratch: Path, name: str, revision: str, notes: Path) -> None:
        self.name = name
        self.home = scratch / f"home-{name}"
        source = scratch / f"source-{name}"
        git("worktree", "add", "--quiet", "--detach", "--force", str(source), revision)
        (scratch / "cwd").mkdir(exist_ok=True)
        self.cwd = scratch / "cwd"
        # Before what the interpreter has installed.
        self.env = {**os.environ, "PYTHONPATH": str(source), "KB_HOME": str(self.home)}
        self.env |= {
            f"XDG_{kind}_HOME": str(scratch / name) for kind in ("CONFIG", "DATA", "CACHE")
        }
        self.seconds: list[float] = []
        self.cpu: list[float] = []
        self.run("add", "--recursive", str(notes))
        self.run(*_SEARCH)

    def run(self, *argv: str, under: tuple[str, ...] = ()) -> None:
        command = [*under, *_KB, *argv]
        done = subprocess.run(command, env=self.env, cwd=self.cwd, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{self.name}: {argv}: exit {done.returncode}: {done.stderr[-500:]}")

    def search(self) -> None:
        before, began = os.times(), time.perf_counter()
        self.run(*_SEARCH)
        self.seconds.append(time.perf_counter() - began)
        after = os.times()
        self.cpu.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )

    def opened(self, scratch: Path) -> int | None:
        """How many files a search opens; None where nothing can tell."""
        if shutil.which("strace") is None:
            return None
        said = scratch / "strace"
        self.run(*_SEARCH, under=("strace", "-f", "-e", "trace=open,openat", "-o", str(said)))
        lines = said.read_text(errors="replace").splitlines()
        return sum("O_DIRECTORY" not in line and " = -1 " not in line for line in lines)


def git(*argv: str) -> str:
    done = subprocess.run(["git", *argv], cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"git {argv[0]}: {done.stderr}")
    return done.stdout.strip()


def measured(before: str, scratch: Path) -> dict[str, Any]:
    """Both in turn; ratios are those of the medians."""
    corpus.write_notes(scratch / "notes", NOTES)
    old = Side(scratch, "before", before, scratch / "notes")
    new = Side(scratch, "now", "HEAD", scratch / "notes")
    for _ in range(WARM_UP + ROUNDS):
        old.search()
        new.search()
    wall, cpu = (
        statistics.median(now[WARM_UP:]) / statistics.median(then[WARM_UP:])
        for now, then in ((new.seconds, old.seconds), (new.cpu, old.cpu))
    )
    return {
        "before": git("rev-parse", "--short", before),
        "now": git("rev-parse", "--short", "HEAD"),
        "seconds_before": round(statistics.median(old.seconds[WARM_UP:]), 3),
        "seconds_now": round(statistics.median(new.seconds[WARM_UP:]), 3),
        "ratio": round(wall, 3),
        "ratio_processor_time": round(cpu, 3),
        "files_before": old.opened(scratch),
        "files_now": new.opened(scratch),
        "rounds": ROUNDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="the revision to compare the committed one with")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            print(json.dumps(measured(asked.before, Path(scratch)), indent=2))
        finally:
            for name in ("before", "now"):
                source = Path(scratch) / f"source-{name}"
                if source.exists():
                    git("worktree", "remove", "--force", str(source))


if __name__ == "__main__":
    main()
