"""`kb sync-all`: bring folders and pages level with what was added."""

from typing import TYPE_CHECKING, Any, Final

import click

from kb.errors import ItemsFailed
from kb.operations import sync
from kb.operations.jobs import jobs_left
from kb.operations.sync import SyncRequest
from kb.operations.work import workers_if
from kb_cli.home import open_app, open_standing
from kb_cli.output import clean, many, print_json, warn
from kb_cli.parts import held_back, tell_parts, tell_problem
from kb_cli.work import drain, progress_bar

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.operations.sync import SourceResult, SyncResult

_COUNTS: Final = (
    "added",
    "updated",
    "unchanged",
    "resurrected",
    "moved",
    "removed",
    "skipped",
    "failed",
)


@click.command(name="sync-all")
@click.option(
    "--interval-min",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Only sources that were last synced at least this many minutes ago.",
)
@click.option("--max", "sources_max", type=click.IntRange(1), help="At most this many sources.")
@click.option("--source", "only", metavar="ID|PLACE", help="This source alone, due or not.")
@click.option(
    "--accept-deletions", is_flag=True, help="Remove docs however many files have vanished."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **options: Any) -> None:
    """Bring folders and pages level with what was added; made for cron.

    Of a folder that is missing or empty, or that lost over a fifth of its docs, no doc is removed
    until --accept-deletions says that it was meant: exit 6. Exit 3 where a source failed.
    """
    app = open_app(ctx, create=False) if options["dry_run"] else open_standing(ctx)
    report = _run(app, SyncRequest(**options), loud=not as_json)
    if as_json:
        print_json(report)
    elif not report.sources:
        click.echo("nothing is due")
    judge(report)


def _run(app: "App", request: SyncRequest, *, loud: bool) -> "SyncResult":
    with progress_bar() as progress, workers_if(app, wanted=not request.dry_run) as workers:
        report = sync.run(app, request, on_source=tell if loud else None)
        changed = report.added + report.updated + report.resurrected + report.moved
        if workers is not None and (changed or report.removed or jobs_left(app)):
            drain(workers, progress)
    return report


def tell(line: "SourceResult") -> None:
    """What became of one source, in a line, and what went wrong in it."""
    parts = [f"{getattr(line, name):,} {name}" for name in _COUNTS if getattr(line, name)]
    files_held = sum(problem.outcome == "held_back" for problem in line.problems)
    outcome = str(line.outcome)
    if line.outcome == "held_back":
        # Whatever else there was to do is done, and counted.
        outcome = "removals held back" if line.reason else "synced"
    held = [f"removals of {many(files_held, 'file')} held back"] if files_held else []
    click.echo(clean(f"{line.location}: {', '.join((outcome, *parts, *held))}"))
    tell_parts(line)
    if line.reason:
        warn(f"{line.location}: {line.reason}")
    for problem in line.problems:
        if problem.outcome != "skipped":
            tell_problem(problem)


def judge(report: "SyncResult") -> None:
    """Raise HeldBack or ItemsFailed where some source did not come level."""
    held = [line for line in report.sources if line.outcome == "held_back"]
    failed = [line for line in report.sources if line.outcome == "failed"]
    if held:
        raise held_back(len(held), "source")
    parts = report.mails.failed + report.attachments.failed + report.records.failed
    if failed or report.failed or parts:
        raise ItemsFailed(f"{_failures(len(failed), report.failed, parts)} failed")


def _failures(sources: int, files: int, mails: int) -> str:
    counts = ((sources, "source"), (files, "file"), (mails, "mail"))
    parts = [many(count, noun) for count, noun in counts if count]
    return " and ".join(parts)
