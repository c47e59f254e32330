"""What a run of the compactor did, or with a dry run would do."""

from msgspec import Struct


class CompactReport(Struct, frozen=True, kw_only=True):
    """Counts of one run. All are 0 where there was nothing to do."""

    dry_run: bool = False
    readers_reaped: int = 0
    """Slots of dead processes; always 0 in a dry run, which cannot tell."""
    temporary_removed: int = 0
    ledger_advanced: int = 0
    """Docs whose ledger entry came to `done`."""
    versions_removed: int = 0
    docs_purged: int = 0
    """Tombstoned sources removed with all that was theirs."""
    files_marked: int = 0
    files_removed: int = 0
    packs_removed: int = 0
    """Folders and names of unpacked packs that no record names."""
    bytes_freed: int = 0
    """Of files. Pages freed inside the store are used again, not given back."""
    vectors_removed: int = 0
    log_entries_removed: int = 0
    problems: tuple[str, ...] = ()
    """What was left for another run, and why."""


class Swept(Struct, frozen=True, kw_only=True):
    """What became of the files."""

    marked: int = 0
    removed: int = 0
    bytes_freed: int = 0
    problems: tuple[str, ...] = ()
