"""`kb pull`: take entries from registries."""

from typing import Final

import click

from cli.home import homes_of, make_home, open_app
from cli.output import clean, many, print_json, warn
from cli.sync_all import has_jobs
from cli.words import text
from cli.work import drain, progress_bar, working
from kb.errors import ItemsFailed, KbError
from kb.home.app import App
from kb.intake.sync.add import AddOptions
from kb.knowledge.registry.report import PulledLine, PullReport, PullSelection, combined
from kb.model.search import SpaceName
from kb.store.content.layout import HomePaths

_SHADOWED_SHOWN: Final = 5


@click.command(name="pull")
@click.argument("names", metavar="[ZETTEL]...", type=text, nargs=-1)
@click.option("--registry", type=text, metavar="NAME", help="This registry alone.")
@click.option("--theirs", is_flag=True, help="Put changed files aside, and take the registry's.")
@click.option("--wait/--no-wait", default=True, help="Wait until all of it can be found.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    names: tuple[str, ...],
    registry: str | None,
    theirs: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Take entries from registries: those named, or all that are new or newer.

    A file that was changed here is left as it is, and said. What was deleted or removed here comes
    back when it is named. Exit 3 where an entry or a registry failed, 1 where none could be read.
    """
    wanted = PullSelection(names=names, registry=registry, theirs=theirs)
    run(ctx, wanted, wait=wait, as_json=as_json)


def run(ctx: click.Context, wanted: PullSelection, *, wait: bool, as_json: bool) -> None:
    """Pull, say what became of it, and judge."""
    _say(_pulled(open_app(ctx, create=True), wanted, wait=wait), as_json=as_json)


def run_everywhere(ctx: click.Context, *, wait: bool, as_json: bool) -> None:
    """As `run`, of all registries of every space that is there; one that fails stops no other."""
    spaces = homes_of(ctx)
    spaces = tuple(one for one in spaces if HomePaths(one.home).has_store) or spaces[:1]
    reports: list[tuple[SpaceName, PullReport]] = []
    errors: list[KbError] = []
    for one in spaces:
        try:
            reports.append(
                (one.name, _pulled(make_home(ctx, one.home), PullSelection(), wait=wait))
            )
        except KbError as error:
            errors.append(error)
            warn(f"{one.name}: {error}")
    if not reports:
        raise errors[0]
    _say(combined(reports), as_json=as_json)
    if errors:
        raise ItemsFailed(f"failed: {many(len(errors), 'space')}")


def _say(report: PullReport, *, as_json: bool) -> None:
    """Print the report. Raises ItemsFailed where a registry or an entry failed."""
    if as_json:
        print_json(report)
    else:
        _tell(report)
    failed = [line for line in report.registries if line.outcome == "failed"]
    if failed or report.failed:
        counts = ((len(failed), "registry"), (report.failed, "entry"))
        said = [f"{count:,} {noun}" for count, noun in counts if count]
        raise ItemsFailed(f"failed: {' and '.join(said)}")


def _pulled(app: App, wanted: PullSelection, *, wait: bool) -> PullReport:
    asked = AddOptions(
        file_bytes_max=app.settings.ingest.file_bytes_max,
        keep_current=False,
        # What a person removed comes back when it is named, and only then.
        revive=bool(wanted.names),
    )
    with app.parser() as parser:
        report = app.registries.pull(wanted, lambda: app.adder(parser, asked))
    if wait and has_jobs(app):
        with progress_bar() as progress, working(app, wait=True) as pool:
            assert pool is not None
            drain(app, pool, progress)
    elif wait and (report.new or report.updated):
        for problem in app.catch_up():
            warn(problem)
    return report


def _tell(report: PullReport) -> None:
    for line in report.entries:
        click.echo(clean(_entry(line)))
    for one in report.registries:
        name = f"{one.space}: {one.name}" if one.space else one.name
        if one.reason:
            warn(f"{name}: {one.reason}")
        if one.shadowed:
            shown = ", ".join(one.shadowed[:_SHADOWED_SHOWN])
            more = ", …" if len(one.shadowed) > _SHADOWED_SHOWN else ""
            first = "a registry that was added before it has them, too"
            warn(f"{name}: not taken, for {first}: {shown}{more}")
    if not report.registries:
        warn("no registries yet; `kb registry add` names them")
        return
    names = ("new", "updated", "unchanged", "kept", "failed")
    parts = [f"{getattr(report, name):,} {name}" for name in names if getattr(report, name)]
    click.echo(f"{', '.join(parts) or 'nothing'} of {many(report.seen, 'offer')}")


def _entry(line: PulledLine) -> str:
    step = f"{line.before} to {line.version}" if line.outcome == "updated" else line.version
    place = f"({line.space}: {line.registry})" if line.space else f"({line.registry})"
    said = " ".join(filter(None, (f"{line.outcome}:", line.zettel_id, step, place)))
    aside = f"the file that was here is {line.put_aside} now" if line.put_aside else ""
    return "; ".join(filter(None, (": ".join(filter(None, (said, line.reason))), aside)))
