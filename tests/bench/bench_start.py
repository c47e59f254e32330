"""What a start costs beside that of another revision.

`kb --help`, a search that is cold or goes by the socket of a server, a first add of 300 notes, and
an unchanged add of 5,000. Each revision has homes of its own made of the same notes; both run in
turn by the same Python. The files that a cold search opens are counted by strace, where it is
installed. Run with `make bench-start BEFORE=REVISION`.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import corpus
from revisions import Revision, git

NOTES: Final = 300
ROUNDS: Final = 41
WARM_UP: Final = 3
READD_NOTES: Final = 5_000
ADDS: Final = 7
_SEARCH: Final = ("search", "the water in the garden", "--json")


def ok(side: Revision, *argv: str, under: tuple[str, ...] = ()) -> None:
    """Run a command that must succeed."""
    code, printed = side.run(*argv, under=under)
    if code:
        sys.exit(f"{side.name}: {argv}: exit {code}: {printed[-500:]}")


def cost(side: Revision, argv: tuple[str, ...]) -> tuple[float, float]:
    """Seconds by the clock and of the processor, of one whole process."""
    before, began = os.times(), time.perf_counter()
    ok(side, *argv)
    took, after = time.perf_counter() - began, os.times()
    cpu = after.children_user + after.children_system
    return took, cpu - before.children_user - before.children_system


def in_turn(
    old: Revision, new: Revision, *argv: str, rounds: int = ROUNDS, homes: Path | None = None
) -> dict[str, Any]:
    """Medians of both for one command, and their ratios; with `homes`, in a new home each time."""
    costs: dict[str, list[tuple[float, float]]] = {old.name: [], new.name: []}
    for number in range(WARM_UP + rounds):
        for side in (old, new):
            home = ("--home", str(homes / f"{side.name}{number}")) if homes else ()
            costs[side.name].append(cost(side, (*home, *argv)))
    wall, cpu = (
        [statistics.median(row[which] for row in costs[side.name][WARM_UP:]) for side in (old, new)]
        for which in (0, 1)
    )
    return {
        "ms_before": round(wall[0] * 1000, 1),
        "ms_now": round(wall[1] * 1000, 1),
        "ratio": round(wall[1] / wall[0], 3),
        "ratio_processor_time": round(cpu[1] / cpu[0], 3),
    }


def files_opened(side: Revision, scratch: Path) -> int | None:
    """How many files a search opens; None where nothing can tell."""
    if shutil.which("strace") is None:
        return None
    trace = scratch / "strace"
    ok(side, *_SEARCH, under=("strace", "-f", "-e", "trace=open,openat", "-o", str(trace)))
    lines = trace.read_text(errors="replace").splitlines()
    return sum("O_DIRECTORY" not in line and " = -1 " not in line for line in lines)


def measured(old: Revision, new: Revision, scratch: Path) -> dict[str, Any]:
    """Cold and warm, as one document."""
    corpus.write_notes(scratch / "notes", NOTES)
    for side in (old, new):
        ok(side, "add", "--recursive", str(scratch / "notes"))
        ok(side, *_SEARCH)
    (scratch / "homes").mkdir()
    shown = in_turn(old, new, "--help")
    cold = in_turn(old, new, *_SEARCH)
    first = ("add", "--recursive", str(scratch / "notes"))
    added = in_turn(old, new, *first, rounds=ADDS, homes=scratch / "homes")
    with contextlib.ExitStack() as stack:
        for side in (old, new):
            stack.enter_context(side.served())
        warm = in_turn(old, new, *_SEARCH)
    opened = [files_opened(side, scratch) for side in (old, new)]
    corpus.write_notes(scratch / "notes", READD_NOTES)
    add = ("add", "--recursive", "--no-wait", str(scratch / "notes"))
    for side in (old, new):
        ok(side, *add)
    return {
        "help": shown,
        "cold": cold,
        "by_socket": warm,
        "first_add": added,
        "unchanged_add": in_turn(old, new, *add),
        "files_before": opened[0],
        "files_now": opened[1],
        "rounds": ROUNDS,
    }


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="the revision to compare the committed one with")
    before = parser.parse_args().before
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        sides = [
            Revision(scratch, name, revision, scratch / f"home-{name}")
            for name, revision in (("before", before), ("now", "HEAD"))
        ]
        try:
            revisions = {
                side.name: git("-C", str(side.source), "rev-parse", "--short", "HEAD")
                for side in sides
            }
            print(json.dumps({**revisions, **measured(*sides, scratch)}, indent=2))
        finally:
            for side in sides:
                side.remove()


if __name__ == "__main__":
    main()
