"""`kb backup`: copies of the whole home, as a group of commands."""

import datetime as dt
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kb.errors import BackupDamaged, ItemsFailed
from kb.operations import backups
from kb.operations.backups import CreateBackupRequest
from kb_cli.home import home_of, open_app
from kb_cli.output import clean, many, print_json, size, warn
from kb_cli.words import text

if TYPE_CHECKING:
    from kb.operations.backups import BackupFlaw, ListedBackup

_LINES_MAX: Final = 20


@click.group(name="backup")
def command() -> None:
    """Back the home up, and bring it back.

    BACKUP is a name that `kb backup list` shows, a unique start of one, or a backup's folder.
    """


@command.command(name="create")
@click.option("--reason", type=text, default="", help="Why, for the list.")
@click.option(
    "--keep", type=click.IntRange(1), help="Then remove all in backups/ but the newest so many."
)
@click.option("--to", metavar="DIR", help="Make it in this new folder, as on another disk.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def create(
    ctx: click.Context, reason: str, keep: int | None, to: str | None, as_json: bool
) -> None:
    """Copy the home as it is now, while others go on using it. Exit 3 where something is amiss."""
    request = CreateBackupRequest(reason=reason, keep=keep, to=Path(to) if to is not None else None)
    made = backups.create_backup(open_app(ctx, create=False), request)
    backup = made.backup
    if as_json:
        print_json(made)
    else:
        held = f"{many(backup.docs, 'doc')}, {size(backup.size_bytes)}"
        click.echo(clean(f"{backup.path if to is not None else backup.name}: {held}"))
        for name in made.pruned:
            click.echo(f"{name}: removed")
    if made.spared:
        warn("the home holds no docs, so no older backup was removed")
    _tell(backup.problems)
    if backup.problems:
        remark = "; no older backup was removed" if keep else ""
        raise ItemsFailed(
            f"backed up without {many(len(backup.problems), 'file')} of the home{remark}; "
            "`kb check` says what is wrong"
        )


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the backups in the home, the newest first."""
    listed = backups.list_backups(home_of(ctx)[0])
    if as_json:
        print_json(listed)
    else:
        for backup in listed.backups:
            click.echo(_line(backup))
        if not listed.backups:
            warn("no backups yet; kb backup create makes one")
    _tell(_lines(listed.damaged))


@command.command(name="verify")
@click.argument("ident", metavar="[BACKUP]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(ctx: click.Context, ident: str | None, as_json: bool) -> None:
    """Read a backup whole, or every one in the home. Exit 5 where something is amiss."""
    result = backups.verify_backups(home_of(ctx)[0], ident)
    if as_json:
        print_json(result)
    for verified in result.backups:
        if not as_json:
            state = "whole" if verified.sound else many(len(verified.flaws), "finding")
            click.echo(f"{clean(verified.backup.name)}: {state}")
        _tell(_lines(verified.flaws))
    _tell(_lines(result.damaged))
    if not result.sound:
        unsound = sum(not verified.sound for verified in result.backups) + len(result.damaged)
        raise BackupDamaged("damaged", place=many(unsound, "backup"))


@command.command(name="restore")
@click.argument("ident", metavar="BACKUP")
@click.option(
    "--to",
    required=True,
    metavar="HOME",
    help="The new home: a new or empty folder, or postgresql://USER@HOST/DATABASE/NAME.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def restore(ctx: click.Context, ident: str, to: str, as_json: bool) -> None:
    """Restore a backup into a new place: all of it, or nothing."""
    result = backups.restore_backup(home_of(ctx)[0], ident, to)
    restored = result.restored
    if as_json:
        print_json(restored)
    else:
        backup = restored.backup
        held = f"{many(backup.docs, 'doc')} of {backup.name}"
        click.echo(clean(f"{restored.home}: {held}; use it by kb --home, or move it in place"))
    if not result.is_own:
        warn(
            f"this user's kb did not make {restored.backup.name}, so the restored home counts "
            f"only after `kb trust {restored.home}`"
        )
    _tell(_lines(restored.flaws))
    if restored.flaws:
        raise ItemsFailed(
            f"restored, but the backup was not whole; kb --home {restored.home} check --repair "
            "repairs what it can"
        )


def _line(backup: "ListedBackup") -> str:
    moment = dt.datetime.fromtimestamp(backup.created_ms / 1000).astimezone()
    amiss = f", lacks {many(len(backup.problems), 'file')}" if backup.problems else ""
    held = f"{many(backup.docs, 'doc')}, {size(backup.size_bytes)}{amiss}"
    reason = f"  {clean(backup.reason)}" if backup.reason else ""
    name = click.style(clean(backup.name), fg="cyan")
    return f"{name}  {moment.isoformat(' ', 'minutes')}  {held}{reason}"


def _lines(flaws: "Iterable[BackupFlaw]") -> list[str]:
    return [f"{flaw.place}: {flaw.problem}" for flaw in flaws]


def _tell(lines: Iterable[str]) -> None:
    """So many lines on standard error, and how many more there are."""
    rest = iter(lines)
    for line in islice(rest, _LINES_MAX):
        warn(line)
    left = sum(1 for _ in rest)
    if left:
        warn(f"... and {left:,} more")
