"""How is a home backed up and restored? By whole copies, made beside its writers.

Useful before something that cannot be undone, and against a disk that fails, where the copy lies
on another one. Not for the history of a doc: versions are the store's business.
"""

from kb.upkeep.backup.catalog import BackupCatalog, BackupList, RestoreReport, VerifyReport
from kb.upkeep.backup.create import Backups, CreateReport
from kb.upkeep.backup.manifest import HOME, Backup, Flaw

__all__ = [
    "HOME",
    "Backup",
    "BackupCatalog",
    "BackupList",
    "Backups",
    "CreateReport",
    "Flaw",
    "RestoreReport",
    "VerifyReport",
]
