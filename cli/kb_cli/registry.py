"""`kb registry`: publish entries for others, and say whose are pulled."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.errors import ItemsFailed
from kb.operations import registries, signing
from kb_cli.home import open_app, open_to_read
from kb_cli.output import clean, many, print_json, warn
from kb_cli.words import text

if TYPE_CHECKING:
    from kb.operations.registries import PublishProblems, PublishResult


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
    request = registries.publish_request(folder, target, skip_bad=skip_bad)
    key = signing.read_key(Path(key_file)) if key_file else None
    app = open_app(ctx, create=False)
    result = registries.publish(app, request, key=key, on_refusal=_tell)
    if as_json:
        print_json(result)
    else:
        click.echo(clean(_line(result)))
        _tell(result.problems)
    if result.problems:
        raise ItemsFailed(f"{many(len(result.problems), 'problem')} found; the rest is published")


def _line(result: "PublishResult") -> str:
    counts = (result.new, result.updated, result.unchanged, result.removed)
    names = ("new", "updated", "unchanged", "removed")
    parts = [f"{count:,} {name}" for count, name in zip(counts, names, strict=True) if count]
    signed = f", signed by {result.signed_by}" if result.signed_by else ""
    return f"{result.to}: {', '.join(parts)}; {many(result.embedded, 'passage')} embedded{signed}"


def _tell(problems: "PublishProblems") -> None:
    for problem in problems:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        warn(f"{place}: {problem.detail}")


@command.command(name="add")
@click.argument("name", type=text)
@click.argument("place", metavar="URL|DIR")
@click.option("--trust", metavar="KEY", help="Refuse an index that this key has not signed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def add(ctx: click.Context, name: str, place: str, trust: str | None, as_json: bool) -> None:
    """Add a registry under a name, for `kb pull` and `kb sync-knowledge`.

    Of two registries with one entry the one that was added first gives it.
    """
    location = registries.locate(place)
    app = open_app(ctx, create=True)
    record = registries.add_registry(app, name, location, trust)
    if as_json:
        print_json(record)
    else:
        click.echo(f"{record.name} is the registry at {clean(record.location)}")


@command.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def ls(ctx: click.Context, as_json: bool) -> None:
    """List the registries in the order in which they were added."""
    result = registries.list_registries(open_to_read(ctx))
    if as_json:
        print_json(result)
        return
    for record in result.registries:
        trust = f"  trusted: {record.trust}" if record.trust else ""
        click.echo(f"{click.style(record.name, fg='cyan')}  {clean(record.location)}{trust}")
    if not result.registries:
        warn("no registries yet; `kb registry add` names them")


@command.command(name="rm")
@click.argument("name", type=text)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def rm(ctx: click.Context, name: str, as_json: bool) -> None:
    """Remove a registry; what was pulled from it stays."""
    result = registries.remove_registry(open_app(ctx, create=False), name)
    if as_json:
        print_json(result)
    else:
        click.echo(f"{result.removed} is not known any more; what was pulled from it stays")
