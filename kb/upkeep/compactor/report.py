"""The report of a compaction, or of a dry run. Field names are JSON output."""

from msgspec import Struct


class CompactReport(Struct, frozen=True, kw_only=True):
    """Counts of one run; all are 0 if there was nothing to do."""

    dry_run: bool = False
    readers_reaped: int = 0
    """Reader slots of dead processes; always 0 in a dry run."""
    temporary_removed: int = 0
    ledger_advanced: int = 0
    """Docs whose ledger entry became `done`."""
    versions_removed: int = 0
    docs_purged: int = 0
    """Tombstoned sources that were removed with all their records."""
    files_marked: int = 0
    files_removed: int = 0
    packs_removed: int = 0
    """Folders and links of unpacked packs that no record names."""
    bytes_freed: int = 0
    """Bytes of removed files. Freed pages of the store are reused and not counted."""
    vectors_removed: int = 0
    log_entries_removed: int = 0
    problems: tuple[str, ...] = ()
    """What could not be done in this run, and why."""


class SweepReport(Struct, frozen=True, kw_only=True):
    """Counts of files that one step marked and removed."""

    marked: int = 0
    removed: int = 0
    bytes_freed: int = 0
    problems: tuple[str, ...] = ()
