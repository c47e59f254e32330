"""The measure of what answers are built on: the figures that the ADR gives still hold."""

import re
import sys
from pathlib import Path

from commands import run

ROOT = Path(__file__).parents[2]


def test_the_figures_hold() -> None:
    """The right note is found, and the check tells right citations from wrong ones."""
    ran = run([sys.executable, ROOT / "scripts/eval_ask.py"])
    assert ran.code == 0, ran.err
    recall = {mode: float(at) for mode, at in re.findall(r"(\w+) +recall@5 ([\d.]+)", ran.out)}
    assert recall.keys() == {"lexical", "dense", "hybrid"}
    assert recall["hybrid"] >= 0.97
    counted = re.findall(r"(?m)^supported, (.+): (\d+) of (\d+)$", ran.out)
    share = {name: int(count) / int(total) for name, count, total in counted}
    assert share["the right note"] >= 0.97
    assert share["the right note, said loosely"] >= 0.7
    assert share["a number changed"] == share["a name added"] == 0
    assert share["any other note"] < 0.005
