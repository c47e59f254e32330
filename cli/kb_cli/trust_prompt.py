"""What would a home be allowed, if it counted? Shown to the user, who says so or not."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kb.errors import KbError
from kb.operations import trust
from kb.operations.trust import SettingsFiles
from kb_cli.output import clean, many, warn

if TYPE_CHECKING:
    from kb.operations.trust import StoreContents, TrustList

_SHOWN_MAX: Final = 50


def is_let_in_now(home: Path, trusted: "TrustList") -> bool:
    """Ask on a terminal whether a home is to count, once for what it is now.

    Without a terminal nobody is asked, and it is not.
    """
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not is_terminal or trust.escaping_link(home) is not None:
        return False
    settings = trust.settings_in(home)
    if trusted.is_declined(home, settings.values()):
        return False
    try:
        lines = list(what_it_says(home, settings))
    except KbError as error:
        warn(str(error))
        trusted.decline(home, settings.values())
        return False
    click.echo(clean(f"{home} is not on your list of homes that count:"), err=True)
    for line in lines:
        click.echo(clean(f"  {line}"), err=True)
    if click.confirm("Let all of this count, now and later?", err=True):
        trust.trust(home, settings)
        return True
    trusted.decline(home, settings.values())
    return False


def what_it_says(home: Path, settings: SettingsFiles) -> Iterator[str]:
    """What comes with a home that could do something, in lines.

    Raises UnsafeStore for a store that nothing may open, ConfigError for a wrong setting.
    """
    problem = trust.ownership_problem(home)
    if problem is not None:
        yield problem
    yield from trust.settings_effects(home, settings)
    contents = trust.store_contents(home)
    if contents is not None:
        yield from _store_lines(contents)


def _store_lines(contents: "StoreContents") -> Iterator[str]:
    yield f"its store: {many(contents.docs, 'doc')}"
    if contents.findings:
        records = many(contents.findings, "record")
        yield f"{records} not as they should be; `kb check` names them"
    for text, places in (
        ("sync-all reads", contents.sources),
        ("embedded by", contents.models),
        ("pulls from", contents.registries),
    ):
        for place in places[:_SHOWN_MAX]:
            yield f"{text} {place}"
        if len(places) > _SHOWN_MAX:
            yield f"{text} {len(places) - _SHOWN_MAX:,} more"
    if contents.tokens:
        yield f"{many(contents.tokens, 'token')} may ask a server of it"
