"""`kb check`: is everything whole?"""

import click
import msgspec

from cli.home import open_app
from cli.output import clean, many, print_json
from kb.check.report import Checked, CheckReport
from kb.errors import StoreDamaged


class CheckFailed(StoreDamaged):
    """The check found what is not mended."""

    template = "{detail}"


@click.command(name="check")
@click.option("--repair", is_flag=True, help="Mend what can be mended safely.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, repair: bool, as_json: bool) -> None:
    """Compare every record, file and cache with what names it. Exit 5 where something is amiss."""
    app = open_app(ctx, create=repair)
    if app.is_made:
        report = app.checker.run(repair=repair)
    else:
        report = CheckReport(sound=True, checked=Checked(), findings=())
    if as_json:
        print_json(report)
    else:
        _tell(report)
    if not report.sound:
        raise CheckFailed(_left(report, repair=repair))


def _left(report: CheckReport, *, repair: bool) -> str:
    left = sum(not finding.repaired for finding in report.findings) + report.findings_left_out
    advice = "restore the home from a backup" if repair else "`kb check --repair` mends what it can"
    return f"{many(left, 'finding')}; {advice}"


def _tell(report: CheckReport) -> None:
    for name, count in msgspec.structs.asdict(report.checked).items():
        click.echo(f"{count:>9,}  {name.replace('_', ' ')}")
    for finding in report.findings:
        mended = "mended" if finding.repaired else finding.mend
        click.echo(clean(f"{finding.place}: {finding.problem} ({mended})"))
    if report.findings_left_out:
        click.echo(f"... and {report.findings_left_out:,} more")
    if not report.findings:
        click.echo("all is well")
    elif report.sound:
        click.echo(f"{many(len(report.findings), 'finding')}, all mended")
