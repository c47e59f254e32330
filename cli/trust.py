"""`kb trust`: say which homes count that this user's kb did not make."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from cli.home import here
from cli.output import clean, many, print_json, warn
from kb.config import HOME_CONFIGS, SETTINGS_BYTES_MAX, accepted_by
from kb.content.inside import read_inside
from kb.content.layout import PROJECT_FOLDER, HomePaths, is_project_home
from kb.errors import HeldBack, NotFound, SourceError, UsageError
from kb.trust import TrustedHome, TrustList, link_out, look_of, trust_list

_SHOWN_MAX: Final = 50


class NotTrusted(NotFound):
    """There is no such home, or none on the list."""

    template = "{id}; `kb trust --list` shows what is on the list"


class Trusted(Struct, frozen=True, kw_only=True):
    """The homes that count."""

    homes: tuple[TrustedHome, ...]


@click.command(name="trust")
@click.argument("folder", metavar="[DIR]", type=click.Path(), required=False)
@click.option("--list", "listing", is_flag=True, help="List the homes that count.")
@click.option("--remove", is_flag=True, help="Take DIR off the list.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context, folder: str | None, listing: bool, remove: bool, yes: bool, as_json: bool
) -> None:
    """Let the home in DIR count: its store, and all that its settings say as they are now.

    kb opens no store that it did not make for you, and of a project's settings takes what is
    harmless. What DIR would be allowed is shown first, and asked about on a terminal.
    """
    known = trust_list()
    if listing != (folder is None) or (listing and remove):
        raise UsageError("give DIR, or --list")
    if ctx.obj["home"] is not None or ctx.obj["space"] is not None:
        raise UsageError("kb trust takes the folder as DIR; leave out --home and --space")
    if folder is None:
        _list(known, as_json=as_json)
        return
    home = _home_in(here() / Path(folder).expanduser())
    if remove:
        if not known.remove(home):
            raise NotTrusted(id=f"{home} is not on the list")
        click.echo(clean(f"{home} counts no more"))
        return
    _trust(home, known, ask=not yes and sys.stdin.isatty())


def _list(known: TrustList, *, as_json: bool) -> None:
    homes = known.listed()
    if as_json:
        print_json(Trusted(homes=homes))
        return
    for one in homes:
        click.echo(clean(f"{one.how}  {one.home}"))
    if not homes:
        warn("no home is on the list yet")


def _home_in(folder: Path) -> Path:
    """The home that a folder is, or of which it is the project."""
    inner = folder / PROJECT_FOLDER
    return inner if folder.name != PROJECT_FOLDER and os.path.lexists(inner) else folder


def _trust(home: Path, known: TrustList, *, ask: bool) -> None:
    said = link_out(home)
    if said is not None:
        raise HeldBack(f"this cannot be trusted: {said}")
    if not home.is_dir():
        raise NotTrusted(id=f"{home} is no folder")
    click.echo(clean(str(home)))
    settings = dict(_settings(home))
    for line in _what_it_says(home, settings):
        click.echo(clean(f"  {line}"))
    if ask and not click.confirm("Let all of this count?", err=True):
        raise HeldBack("nothing was changed")
    known.put_folder(home, tuple(settings.values()))
    if HomePaths(home).has_store:
        known.put_store(home, "trusted")
    click.echo("it counts from now on")


def _settings(home: Path) -> Iterator[tuple[Path, bytes]]:
    """The settings files of a project, as they are now; those of another home count anyway."""
    if not is_project_home(home):
        return
    files = [home / name for name in HOME_CONFIGS]
    for file in (*files, *sorted((home / "config.d").rglob("*.toml"))):
        # What is no file, or leads out, is refused wherever it is read.
        with contextlib.suppress(SourceError):
            yield file, read_inside(home, str(file.relative_to(home)), SETTINGS_BYTES_MAX)


def _what_it_says(home: Path, settings: dict[Path, bytes]) -> Iterator[str]:
    """What comes with the home that could do something. Raises StoreDamaged."""
    amiss = look_of(home)
    if amiss is not None:
        yield amiss
    for file, data in settings.items():
        for line in accepted_by(file, data):
            yield f"{file.relative_to(home)}: {line}"
    if not HomePaths(home).has_store:
        return
    from kb.check.stranger import look_at

    found = look_at(HomePaths(home).store)
    yield f"{many(found.docs, 'doc')}"
    if found.findings:
        yield f"{many(found.findings, 'record')} not as they should be; `kb check` names them"
    for text, places in (
        ("sync-all reads", found.sources),
        ("embedded by", found.models),
        ("pulls from", found.registries),
    ):
        for place in places[:_SHOWN_MAX]:
            yield f"{text} {place}"
        if len(places) > _SHOWN_MAX:
            yield f"{text} {len(places) - _SHOWN_MAX:,} more"
    if found.tokens:
        yield f"{many(found.tokens, 'token')} may ask a server of it"
