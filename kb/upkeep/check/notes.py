"""The findings of one pass, and what would mend them."""

from typing import Final

from kb.upkeep.check.mends import Mend, said
from kb.upkeep.check.report import Finding

FINDINGS_MAX: Final = 1_000
MENDS_MAX: Final = 100_000


class Notes:
    """Collects findings in the order they are met; the first thousand are kept in full."""

    def __init__(self) -> None:
        self.findings: dict[tuple[str, str], Finding] = {}
        self.left_out = 0
        # Keys in order; a set would forget it.
        self.mends: dict[Mend, None] = {}
        self.counts: dict[str, int] = {}

    def add(self, place: str, problem: str, *mends: Mend) -> None:
        """Note a finding. The first mend is the one that is told."""
        if len(self.mends) < MENDS_MAX:
            self.mends.update(dict.fromkeys(mends))
        key = (place, problem)
        if key in self.findings:
            return
        if len(self.findings) >= FINDINGS_MAX:
            self.left_out += 1
            return
        self.findings[key] = Finding(place=place, problem=problem, mend=said(mends[0]))

    def count(self, name: str, number: int = 1) -> None:
        """Count what was looked at."""
        self.counts[name] = self.counts.get(name, 0) + number
