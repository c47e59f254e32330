"""What became of mails, attachments and records, which are counted apart from their files."""

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from kb.operations.add import AddResult
    from kb.operations.sync import SourceResult

_COUNTS: Final = (
    "added",
    "updated",
    "unchanged",
    "resurrected",
    "removed",
    "skipped",
    "failed",
)


def tell_parts(report: "AddResult | SourceResult") -> None:
    """A line for the mails, one for the attachments, and one for records, where there are any."""
    for name in ("mails", "attachments", "records"):
        counts = getattr(report, name)
        parts = [
            f"{getattr(counts, count):,} {count}" for count in _COUNTS if getattr(counts, count)
        ]
        if parts:
            click.echo(f"{name}: {', '.join(parts)}")
