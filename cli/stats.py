"""`kb stats`: count what there is."""

import contextlib

import click

from cli.home import open_to_read
from cli.output import clean, print_json, size, warn
from cli.pushes import push_line
from kb.errors import ModelMissing
from kb.home.stats import counted


@click.command(name="stats")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Count docs, passages, vectors, jobs and bytes."""
    app = open_to_read(ctx)
    stats = counted(app)
    with contextlib.suppress(ModelMissing):
        if (said := app.shortened()) is not None:
            warn(said)
    if as_json:
        print_json(stats)
        return
    rows = [
        ("home", stats.home),
        ("docs", _listed(stats.docs)),
        ("ledger", _listed(stats.ledger)),
        ("passages", f"{stats.passages:,}"),
        ("vectors", f"{stats.vectors:,}"),
        ("entities", f"{stats.entities:,}"),
        ("jobs", _listed(stats.jobs)),
        ("model", stats.model),
        ("on disk", size(stats.disk_bytes)),
    ]
    if stats.pages_without_text:
        rows.append(("pages without text", f"{stats.pages_without_text:,}"))
    if stats.push is not None:
        rows.append(("notebook", push_line(stats.push)))
    for name, value in rows:
        click.echo(f"{name:>18}  {clean(value)}")
    for letter in stats.dead_letters:
        click.echo(
            f"{'failed':>18}  {letter.kind} job of {letter.doc_id[:9]}: {clean(letter.reason)}"
        )
    if stats.dead_letters:
        click.echo(f"{'':>18}  kb worker --retry-failed tries them again")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())) or "none"
