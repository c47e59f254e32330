"""How good are the answers beside those of another revision? nDCG@10 by both legs, set by set.

    python tests/bench/compare_eval.py BEFORE DIR... [--home KEEP]

Each revision takes the sets in, embeds them and asks them with its own engine, by its own
`scripts/eval_retrieval.py`; DIR is a set as that script takes it. KEEP keeps the homes of the
committed revision, those of BEFORE lie beside it. Run with `make compare-eval BEFORE=REVISION`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from revisions import Revision, git

# The other modes would take twice the time, and older scripts cannot be told to leave them out.
_BY_BOTH_LEGS: Final = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import eval_retrieval
eval_retrieval.MODES = ("hybrid",)
eval_retrieval.main()
"""


def ndcg(side: Revision, folder: Path, homes: Path) -> float:
    """What a revision has on a set."""
    argv = (str(side.source / "scripts"), str(folder), "--home", str(homes), "--json")
    done = subprocess.run(
        [sys.executable, "-c", _BY_BOTH_LEGS, *argv],
        env=side.env,
        cwd=side.cwd,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{side.name}, {folder}: exit {done.returncode}: {done.stderr[-500:]}")
    result: float = json.loads(done.stdout)[folder.name]["hybrid"]["ndcg_at_10"]
    return result


def main() -> None:
    """Measure each set with both, and print a line for it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("before", help="the revision to compare the committed one with")
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--home", type=Path, help="keep the homes here and use them again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        keep: Path = (arguments.home or scratch / "homes").resolve()
        sides = [
            Revision(scratch, name, revision, scratch / f"home-{name}")
            for name, revision in (("before", arguments.before), ("now", "HEAD"))
        ]
        try:
            commit = git("-C", str(sides[0].source), "rev-parse", "--short", "HEAD")
            homes = (keep.with_name(f"{keep.name}-{commit}"), keep)
            gains = []
            for path in (folder.resolve() for folder in arguments.folders):
                before, now = (
                    ndcg(side, path, kept) for side, kept in zip(sides, homes, strict=True)
                )
                gains.append(now - before)
                print(f"{path.name:24} {before:.4f}  {now:.4f}  {gains[-1]:+.4f}", flush=True)
            mean, least = statistics.fmean(gains), min(gains)
            print(f"mean {mean:+.4f}, least {least:+.4f}, over {commit} on {len(gains)} sets")
        finally:
            for side in sides:
                side.remove()


if __name__ == "__main__":
    main()
