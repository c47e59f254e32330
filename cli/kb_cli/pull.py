"""`kb pull`: take entries from registries."""

from typing import TYPE_CHECKING, Final

import click

from kb.errors import ItemsFailed, KbError
from kb.operations import pull
from kb.operations.jobs import jobs_left
from kb.operations.pull import PullRequest
from kb.operations.work import Workers
from kb_cli.home import homes_of, make_home, open_standing
from kb_cli.output import clean, many, print_json, warn
from kb_cli.words import text
from kb_cli.work import drain, progress_bar

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.operations.pull import PulledEntryResult, PullResult, SpacePull

_SHADOWED_SHOWN: Final = 5


@click.command(name="pull")
@click.argument("names", metavar="[ZETTEL]...", type=text, nargs=-1)
@click.option("--registry", type=text, metavar="NAME", help="This registry alone.")
@click.option("--theirs", is_flag=True, help="Put changed files aside, and take the registry's.")
@click.option(
    "--wait/--no-wait",
    default=True,
    help="Wait until all of it can be found, or leave the work to kb worker.",
)
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
    request = PullRequest(names=names, registry=registry, theirs=theirs)
    run(ctx, request, wait=wait, as_json=as_json)


def run(ctx: click.Context, request: PullRequest, *, wait: bool, as_json: bool) -> None:
    """Pull, say what became of it, and judge."""
    _say(_pull(open_standing(ctx), request, wait=wait), as_json=as_json)


def run_everywhere(ctx: click.Context, *, wait: bool, as_json: bool) -> None:
    """As `run`, of all registries of every space that is there; one that fails stops no other."""
    reports: list[SpacePull] = []
    errors: list[KbError] = []
    for space in pull.made_homes(homes_of(ctx)):
        try:
            report = _pull(make_home(ctx, space.home), PullRequest(), wait=wait)
        except KbError as error:
            errors.append(error)
            warn(f"{space.name}: {error}")
        else:
            reports.append((space.name, report))
    if not reports:
        raise errors[0]
    _say(pull.combined(reports), as_json=as_json)
    if errors:
        raise ItemsFailed(f"failed: {many(len(errors), 'space')}")


def _say(report: "PullResult", *, as_json: bool) -> None:
    """Print the report. Raises ItemsFailed where a registry or an entry failed."""
    if as_json:
        print_json(report)
    else:
        _tell(report)
    failed = [line for line in report.registries if line.outcome == "failed"]
    if failed or report.failed:
        counts = ((len(failed), "registry"), (report.failed, "entry"))
        parts = [f"{count:,} {noun}" for count, noun in counts if count]
        raise ItemsFailed(f"failed: {' and '.join(parts)}")


def _pull(app: "App", request: PullRequest, *, wait: bool) -> "PullResult":
    report = pull.run(app, request)
    if wait and jobs_left(app):
        with progress_bar() as progress, Workers(app) as workers:
            drain(workers, progress)
    elif wait and (report.new or report.updated):
        for problem in app.catch_up():
            warn(problem)
    return report


def _tell(report: "PullResult") -> None:
    for line in report.entries:
        click.echo(clean(_entry(line)))
    for registry in report.registries:
        name = f"{registry.space}: {registry.name}" if registry.space else registry.name
        if registry.reason:
            warn(f"{name}: {registry.reason}")
        if registry.shadowed:
            shown = ", ".join(registry.shadowed[:_SHADOWED_SHOWN])
            more = ", …" if len(registry.shadowed) > _SHADOWED_SHOWN else ""
            first = "a registry that was added before it has them, too"
            warn(f"{name}: not taken, for {first}: {shown}{more}")
    if not report.registries:
        warn("no registries yet; `kb registry add` names them")
        return
    names = ("new", "updated", "unchanged", "kept", "failed")
    parts = [f"{getattr(report, name):,} {name}" for name in names if getattr(report, name)]
    click.echo(f"{', '.join(parts) or 'nothing'} of {many(report.seen, 'offer')}")


def _entry(line: "PulledEntryResult") -> str:
    step = f"{line.before} to {line.version}" if line.outcome == "updated" else line.version
    place = f"({line.space}: {line.registry})" if line.space else f"({line.registry})"
    outcome = " ".join(filter(None, (f"{line.outcome}:", line.zettel_id, step, place)))
    aside = f"the file that was here is {line.put_aside} now" if line.put_aside else ""
    return "; ".join(filter(None, (": ".join(filter(None, (outcome, line.reason))), aside)))
