"""`kb check`: is everything whole?"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kb.errors import StoreDamaged, UsageError
from kb.operations import check
from kb_cli.home import home_of, open_app, open_standing
from kb_cli.output import clean, confirm, many, print_json

if TYPE_CHECKING:
    from kb.operations.check import CheckFinding, CheckResult, SalvageResult, Survey


class CheckFailed(StoreDamaged):
    """The check found what is not mended."""

    template = "{detail}"


@click.command(name="check")
@click.option(
    "--repair",
    is_flag=True,
    help="Fix what can be fixed safely; a damaged store is replaced by a new one with all that can "
    "be read, and kept beside it.",
)
@click.option("--rebuild", is_flag=True, help="Make a lost store again from raw/; it asks first.")
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
    home = home_of(ctx)[0]
    if rebuild:
        _ask_to_rebuild(home, yes=yes)
        report = _salvage(ctx, None)
    else:
        report = _check(ctx, home, repair=repair)
    if as_json:
        print_json(report)
    else:
        _tell(report)
    if not report.sound:
        raise CheckFailed(_left(report, repair=repair or rebuild))


def _check(ctx: click.Context, home: Path, *, repair: bool) -> "CheckResult":
    survey = check.survey(home)
    if survey is not None and survey.needs_salvage and repair:
        return _salvage(ctx, survey)
    if survey is not None and not survey.is_safe:
        return check.survey_result(survey)
    app = open_standing(ctx) if repair else open_app(ctx, create=False)
    return check.run(app, repair=repair)


def _salvage(ctx: click.Context, survey: "Survey | None") -> "CheckResult":
    """Make a new store, and check it; `survey` is what was found of the one that was there."""
    os.umask(0o077)
    salvaged = check.salvage(*home_of(ctx))
    return check.after_salvage(open_app(ctx, create=False), survey, salvaged)


def _ask_to_rebuild(home: Path, *, yes: bool) -> None:
    files = check.files_to_rebuild(home)
    if yes:
        return
    what = (
        f"{many(files, 'file')} of raw/ would be added, each as a private doc with the tag "
        "`recovered` and without its old place, even those that were removed or replaced"
    )
    confirm(
        "Make the store anew?",
        unasked=f"{what}; a backup holds more (`kb backup list`); add --yes to do it",
        declined="nothing was changed",
        preface=clean(f"{what}. A backup holds more (`kb backup list`)."),
    )


def _left(report: "CheckResult", *, repair: bool) -> str:
    left = sum(not finding.repaired for finding in report.findings) + report.findings_left_out
    advice = (
        "restore the home from a backup" if repair else "`kb check --repair` repairs what it can"
    )
    return f"{many(left, 'finding')}; {advice}"


def _tell(report: "CheckResult") -> None:
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
        click.echo(f"{many(len(report.findings), 'finding')}, all repaired")


def _line(finding: "CheckFinding") -> str:
    return (
        f"{finding.place}: {finding.problem} ({'repaired' if finding.repaired else finding.mend})"
    )


def _tell_salvaged(done: "SalvageResult") -> None:
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
