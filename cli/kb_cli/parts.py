"""What became of mails, attachments and records, and of sources that did not come level."""

from typing import TYPE_CHECKING, Final

import click

from kb.errors import HeldBack
from kb_cli.output import many, warn

if TYPE_CHECKING:
    from kb.operations.add import AddProblem, AddResult
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


def tell_problem(problem: "AddProblem") -> None:
    """What is wrong with one source, as a warning."""
    warn(f"{problem.outcome.replace('_', ' ')}: {problem.source}: {problem.reason}")


def held_back(count: int, noun: str) -> HeldBack:
    """The error that ends a command where docs of vanished sources stay."""
    what = many(count, noun)
    return HeldBack(f"removals of {what} held back; if they are right, add --accept-deletions")
