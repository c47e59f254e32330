"""`kb add`: take in files, folders or standard input."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click
import msgspec

from cli.home import open_app
from cli.output import many, print_json, warn
from cli.words import text
from cli.work import drain, progress_bar, working
from kb.app import App
from kb.errors import ItemsFailed, UsageError
from kb.ingest.request import Wishes
from kb.jobs import queue
from kb.model.doc import Visibility
from kb.sync.add import Adder, AddOptions
from kb.sync.report import AddReport, Problem

if TYPE_CHECKING:
    from cli.progress import Progress

_SHOWN_MAX: Final = 20


@click.command(name="add")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("-r", "--recursive", is_flag=True, help="Take in whole folders.")
@click.option(
    "--ext", metavar="LIST", help="Extensions to take from folders, as md,txt; * for all."
)
@click.option("--tags", type=text, metavar="LIST", help="Tags for every doc, parted by commas.")
@click.option("--visibility", type=click.Choice(get_args(Visibility)), help="Who may see it.")
@click.option("--title", type=text, help="The title, for a single source.")
@click.option("--wait/--no-wait", default=True, help="Wait until all of it can be found.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, sources: tuple[str, ...], **options: Any) -> None:
    """Take in files, folders or standard input (-).

    What is already there and unchanged costs nothing; what changed becomes a new version.
    """
    if options["title"] and (len(sources) > 1 or options["recursive"]):
        raise UsageError("--title is for a single source")
    if "-" in sources and sys.stdin is not None and sys.stdin.isatty():
        warn("reading from the terminal; end with Ctrl-D")
    app = open_app(ctx, create=not options["dry_run"])
    report = _run(app, sources, options)
    if options["as_json"]:
        print_json(report)
    else:
        _tell(report, dry_run=options["dry_run"])
    if report.failed:
        raise ItemsFailed(f"{report.failed:,} of {many(report.scanned, 'source')} failed")


def _run(app: App, sources: tuple[str, ...], options: dict[str, Any]) -> AddReport:
    wait = options["wait"] and not options["dry_run"]
    with app.parser() as parser, progress_bar() as progress, working(app, wait=wait) as pool:
        adder = app.adder(parser, _options(app, options))
        report = _add(adder, sources, progress)
        if pool is None:
            return report
        drain(app, pool, progress)
    return _with_failed_jobs(app, report)


def _add(adder: Adder, sources: tuple[str, ...], progress: "Progress | None") -> AddReport:
    try:
        return adder.add(sources, on_progress=progress.reading if progress else None)
    except KeyboardInterrupt:
        done = adder.report()
        warn(f"{many(done.scanned, 'source')} done; run the same command again to go on")
        raise


def _options(app: App, options: dict[str, Any]) -> AddOptions:
    said = app.settings.ingest
    extensions = tuple(filter(None, (options["ext"] or "").replace(" ", "").split(",")))
    tags = tuple(tag.strip() for tag in (options["tags"] or "").split(",") if tag.strip())
    return AddOptions(
        recursive=options["recursive"],
        extensions=extensions or said.extensions,
        wishes=Wishes(
            title=options["title"],
            tags=tags if options["tags"] is not None else None,
            visibility=options["visibility"],
        ),
        dry_run=options["dry_run"],
        file_bytes_max=said.file_bytes_max,
        home=Path(os.path.realpath(app.paths.root)),
    )


def _with_failed_jobs(app: App, report: AddReport) -> AddReport:
    """Docs that went in but whose jobs ended for good are failures too; the sum stays."""
    with app.store.read() as txn:
        reasons = {job.doc_id: job.last_error or "unknown" for job in queue.failed(txn)}
    failed = [line for line in report.docs if line.doc_id in reasons]
    if not failed:
        return report
    moved = {
        status: sum(1 for line in failed if line.status == status)
        for status in ("added", "updated", "unchanged", "resurrected")
    }
    changes: dict[str, Any] = {status: getattr(report, status) - n for status, n in moved.items()}
    problems = [
        Problem(source=line.source, outcome="failed", reason=reasons[line.doc_id])
        for line in failed
    ]
    lines = [
        msgspec.structs.replace(line, status="failed") if line.doc_id in reasons else line
        for line in report.docs
    ]
    return msgspec.structs.replace(
        report,
        failed=report.failed + len(failed),
        docs=tuple(lines),
        problems=(*report.problems, *problems),
        **changes,
    )


def _tell(report: AddReport, *, dry_run: bool) -> None:
    names = ("added", "updated", "unchanged", "resurrected", "skipped", "failed")
    parts = [f"{getattr(report, name):,} {name}" for name in names if getattr(report, name)]
    prefix = "would be: " if dry_run else ""
    click.echo(f"{prefix}{', '.join(parts) or 'nothing'} of {report.scanned:,} scanned")
    loud = [p for p in report.problems if p.outcome != "skipped"]
    quiet = [p for p in report.problems if p.outcome == "skipped"]
    for problem in (*loud, *quiet[:_SHOWN_MAX]):
        warn(f"{problem.outcome}: {problem.source}: {problem.reason}")
    if len(quiet) > _SHOWN_MAX:
        warn(f"... and {len(quiet) - _SHOWN_MAX:,} more skipped; --json lists all")
