"""`kb sync-knowledge`: bring what was pulled level with its registries."""

import click

from kb.operations.pull import PullRequest
from kb_cli.pull import run, run_everywhere


@click.command(name="sync-knowledge")
@click.option(
    "--wait/--no-wait",
    default=True,
    help="Wait until all of it can be found, or leave the work to kb worker.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, wait: bool, as_json: bool) -> None:
    """Take what is new or newer in every registry; made for cron.

    A registry that has not changed costs one request. What was changed, deleted or removed here
    stays so; `kb pull` says how it comes back. Exit 3 where an entry or a registry failed, 1 where
    no registry could be read. `kb --space all sync-knowledge` does so in every space.
    """
    if ctx.obj["space"] == "all":
        run_everywhere(ctx, wait=wait, as_json=as_json)
    else:
        run(ctx, PullRequest(), wait=wait, as_json=as_json)
