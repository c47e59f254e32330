"""How what is out of order in the notebook is shown."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kb.errors import ItemsFailed
from kb_cli.output import clean, warn

if TYPE_CHECKING:
    from kb.operations.notes import TidyResult

_ADDS_SHOWN_MAX = 3
_ADD_CHARS_MAX = 80


class Untidy(ItemsFailed):
    """The notebook is not in order."""


def findings_of(report: "TidyResult") -> int:
    """How much is out of order."""
    lists = (
        report.broken_links,
        report.unlisted,
        report.dead_entries,
        report.duplicates,
        report.empty,
        report.odd_names,
    )
    return sum(map(len, lists))


def print_tidy(report: "TidyResult", *, applied: bool) -> None:
    """What was done where something was to be, else what is out of order, a line to each."""
    if report.commit is not None:
        commit = click.style(report.commit[:10], fg="cyan")
        click.echo(f"{commit}  `kb note undo {report.tidy_id}` takes it back")
    for line in report.done if applied else _lines(report):
        click.echo(clean(line))
    for path in report.left:
        warn(f"{path} is left as it is, for it has changes that are not committed")
    if report.left_out:
        warn(f"{report.left_out:,} more were not looked at; ask again once these are in order")
    if not findings_of(report):
        click.echo("all is in order")
    elif applied and report.commit is None:
        click.echo("nothing that kb can put in order; `kb note tidy` lists what is left")


def _lines(report: "TidyResult") -> Iterator[str]:
    for link in report.broken_links:
        state = f"has moved to {link.moved_to}" if link.moved_to else "is no one file"
        yield f"{link.path}:{link.line}: the link to {link.target} leads nowhere: it {state}"
    for path in report.unlisted:
        yield f"{path}: not in INDEX.md"
    for entry in report.dead_entries:
        state = f"it has moved to {entry.moved_to}" if entry.moved_to else "there is no such file"
        yield f"INDEX.md:{entry.line}: lists {entry.path}: {state}"
    for path in report.empty:
        yield f"{path}: empty"
    for odd in report.odd_names:
        yield f"{odd.path}: {odd.problem}"
    for pair in report.duplicates:
        yield f"{pair.drop}: says nearly the same as {pair.keep} ({pair.likeness:.0%})"
        if pair.held_back is not None:
            yield f"  not merged by kb: {pair.held_back}"
        else:
            yield f"  --apply keeps {pair.keep}, and adds to it {len(pair.adds)} of its parts"
        for part in pair.adds[:_ADDS_SHOWN_MAX]:
            yield f"  + {' '.join(part.split())[:_ADD_CHARS_MAX]}"
