"""`kb backup`: copies of the whole home, as a group of commands."""

import contextlib
import datetime as dt
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from cli.home import home_of, open_app
from cli.output import clean, many, print_json, size, warn
from cli.words import text
from kb.errors import BackupDamaged, ItemsFailed, ReadOnlyHome
from kb.store.content.layout import HomePaths
from kb.store.trust import trust_list
from kb.upkeep.backup import HOME, Backup, BackupCatalog, Flaw, VerifyReport

_LINES_MAX: Final = 20


class VerifiedBackups(Struct, frozen=True, kw_only=True):
    """What a look into backups found."""

    sound: bool
    backups: list[VerifyReport]
    damaged: list[Flaw]
    """Those that have no whole manifest, so that nothing in them could be looked at."""


@click.group(name="backup")
def command() -> None:
    """Back the home up, and bring it back.

    BACKUP is a name that `kb backup list` shows, a unique start of one, or a backup's folder.
    """


@command.command(name="create")
@click.option("--reason", type=text, default="", help="Why, for the list.")
@click.option("--keep", type=click.IntRange(1), help="Then remove all but the newest so many.")
@click.option("--to", metavar="DIR", help="Make it in this new folder, as on another disk.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def create(
    ctx: click.Context, reason: str, keep: int | None, to: str | None, as_json: bool
) -> None:
    """Copy the home as it is now, while others go on using it. Exit 3 where something is amiss."""
    app = open_app(ctx, create=False)
    made = app.backups.create(reason, keep=keep, to=Path(to) if to is not None else None)
    backup = made.backup
    with contextlib.suppress(ReadOnlyHome):
        # Without it a home that is restored from this one counts after `kb trust`.
        trust_list().put_backup(Path(backup.path) / HOME)
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
        kept = "; no older backup was removed" if keep else ""
        raise ItemsFailed(
            f"backed up, but for {many(len(backup.problems), 'file')} of the home{kept}; "
            "`kb check` says what is amiss"
        )


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the backups in the home, the newest first."""
    listed = _shelf(ctx).list_backups()
    if as_json:
        print_json(listed)
    else:
        for backup in listed.backups:
            click.echo(_line(backup))
        if not listed.backups:
            warn("no backups yet; kb backup create makes one")
    _tell(_said(listed.damaged))


@command.command(name="verify")
@click.argument("ident", metavar="[BACKUP]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(ctx: click.Context, ident: str | None, as_json: bool) -> None:
    """Read a backup whole, or every one in the home. Exit 5 where something is amiss."""
    shelf = _shelf(ctx)
    listed = shelf.list_backups()
    names = [backup.name for backup in listed.backups] if ident is None else [ident]
    looked = [shelf.verify(name) for name in names]
    damaged = list(listed.damaged) if ident is None else []
    bad = [one for one in looked if not one.sound]
    if as_json:
        sound = not bad and not damaged
        print_json(VerifiedBackups(sound=sound, backups=looked, damaged=damaged))
    for one in looked:
        if not as_json:
            state = "whole" if one.sound else many(len(one.flaws), "finding")
            click.echo(f"{clean(one.backup.name)}: {state}")
        _tell(_said(one.flaws))
    _tell(_said(damaged))
    if bad or damaged:
        raise BackupDamaged("not as it should be", place=many(len(bad) + len(damaged), "backup"))


@command.command(name="restore")
@click.argument("ident", metavar="BACKUP")
@click.option("--to", required=True, metavar="DIR", help="The new home: a new or empty folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def restore(ctx: click.Context, ident: str, to: str, as_json: bool) -> None:
    """Make a home of a backup, in another place. Nothing is there unless all of it is."""
    shelf, known = _shelf(ctx), trust_list()
    is_own = known.has_backup(shelf.find(ident) / HOME)
    restored = shelf.restore(ident, Path(to))
    if is_own:
        known.put_store(Path(restored.home), "made")
    if as_json:
        print_json(restored)
    else:
        backup = restored.backup
        held = f"{many(backup.docs, 'doc')} of {backup.name}"
        click.echo(clean(f"{restored.home}: {held}; use it by kb --home, or move it in place"))
    if not is_own:
        warn(
            f"this user's kb did not make {restored.backup.name}, so what is restored of it counts "
            f"only after `kb trust {restored.home}`"
        )
    _tell(_said(restored.flaws))
    if restored.flaws:
        raise ItemsFailed(
            f"restored as it was, which was not whole; kb --home {restored.home} check --repair "
            "mends what it can"
        )


def _shelf(ctx: click.Context) -> BackupCatalog:
    """The backups alone: the home that they are of may be damaged or gone."""
    return BackupCatalog(HomePaths(home_of(ctx)[0]))


def _line(backup: Backup) -> str:
    moment = dt.datetime.fromtimestamp(backup.created_ms / 1000).astimezone()
    amiss = f", lacks {many(len(backup.problems), 'file')}" if backup.problems else ""
    held = f"{many(backup.docs, 'doc')}, {size(backup.size_bytes)}{amiss}"
    reason = f"  {clean(backup.reason)}" if backup.reason else ""
    name = click.style(clean(backup.name), fg="cyan")
    return f"{name}  {moment.isoformat(' ', 'minutes')}  {held}{reason}"


def _said(flaws: Iterable[Flaw]) -> list[str]:
    return [f"{flaw.place}: {flaw.problem}" for flaw in flaws]


def _tell(lines: Iterable[str]) -> None:
    """So many lines on standard error, and how many more there are."""
    rest = iter(lines)
    for line in islice(rest, _LINES_MAX):
        warn(line)
    left = sum(1 for _ in rest)
    if left:
        warn(f"... and {left:,} more")
