"""`kb check`: is everything whole?"""

import click

from cli.home import open_app
from cli.output import clean, print_json
from kb.errors import StoreDamaged


@click.command(name="check")
@click.option("--repair", is_flag=True, help="Mend what can be mended safely.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, repair: bool, as_json: bool) -> None:
    """Compare every record, file and cache with what names it. Exit 5 where something is amiss."""
    app = open_app(ctx, create=repair)
    report = app.checker.run(repair=repair)
    if as_json:
        print_json(report)
    else:
        for name, count in report.checked.items():
            click.echo(f"{count:>9,}  {name}")
        for finding in report.findings:
            mended = "mended" if finding.repaired else finding.mend
            click.echo(clean(f"{finding.place}: {finding.problem} ({mended})"))
        if not report.findings:
            click.echo("all is well")
    left = [finding for finding in report.findings if not finding.repaired]
    if left:
        raise StoreDamaged(f"{len(left)} finding(s)", place=app.paths.root)
