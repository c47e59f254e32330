"""What the commands of `kb backup` print as JSON."""

from typing import Any

from kb.operations.backups import VerifyBackupsResult
from kb.upkeep.backup import Backup, Created, Flaw, Listed, Restored, Verified
from kb.upkeep.check import Checked


def backup_shapes() -> list[tuple[str, Any]]:
    """Under each command's name, the records of its document: where, and of which class."""
    return [
        ("create", Created),
        ("create.backup", Backup),
        ("list", Listed),
        ("list.backups", Backup),
        ("list.damaged", Flaw),
        ("verify", VerifyBackupsResult),
        ("verify.backups", Verified),
        ("verify.backups.checked", Checked),
        ("verify.backups.flaws", Flaw),
        ("restore", Restored),
    ]
