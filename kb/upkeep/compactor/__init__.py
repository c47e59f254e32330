"""How is it kept small? What nothing needs any more is marked, and in a later run removed.

Useful for giving back the room of old versions, deleted docs, stray files and read log entries.
Not for mending: a record that cannot be read stops it before it removes a file.
"""

from kb.upkeep.compactor.compactor import Compactor
from kb.upkeep.compactor.report import CompactReport

__all__ = ["CompactReport", "Compactor"]
