"""`kb job`: how it stands with work that was handed in."""

import click
from msgspec import Struct

from cli.home import open_app
from cli.output import clean, print_json, warn
from kb.notebook import JobReport, report, reports


class Jobs(Struct, frozen=True, kw_only=True):
    """Jobs that are not done, and the newest notes that are."""

    jobs: list[JobReport]


@click.command(name="job")
@click.argument("ident", metavar="ID|ls")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="At most so many, with ls.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, limit: int, as_json: bool) -> None:
    """Say how it stands with a job, or list jobs: those that are not done, and notes that are."""
    app = open_app(ctx, create=False)
    with app.store.read() as txn:
        found = reports(txn, limit) if ident == "ls" else [report(txn, ident)]
    if as_json:
        print_json(Jobs(jobs=found) if ident == "ls" else found[0])
        return
    for one in found:
        said = one.path or one.subject
        click.echo(f"{click.style(one.job_id, fg='cyan')}  {one.kind} {one.status}  {clean(said)}")
        if one.reason:
            click.echo(f"{'':15}{clean(one.reason)}")
    if not found:
        warn("no jobs; kb note add TEXT hands in a note")
