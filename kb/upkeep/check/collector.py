"""Collects the findings of one check and the repairs for them."""

from typing import Final

from kb.upkeep.check.repairs import Repair, describe
from kb.upkeep.check.report import Finding

FINDINGS_MAX: Final = 1_000
REPAIRS_MAX: Final = 100_000


class FindingCollector:
    """Collects findings in order; the first thousand are kept, the others only counted."""

    def __init__(self) -> None:
        self.findings: dict[tuple[str, str], Finding] = {}
        self.left_out = 0
        # A dict instead of a set, to keep the order.
        self.repairs: dict[Repair, None] = {}
        self.counts: dict[str, int] = {}

    def add(self, place: str, problem: str, *repairs: Repair) -> None:
        """Add a finding with its repairs; the first repair is the one described to people."""
        if len(self.repairs) < REPAIRS_MAX:
            self.repairs.update(dict.fromkeys(repairs))
        key = (place, problem)
        if key in self.findings:
            return
        if len(self.findings) >= FINDINGS_MAX:
            self.left_out += 1
            return
        self.findings[key] = Finding(place=place, problem=problem, mend=describe(repairs[0]))

    def count(self, name: str, number: int = 1) -> None:
        """Count checked items by name."""
        self.counts[name] = self.counts.get(name, 0) + number
