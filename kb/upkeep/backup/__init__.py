"""How do we get back to how it was? Whole copies of a home, made beside its writers.

Useful before something that cannot be undone, and against a disk that fails, where the copy lies
on another one. Not for the history of a doc: versions are the store's business.
"""

from kb.upkeep.backup.create import Backups, Created
from kb.upkeep.backup.manifest import HOME, Backup, Flaw
from kb.upkeep.backup.shelf import Listed, Restored, Shelf, Verified

__all__ = [
    "HOME",
    "Backup",
    "Backups",
    "Created",
    "Flaw",
    "Listed",
    "Restored",
    "Shelf",
    "Verified",
]
