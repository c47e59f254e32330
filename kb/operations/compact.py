"""What nothing in an open home needs any more, removed."""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.upkeep.compactor.report import CompactReport

    CompactResult = CompactReport
    """What was removed, and what was kept from it."""


class CompactRequest(Struct, frozen=True, kw_only=True):
    """How compaction goes."""

    grace_min: int | None = None
    """Minutes between mark and removal; None leaves that to the settings."""
    dry_run: bool = False


def run(app: "App", request: CompactRequest) -> "CompactResult":
    """Remove what nothing needs: marked in one run, removed in a later one.

    A home that was not made stays so, and the result is empty. Raises StoreBusy where another
    compaction is at work, ReadOnlyHome, StoreFull.
    """
    from kb.upkeep.compactor.report import CompactReport

    if not app.is_made:
        return CompactReport(dry_run=request.dry_run)
    grace_min = request.grace_min
    if grace_min is None:
        grace_min = app.settings.compact.grace_min
    return app.compactor.run(grace_min=grace_min, dry_run=request.dry_run)
