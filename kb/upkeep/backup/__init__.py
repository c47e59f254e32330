"""How is a home backed up and restored? By whole copies, made beside its writers.

A backup helps after a mistake, and after a disk failure if it lies on another disk. It is not the
history of a doc: the store keeps versions.
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
