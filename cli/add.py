"""`kb add`: take in files, folders or standard input."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from cli.answering import server_of
from cli.home import homes_of, open_app, settings_of
from cli.output import many, print_json, warn
from cli.words import text
from cli.work import drain, progress_bar, working
from kb.errors import ItemsFailed, UsageError
from kb.intake.ingest.request import Wishes
from kb.intake.sync.add import AddOptions
from kb.intake.sync.named import Naming
from kb.intake.sync.report import AddReport, with_failed
from kb.model.config.sections import IngestSettings
from kb.model.doc import Visibility
from kb.store.jobs import queue

if TYPE_CHECKING:
    from cli.progress import Progress
    from kb.client.adding import RemoteAdder
    from kb.client.wire import Wire
    from kb.home.app import App
    from kb.intake.sync.add import Adder

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
    wire = server_of(ctx)
    if wire is not None:
        report = _run_remote(ctx, wire, sources, options)
    else:
        report = _run(open_app(ctx, create=not options["dry_run"]), sources, options)
    if options["as_json"]:
        print_json(report)
    else:
        _tell(report, dry_run=options["dry_run"])
    if report.failed:
        raise ItemsFailed(f"{report.failed:,} of {many(report.scanned, 'source')} failed")


def _run(app: "App", sources: tuple[str, ...], options: dict[str, Any]) -> AddReport:
    wait = options["wait"] and not options["dry_run"]
    with app.parser() as parser, progress_bar() as progress, working(app, wait=wait) as pool:
        adder = app.adder(parser, _options(app, options))
        report = _add(adder, sources, progress)
        if pool is None:
            return report
        drain(app, pool, progress)
    return _with_failed_jobs(app, report)


def _add(
    adder: "Adder | RemoteAdder", sources: tuple[str, ...], progress: "Progress | None"
) -> AddReport:
    try:
        return adder.add(sources, on_progress=progress.reading if progress else None)
    except KeyboardInterrupt:
        done = adder.report()
        warn(f"{many(done.scanned, 'source')} done; run the same command again to go on")
        raise


def _options(app: "App", options: dict[str, Any]) -> AddOptions:
    said = app.settings.ingest
    return AddOptions(
        recursive=options["recursive"],
        extensions=_extensions(options, said),
        wishes=_wishes(options),
        dry_run=options["dry_run"],
        file_bytes_max=said.file_bytes_max,
        home=Path(os.path.realpath(app.paths.root)),
    )


def _extensions(options: dict[str, Any], said: IngestSettings) -> tuple[str, ...]:
    asked = tuple(filter(None, (options["ext"] or "").replace(" ", "").split(",")))
    return asked or said.extensions


def _wishes(options: dict[str, Any]) -> Wishes:
    tags = tuple(tag.strip() for tag in (options["tags"] or "").split(",") if tag.strip())
    return Wishes(
        title=options["title"],
        tags=tags if options["tags"] is not None else None,
        visibility=options["visibility"],
    )


def _with_failed_jobs(app: "App", report: AddReport) -> AddReport:
    """Docs that went in but whose jobs ended for good are failures too."""
    with app.store.read() as txn:
        reasons = {job.doc_id: job.last_error or "unknown" for job in queue.failed(txn)}
    return with_failed(report, reasons)


def _run_remote(
    ctx: click.Context, wire: "Wire", sources: tuple[str, ...], options: dict[str, Any]
) -> AddReport:
    """The same by a server, whose workers are waited for."""
    import platform

    from kb.client.adding import RemoteAdder

    if options["dry_run"]:
        raise UsageError("--dry-run looks at a home on this machine; a server takes things in")
    said = settings_of(ctx, homes_of(ctx)[0].home).ingest
    naming = Naming(recursive=options["recursive"], extensions=_extensions(options, said))
    adder = RemoteAdder(
        wire, naming, _wishes(options), file_bytes_max=said.file_bytes_max, host=platform.node()
    )
    with progress_bar() as progress:
        report = _add(adder, sources, progress)
        if not options["wait"]:
            return report
        try:
            return adder.wait(progress.working if progress else None)
        except KeyboardInterrupt:
            warn("every source is in; the server makes the rest findable")
            raise


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
