"""Is the home whole? Every record, file and cache is compared with what names it.

For use after a crash, a bad disk or a restored backup, and as the oracle of tests. It frees no
space: the compactor removes what nothing needs, and a check does not report that.
"""

from kb.upkeep.check.checker import HomeChecker, check_without_caches
from kb.upkeep.check.notebook import NotebookPlace
from kb.upkeep.check.report import CheckCounts, CheckReport, Finding, SalvageReport

__all__ = [
    "CheckCounts",
    "CheckReport",
    "Finding",
    "HomeChecker",
    "NotebookPlace",
    "SalvageReport",
    "check_without_caches",
]
