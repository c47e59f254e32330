"""`kb compact`: remove what nothing needs any more."""

import click
import msgspec

from kb.operations import compact
from kb.operations.compact import CompactRequest
from kb_cli.home import open_app
from kb_cli.output import print_json, size, warn


@click.command(name="compact")
@click.option("--grace-min", type=click.IntRange(0), help="Minutes between mark and removal.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, grace_min: int | None, dry_run: bool, as_json: bool) -> None:
    """Remove what nothing needs any more: marked in one run, removed in a later one."""
    request = CompactRequest(grace_min=grace_min, dry_run=dry_run)
    report = compact.run(open_app(ctx, create=False), request)
    if as_json:
        print_json(report)
        return
    counts = msgspec.to_builtins(report)
    freed = counts.pop("bytes_freed", 0)
    parts = [
        f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if type(n) is int and n
    ]
    prefix = "would be: " if dry_run else ""
    click.echo(f"{prefix}{', '.join(parts) or 'nothing to do'}; {size(freed)} freed")
    for problem in report.problems:
        warn(problem)
