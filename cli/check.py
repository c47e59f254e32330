"""`kb check`: is everything whole?"""

import os
import sys

import click
import msgspec

from cli.home import home_of, open_app
from cli.output import clean, many, print_json
from kb.errors import HeldBack, StoreDamaged, UsageError
from kb.intake.canonicalize import Parser
from kb.model.clock import SystemClock
from kb.store.content.layout import HomePaths
from kb.store.survey import StoreSurvey
from kb.store.trust import trust_list, trusting_replaced_store
from kb.upkeep.check import CheckCounts, CheckReport, Finding, SalvageReport
from kb.upkeep.check.damage import salvage_findings, survey_report
from kb.upkeep.check.salvage import salvage, survey_home


class CheckFailed(StoreDamaged):
    """The check found what is not mended."""

    template = "{detail}"


@click.command(name="check")
@click.option("--repair", is_flag=True, help="Mend what can be mended safely.")
@click.option("--rebuild", is_flag=True, help="Make a lost store anew, of what raw/ holds.")
@click.option("-y", "--yes", is_flag=True, help="With --rebuild: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, repair: bool, rebuild: bool, yes: bool, as_json: bool) -> None:
    """Compare every record, file and cache with what names it. Exit 5 where something is amiss.

    --repair puts a new store in the place of one that is damaged, of all that can be read of it and
    of what raw/ holds, and keeps the damaged file beside it.
    """
    if repair and rebuild:
        raise UsageError("give either --repair or --rebuild")
    paths = HomePaths(home_of(ctx)[0])
    if rebuild:
        _ask_to_rebuild(paths, yes=yes)
        report = _after(ctx, None, _salvaged(ctx, paths))
    else:
        report = _checked(ctx, paths, repair=repair)
    if as_json:
        print_json(report)
    else:
        _tell(report)
    if not report.sound:
        raise CheckFailed(_left(report, repair=repair or rebuild))


def _checked(ctx: click.Context, paths: HomePaths, *, repair: bool) -> CheckReport:
    found = survey_home(paths) if paths.has_store else None
    if found is not None and found.needs_salvage and repair:
        return _after(ctx, found, _salvaged(ctx, paths))
    if found is not None and not found.is_safe:
        return survey_report(found)
    app = open_app(ctx, create=repair)
    if app.is_made:
        return app.checker.run(repair=repair)
    return CheckReport(sound=True, checked=CheckCounts(), findings=())


def _salvaged(ctx: click.Context, paths: HomePaths) -> SalvageReport:
    os.umask(0o077)
    said = home_of(ctx)[1].ingest
    with (
        trusting_replaced_store(paths.root, trust_list()),
        Parser(memory_bytes_max=said.parse_memory_bytes, cpu_s_max=said.parse_cpu_s) as parser,
    ):
        return salvage(paths, SystemClock(), parser)


def _after(ctx: click.Context, found: StoreSurvey | None, done: SalvageReport) -> CheckReport:
    """The report of the new store, with what became of the old one in front."""
    report = open_app(ctx, create=False).checker.run(repair=True)
    findings = salvage_findings(found, done)
    return msgspec.structs.replace(
        report,
        sound=report.sound and all(finding.repaired for finding in findings),
        findings=(*findings, *report.findings),
        salvaged=done,
    )


def _ask_to_rebuild(paths: HomePaths, *, yes: bool) -> None:
    if paths.has_store:
        raise UsageError("the home has a store; `kb check --repair` mends what can be mended")
    files = sum(path.is_file() for path in paths.root.glob("raw/*/*"))
    if not files:
        raise UsageError(f"nothing lies in {paths.root / 'raw'} that could be taken in again")
    if yes:
        return
    what = (
        f"{many(files, 'file')} of raw/ would be taken in, each as a private doc with the tag "
        "`recovered`, without the place it had, and also what had been removed or replaced"
    )
    if not sys.stdin.isatty():
        raise HeldBack(f"{what}; a backup holds more (`kb backup list`); say --yes to do it")
    click.echo(clean(f"{what}. A backup holds more (`kb backup list`)."), err=True)
    if not click.confirm("Make the store anew?", err=True):
        raise HeldBack("nothing was changed")


def _left(report: CheckReport, *, repair: bool) -> str:
    left = sum(not finding.repaired for finding in report.findings) + report.findings_left_out
    advice = "restore the home from a backup" if repair else "`kb check --repair` mends what it can"
    return f"{many(left, 'finding')}; {advice}"


def _tell(report: CheckReport) -> None:
    if report.salvaged is not None:
        _tell_salvaged(report.salvaged)
    for name, count in msgspec.structs.asdict(report.checked).items():
        click.echo(f"{count:>9,}  {name.replace('_', ' ')}")
    for finding in report.findings:
        click.echo(clean(_line(finding)))
    if report.findings_left_out:
        click.echo(f"... and {report.findings_left_out:,} more")
    if not report.findings:
        click.echo("all is well")
    elif report.sound:
        click.echo(f"{many(len(report.findings), 'finding')}, all mended")


def _line(finding: Finding) -> str:
    return f"{finding.place}: {finding.problem} ({'mended' if finding.repaired else finding.mend})"


def _tell_salvaged(done: SalvageReport) -> None:
    for table in done.tables:
        click.echo(
            clean(f"{table.name}: {table.readable:,} of {table.records:,} records were read")
        )
    click.echo(
        f"a new store holds {many(done.docs, 'doc')} of the old one, and {done.recovered:,} taken "
        "in again from raw/ (private, with the tag recovered); run kb worker --drain"
    )
    if done.kept_as:
        click.echo(clean(f"the damaged file is kept as {done.kept_as}"))
