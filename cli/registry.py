"""`kb registry`: publish entries for others, and say whose are pulled."""

import os
from pathlib import Path

import click
from msgspec import Struct

from cli.home import open_app, open_to_read
from cli.output import clean, many, print_json, warn
from cli.words import text
from kb.errors import ItemsFailed, UsageError
from kb.knowledge.packs.keys import read_key
from kb.knowledge.registry import register
from kb.knowledge.registry.publish import NotPublished, Published, PublishProblem, publish
from kb.knowledge.registry.target import target_at
from kb.model.registry import RegistryRecord
from kb.model.source import display_name


class RegistryList(Struct, frozen=True, kw_only=True):
    """The registries, in the order in which they were added."""

    registries: list[RegistryRecord]


class RemovedRegistry(Struct, frozen=True, kw_only=True):
    """A registry that is not known any more."""

    removed: str
    entries: int
    """Those that were pulled from it, which stay."""


@click.group(name="registry")
def command() -> None:
    """Publish entries as plain files, and name the registries that entries are pulled from."""


@command.command(name="publish")
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--to", "target", required=True, metavar="DIR|FILE.tar", help="The registry.")
@click.option("--key", "key_file", metavar="FILE", help="Sign the index with this key.")
@click.option("--skip-bad", is_flag=True, help="Publish the rest where some files are wrong.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def publish_entries(
    ctx: click.Context,
    folder: str,
    target: str,
    key_file: str | None,
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Write the entries below DIR as a registry, which any host of plain files can serve.

    They are cut and embedded by this home's model. Over a registry that is there only what
    changed is written, and a text may change with its version only.
    """
    source, to = Path(os.path.realpath(folder)), Path(os.path.realpath(target))
    if to.is_relative_to(source):
        raise UsageError("--to lies in the folder that is published; name another place")
    key = read_key(Path(key_file)) if key_file else None
    app = open_app(ctx, create=False)
    try:
        done = publish(
            source,
            target_at(to),
            app.registries.pipeline(),
            app.store.clock,
            to=display_name(to),
            key=key,
            skip_bad=skip_bad,
        )
    except NotPublished as error:
        _tell(error.problems)
        raise
    if as_json:
        print_json(done)
    else:
        click.echo(clean(_said(done)))
        _tell(done.problems)
    if done.problems:
        raise ItemsFailed(f"{many(len(done.problems), 'problem')} found; the rest is published")


def _said(done: Published) -> str:
    counts = (done.new, done.updated, done.unchanged, done.removed)
    names = ("new", "updated", "unchanged", "removed")
    parts = [f"{count:,} {name}" for count, name in zip(counts, names, strict=True) if count]
    signed = f", signed by {done.signed_by}" if done.signed_by else ""
    return f"{done.to}: {', '.join(parts)}; {many(done.embedded, 'passage')} embedded{signed}"


def _tell(problems: tuple[PublishProblem, ...]) -> None:
    for one in problems:
        place = f"{one.file}:{one.line}" if one.line else one.file
        warn(f"{place}: {one.detail}")


@command.command(name="add")
@click.argument("name", type=text)
@click.argument("place", metavar="URL|DIR")
@click.option("--trust", metavar="KEY", help="Refuse an index that this key has not signed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def add(ctx: click.Context, name: str, place: str, trust: str | None, as_json: bool) -> None:
    """Know a registry by a name, for `kb pull` and `kb sync-knowledge`.

    Of two registries with one entry the one that was added first gives it.
    """
    location = register.located(place)
    app = open_app(ctx, create=True)
    record = register.add(app.store, name, location, trust)
    if as_json:
        print_json(record)
    else:
        click.echo(f"{record.name} is the registry at {clean(record.location)}")


@command.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def ls(ctx: click.Context, as_json: bool) -> None:
    """List the registries in the order in which they were added."""
    with open_to_read(ctx).store.read() as txn:
        records = register.listed(txn)
    if as_json:
        print_json(RegistryList(registries=records))
        return
    for record in records:
        trust = f"  trusted: {record.trust}" if record.trust else ""
        click.echo(f"{click.style(record.name, fg='cyan')}  {clean(record.location)}{trust}")
    if not records:
        warn("no registries yet; `kb registry add` names them")


@command.command(name="rm")
@click.argument("name", type=text)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def rm(ctx: click.Context, name: str, as_json: bool) -> None:
    """Know a registry no longer; what was pulled from it stays."""
    app = open_app(ctx, create=False)
    record, entries = register.remove(app.store, name)
    app.registries.forget(record.name)
    if as_json:
        print_json(RemovedRegistry(removed=record.name, entries=entries))
    else:
        click.echo(f"{record.name} is not known any more; what was pulled from it stays")
