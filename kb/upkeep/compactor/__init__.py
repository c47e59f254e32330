"""How is a home kept small? What nothing needs is marked, and removed in a later run.

Frees the space of old versions, deleted docs, stray files and read log entries. It repairs nothing:
a record that cannot be read stops it before it removes a file.
"""

from kb.upkeep.compactor.compactor import Compactor
from kb.upkeep.compactor.report import CompactReport

__all__ = ["CompactReport", "Compactor"]
