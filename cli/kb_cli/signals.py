"""`kb signals`: what agents left for a person."""

import datetime as dt

import click

from kb.operations import signals
from kb.operations.signals import AgentSignal
from kb_cli.home import open_app, open_to_read
from kb_cli.output import clean, print_json, warn


@click.group(name="signals", invoke_without_command=True)
@click.option("--all", "with_done", is_flag=True, help="Also list those that are closed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, with_done: bool, as_json: bool) -> None:
    """List what agents left for a person: where they are stuck, and what they want decided."""
    if ctx.invoked_subcommand is not None:
        return
    result = signals.list_signals(open_to_read(ctx), with_closed=with_done)
    if as_json:
        print_json(result)
        return
    for signal in result.signals:
        _print(signal)
    if not result.signals:
        warn("no signals" if with_done else "no open signals; --all shows those that are closed")


@command.command(name="done")
@click.argument("ident", metavar="ID")
@click.pass_context
def done(ctx: click.Context, ident: str) -> None:
    """Close a signal."""
    signal = signals.close_signal(open_app(ctx, create=False), ident)
    click.echo(f"{signal.signal_id} is closed")


def _print(signal: AgentSignal) -> None:
    moment = dt.datetime.fromtimestamp(signal.added_ms / 1000).astimezone()
    user = signal.user or "anonymous"
    notes = [moment.isoformat(" ", "minutes"), user]
    notes += [f"backup {signal.backup}"] if signal.backup else []
    notes += ["closed"] if signal.done_ms is not None else []
    ident = click.style(signal.signal_id, fg="cyan")
    click.echo(f"{ident}  {signal.kind}  {clean(', '.join(notes))}")
    for line in (*signal.reason.splitlines(), *signal.context.splitlines()):
        click.echo(f"    {clean(line)}".rstrip())
