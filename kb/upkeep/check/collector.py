"""The findings of one pass, and what would mend them."""

from typing import Final

from kb.upkeep.check.repairs import Repair, describe
from kb.upkeep.check.report import Finding

FINDINGS_MAX: Final = 1_000
REPAIRS_MAX: Final = 100_000


class FindingCollector:
    """Collects findings in the order they are met; the first thousand are kept in full."""

    def __init__(self) -> None:
        self.findings: dict[tuple[str, str], Finding] = {}
        self.left_out = 0
        # Keys in order; a set would forget it.
        self.repairs: dict[Repair, None] = {}
        self.counts: dict[str, int] = {}

    def add(self, place: str, problem: str, *repairs: Repair) -> None:
        """Note a finding. The first mend is the one that is told."""
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
        """Count what was looked at."""
        self.counts[name] = self.counts.get(name, 0) + number
