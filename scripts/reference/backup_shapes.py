"""What the commands of `kb backup` print as JSON."""

from typing import Any

from kb.operations.backups import VerifyBackupsResult
from kb.upkeep.backup import Backup, BackupList, CreateReport, Flaw, RestoreReport, VerifyReport
from kb.upkeep.check import CheckCounts


def backup_shapes() -> list[tuple[str, Any]]:
    """Under each command's name, the records of its document: where, and of which class."""
    return [
        ("create", CreateReport),
        ("create.backup", Backup),
        ("list", BackupList),
        ("list.backups", Backup),
        ("list.damaged", Flaw),
        ("verify", VerifyBackupsResult),
        ("verify.backups", VerifyReport),
        ("verify.backups.checked", CheckCounts),
        ("verify.backups.flaws", Flaw),
        ("restore", RestoreReport),
    ]
