"""What would a home be allowed, if it counted? Shown to the user, who says so or not."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from cli.output import clean, many, warn
from kb.errors import KbError, SourceError
from kb.model.config import HOME_CONFIGS, SETTINGS_BYTES_MAX, accepted_by
from kb.store.content.inside import read_inside
from kb.store.content.layout import HomePaths, is_project_home
from kb.store.trust import TrustList, escaping_link, ownership_problem

_SHOWN_MAX: Final = 50

Texts = dict[Path, bytes]
"""Settings files of a project and their bytes."""


def settings_in(home: Path) -> Texts:
    """The settings files of a project, as they are now; those of another home count anyway."""
    if not is_project_home(home):
        return {}
    named = (home / name for name in HOME_CONFIGS)
    found: Texts = {}
    for file in (*named, *sorted((home / "config.d").rglob("*.toml"))):
        # What is no file, or leads out, is refused wherever it is read.
        with contextlib.suppress(SourceError):
            found[file] = read_inside(home, str(file.relative_to(home)), SETTINGS_BYTES_MAX)
    return found


def let_in(home: Path, known: TrustList, settings: Texts) -> None:
    """Put a home on the list as it is now. Raises ReadOnlyHome where that cannot be written."""
    known.put_folder(home, tuple(settings.values()))
    if HomePaths(home).has_store:
        known.put_store(home, "trusted")


def is_let_in_now(home: Path, known: TrustList) -> bool:
    """Ask on a terminal whether a home is to count, once for what it is now.

    Without a terminal nobody is asked, and it is not.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or escaping_link(home) is not None:
        return False
    settings = settings_in(home)
    if known.is_declined(home, settings.values()):
        return False
    try:
        lines = list(what_it_says(home, settings))
    except KbError as error:
        warn(str(error))
        known.decline(home, settings.values())
        return False
    click.echo(clean(f"{home} is not on your list of homes that count:"), err=True)
    for line in lines:
        click.echo(clean(f"  {line}"), err=True)
    if click.confirm("Let all of this count, now and later?", err=True):
        let_in(home, known, settings)
        return True
    known.decline(home, settings.values())
    return False


def what_it_says(home: Path, settings: Texts) -> Iterator[str]:
    """What comes with a home that could do something, in lines.

    Raises NotSound for a store that nothing may open, ConfigError for what is wrong in a setting.
    """
    amiss = ownership_problem(home)
    if amiss is not None:
        yield amiss
    for file, data in settings.items():
        for line in accepted_by(file, data):
            yield f"{os.path.relpath(file, home)}: {line}"
    if not HomePaths(home).has_store:
        return
    from kb.upkeep.check.untrusted import inspect_store

    found = inspect_store(HomePaths(home).store)
    yield f"its store: {many(found.docs, 'doc')}"
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
