"""`kb add`: take in files, folders or standard input."""

import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from kb.errors import OCR_INSTALL, ItemsFailed, UsageError
from kb.home.opening import HomePaths
from kb.operations import add
from kb.operations.add import VISIBILITIES, AddRequest, SourceAdder
from kb.operations.work import workers_if
from kb_cli.answering import server_of
from kb_cli.home import homes_of, open_app, settings_of
from kb_cli.output import clean, confirm, many, print_json, warn
from kb_cli.parts import held_back, tell_parts, tell_problem
from kb_cli.words import text
from kb_cli.work import drain, progress_bar

if TYPE_CHECKING:
    from kb.client.http_client import ServerClient
    from kb.home.app import App
    from kb.operations.add import AddResult
    from kb_cli.progress import AddProgress

_SHOWN_MAX: Final = 20
_FILES_UNASKED: Final = 1_000
_KINDS_MAX: Final = 6


@click.command(name="add")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    *("-y", "--yes", "-r", "--recursive", "unasked"),
    is_flag=True,
    help="Do not ask before a folder of more than 1,000 files.",
)
@click.option(
    "--ext", metavar="LIST", help="Extensions to take from folders, as md,txt; * for all."
)
@click.option(
    "--no-ignore",
    is_flag=True,
    help="Take from folders also what git ignores, installed packages and lock files.",
)
@click.option(
    "--tags",
    type=text,
    metavar="LIST",
    help="Tags for every doc, separated by commas, besides those in its front matter.",
)
@click.option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    help="Who may see it; private if nothing says otherwise.",
)
@click.option("--title", type=text, help="The title, for a single source.")
@click.option("--crawl", is_flag=True, help="Take in the pages of a site, from its address on.")
@click.option(
    "--include",
    multiple=True,
    type=text,
    metavar="GLOB",
    help="With --crawl: take pages with such a path, in place of those below the address.",
)
@click.option(
    "--exclude",
    multiple=True,
    type=text,
    metavar="GLOB",
    help="With --crawl: leave out pages with such a path.",
)
@click.option(
    "--max-pages",
    "pages_max",
    type=click.IntRange(1, 100_000),
    help="With --crawl: take at most so many pages; else crawl.pages_max.",
)
@click.option(
    "--max-depth",
    "depth_max",
    type=click.IntRange(1, 100),
    help="With --crawl: follow links so far from the address; else crawl.depth_max.",
)
@click.option(
    "--wait/--no-wait",
    default=True,
    help="Wait until all of it can be found, or leave the work to kb worker.",
)
@click.option(
    "--accept-deletions",
    is_flag=True,
    help="Remove docs of mails that are gone from a mailbox, however many there are.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, sources: tuple[str, ...], **options: Any) -> None:
    """Take in files, folders with all below them, pages, sites, feeds, or standard input (-).

    git+https://HOST/PATH@REF takes in a repository.

    What is already there and unchanged costs nothing; what changed becomes a new version.
    """
    request = _request(options)
    add.check_title(request, sources, "--title")
    if "-" in sources and sys.stdin.isatty():
        warn("reading from the terminal; end with Ctrl-D")
    client = server_of(ctx)
    is_first = client is None and not HomePaths(homes_of(ctx)[0].home).has_store
    if not options["unasked"]:
        _ask(ctx, request, sources)
    app = None
    if client is not None:
        report = _add_by_server(ctx, client, sources, request, wait=options["wait"])
    else:
        app = open_app(ctx, create=not request.dry_run)
        report = _add_here(app, sources, request, wait=options["wait"])
    if options["as_json"]:
        if app is not None and not request.dry_run:
            report = add.with_transaction(app, report)
        print_json(report)
    else:
        if request.crawl and request.dry_run:
            _list(report)
        _tell(report, dry_run=request.dry_run, verbose=bool(ctx.obj["verbose"]))
        _tell_next(report, sources, is_first=is_first)
    _judge(report)


def _judge(report: "AddResult") -> None:
    """Raise ItemsFailed or HeldBack where not all came in, or not all that is gone went."""
    if report.failed:
        raise ItemsFailed(f"{report.failed:,} of {many(report.scanned, 'source')} failed")
    failed = {
        "mail": report.mails.failed,
        "attachment": report.attachments.failed,
        "record": report.records.failed,
    }
    if parts := " and ".join(many(count, noun) for noun, count in failed.items() if count):
        raise ItemsFailed(f"{parts} failed")
    if report.hold_back_reason:
        raise held_back(sum(problem.outcome == "held_back" for problem in report.problems), "file")


def _ask(ctx: click.Context, request: AddRequest, sources: tuple[str, ...]) -> None:
    """Ask on a terminal whether a large folder is meant. Raises HeldBack where it is not."""
    folders = add.folders_among(sources)
    if not folders or request.dry_run or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    home = homes_of(ctx)[0].home
    files = add.count_files(request, settings_of(ctx, home).ingest.folder_extensions, folders, home)
    if files > _FILES_UNASKED:
        confirm(
            f"{files:,} files; add them?",
            unasked=f"{files:,} files would be added; say --yes to do it",
            declined="nothing was added",
        )


def _request(options: dict[str, Any]) -> AddRequest:
    tags = tuple(tag.strip() for tag in (options["tags"] or "").split(",") if tag.strip())
    return AddRequest(
        extensions=tuple(filter(None, (options["ext"] or "").replace(" ", "").split(","))),
        no_ignore=options["no_ignore"],
        title=options["title"],
        tags=tags if options["tags"] is not None else None,
        visibility=options["visibility"],
        accept_deletions=options["accept_deletions"],
        dry_run=options["dry_run"],
        crawl=options["crawl"],
        include=options["include"],
        exclude=options["exclude"],
        pages_max=options["pages_max"] or 0,
        depth_max=options["depth_max"] or 0,
    )


def _add_here(
    app: "App", sources: tuple[str, ...], request: AddRequest, *, wait: bool
) -> "AddResult":
    wait = wait and not request.dry_run
    with (
        add.adder(app, request) as adder,
        progress_bar() as progress,
        workers_if(app, wanted=wait) as workers,
    ):
        if workers is not None and progress is not None:
            progress.follow(workers.left)
        report = _add_all(adder, sources, progress)
        if workers is None:
            return report
        drain(workers, progress)
    return add.with_failed_jobs(app, report)


def _add_all(
    adder: SourceAdder, sources: tuple[str, ...], progress: "AddProgress | None"
) -> "AddResult":
    try:
        return adder.add(sources, on_progress=progress.reading if progress else None)
    except KeyboardInterrupt:
        done = adder.report()
        warn(f"{many(done.scanned, 'source')} done; run the same command again to go on")
        raise


def _add_by_server(
    ctx: click.Context,
    client: "ServerClient",
    sources: tuple[str, ...],
    request: AddRequest,
    *,
    wait: bool,
) -> "AddResult":
    """The same by a server, whose workers are waited for."""
    import platform

    from kb.client.adding import RemoteAdder

    if request.dry_run:
        raise UsageError("--dry-run looks at a home on this machine; a server takes things in")
    if request.crawl:
        raise UsageError("--crawl takes a site into a home on this machine, and not by a server")
    if add.repositories_among(sources):
        raise UsageError("a repository is taken into a home on this machine, and not by a server")
    settings = settings_of(ctx, homes_of(ctx)[0].home).ingest
    adder = RemoteAdder(
        client,
        add.naming_of(request, settings.folder_extensions),
        add.ingest_options_of(request),
        file_bytes_max=settings.file_bytes_max,
        host=platform.node(),
    )
    with progress_bar() as progress:
        report = _add_all(adder, sources, progress)
        if not wait:
            return report
        try:
            return adder.wait(progress.waiting if progress else None)
        except KeyboardInterrupt:
            warn("every source is in; the server makes the rest findable")
            raise


def _kinds(reasons: list[str]) -> str:
    """How many there are of each kind, most first: `12 .png, 3 .jpg, 1 a symbolic link`."""
    counts = Counter(_kind(reason) for reason in reasons)
    shown = counts.most_common(_KINDS_MAX)
    others = counts.total() - sum(count for _, count in shown)
    parts = [f"{count:,} {kind}" for kind, count in shown]
    return ", ".join([*parts, f"{others:,} of other kinds"] if others else parts)


def _kind(reason: str) -> str:
    extension = re.match(r"extension (\.\S+)", reason)
    if extension:
        return extension[1]
    return re.sub(r"^(it is|an?) ", "", reason.partition(";")[0].partition(" (")[0])


def _list(report: "AddResult") -> None:
    """The pages that would be taken, one a line."""
    for line in report.docs:
        click.echo(clean(line.source))


def _tell(report: "AddResult", *, dry_run: bool, verbose: bool) -> None:
    names = ("added", "updated", "unchanged", "resurrected", "moved", "skipped", "failed")
    parts = [f"{getattr(report, name):,} {name}" for name in names if getattr(report, name)]
    prefix = "would be: " if dry_run else ""
    click.echo(f"{prefix}{', '.join(parts) or 'nothing'} of {report.scanned:,} scanned")
    tell_parts(report)
    loud = [problem for problem in report.problems if problem.outcome != "skipped"]
    quiet = [problem for problem in report.problems if problem.outcome == "skipped"]
    if quiet and not verbose and sys.stderr.isatty():
        kinds = _kinds([problem.reason for problem in quiet])
        warn(f"{len(quiet):,} skipped: {kinds}; kb -v add lists each")
        quiet = []
    _tell_pictures(report)
    for problem in (*loud, *(quiet if verbose else quiet[:_SHOWN_MAX])):
        tell_problem(problem)
    if len(quiet) > _SHOWN_MAX and not verbose:
        warn(f"... and {len(quiet) - _SHOWN_MAX:,} more skipped; --json lists all")


def _tell_pictures(report: "AddResult") -> None:
    """How many files have pages that are pictures, and what reads them."""
    if report.ocr_waiting:
        files = many(report.ocr_waiting, "file")
        warn(f"{files} with pages that are pictures; `kb worker --drain` or a server reads them")
    if report.ocr_missing:
        files = many(report.ocr_missing, "file")
        warn(f"{files} wait for text recognition (OCR): {OCR_INSTALL}, then add again")


def _tell_next(report: "AddResult", sources: tuple[str, ...], *, is_first: bool) -> None:
    """What to do after the first time, and where nothing was taken in and nothing was wrong."""
    if not report.scanned:
        warn(f"there is no file in {' or in '.join(sources)}; kb add FOLDER takes in another one")
    elif report.skipped == report.scanned:
        warn("nothing here is of a kind that kb takes from folders; --ext LIST takes others")
    elif is_first and report.added and sys.stderr.isatty():
        warn("find it with: kb search WORDS")
