"""`kb pack check`, `graph` and `build`: for whoever writes a pack."""

import os
import sys
from pathlib import Path
from typing import Final, get_args

import click
from msgspec import Struct

from cli.output import clean, many, print_json
from cli.pack_register import opened, tell
from cli.words import text
from kb.errors import ItemsFailed, UsageError
from kb.knowledge.packs.brief import warnings_of
from kb.knowledge.packs.check import check as findings_of
from kb.knowledge.packs.graph import GraphFormat
from kb.knowledge.packs.graph import graph as drawn
from kb.knowledge.packs.load import MANIFEST_JSON
from kb.knowledge.packs.manifest import PackFinding
from kb.knowledge.packs.query import dangling
from kb.model.source import display_name
from kb.store.content.layout import slug

_MARKDOWN: Final = ("md", "markdown")
_STDOUT: Final = "-"


class CheckedPack(Struct, frozen=True, kw_only=True):
    """What the author of a pack would want to mend."""

    pack_id: str
    sound: bool
    findings: list[PackFinding]


class DrawnPack(Struct, frozen=True, kw_only=True):
    """A pack's graph as the source of a drawing."""

    pack_id: str
    format: GraphFormat
    graph: str
    warnings: tuple[str, ...]


class BuiltPack(Struct, frozen=True, kw_only=True):
    """A manifest that was made of a folder."""

    pack_id: str
    manifest: str
    written: bool
    """False where it was there already, byte for byte."""
    docs: int
    edges: int
    content_hash: str
    warnings: tuple[str, ...]


@click.command(name="check")
@click.argument("name", metavar="PACK")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def check(ctx: click.Context, name: str, as_json: bool) -> None:
    """Look for links and names that lead nowhere, cycles, and bodies that cannot be read."""
    pack = opened(ctx, name)
    findings = findings_of(pack)
    if as_json:
        print_json(
            CheckedPack(pack_id=pack.manifest.pack_id, sound=not findings, findings=findings)
        )
    else:
        for finding in findings:
            click.echo(f"{click.style(finding.code, fg='yellow')}  {clean(finding.line)}")
        if not findings:
            click.echo(f"nothing to mend in {many(len(pack.manifest.docs), 'doc')}")
    if findings:
        raise ItemsFailed(many(len(findings), "finding"))


@click.command(name="graph")
@click.argument("name", metavar="PACK")
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(GraphFormat)),
    default="mermaid",
    show_default=True,
    help="The language of the drawing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def graph(ctx: click.Context, name: str, form: GraphFormat, as_json: bool) -> None:
    """Print the docs of a pack and their links as a drawing."""
    pack = opened(ctx, name)
    drawing, warnings = drawn(pack, form), warnings_of((*pack.findings, *dangling(pack)))
    if as_json:
        pack_id = pack.manifest.pack_id
        print_json(DrawnPack(pack_id=pack_id, format=form, graph=drawing, warnings=warnings))
        return
    click.echo(drawing, nl=False)
    tell(warnings)


@click.command(name="build")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option("--id", "pack_id", type=text, help="The pack's id; else from the folder's name.")
@click.option("--out", metavar="FILE", help="Where the manifest goes, or - (DIR/manifest.json).")
@click.option("--force", is_flag=True, help="Overwrite a manifest that was made by hand.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def build(folder: str, pack_id: str | None, out: str | None, force: bool, as_json: bool) -> None:
    """Make a manifest from a folder of markdown, with its front matter and links.

    Names in it are relative to the manifest, so FILE lies in DIR or in a folder above it.
    """
    from kb.intake.sync.walk import Found, Passed, walk
    from kb.knowledge.packs.build import build as built_of
    from kb.knowledge.packs.build import write_manifest

    if as_json and out == _STDOUT:
        raise UsageError("--json goes with a file, as the manifest itself is JSON")
    top = Path(os.path.realpath(folder))
    path = _place(top, out)
    seen = list(walk(top, _MARKDOWN))
    files = [found.path for found in seen if isinstance(found, Found)]
    built = built_of(path.parent, files, pack_id or slug(top.name))
    unread = [
        f"{display_name(passed.path)}: {passed.reason}"
        for passed in seen
        if isinstance(passed, Passed) and passed.failed
    ]
    is_written = out != _STDOUT and write_manifest(path, built.data, force=force)
    warnings = (*unread, *built.warnings)
    docs = built.manifest.docs
    if as_json:
        print_json(
            BuiltPack(
                pack_id=built.manifest.pack_id,
                manifest=display_name(path),
                written=is_written,
                docs=len(docs),
                edges=sum(len(doc.related) for doc in docs),
                content_hash=built.manifest.content_hash,
                warnings=warnings,
            )
        )
    elif out == _STDOUT:
        sys.stdout.buffer.write(built.data)
        sys.stdout.buffer.flush()
    else:
        done = "written" if is_written else "unchanged"
        click.echo(f"{clean(display_name(path))} {done}, {many(len(docs), 'doc')}")
    if not as_json:
        tell(warnings)
    if built.failed or unread:
        raise ItemsFailed


def _place(top: Path, out: str | None) -> Path:
    if out in (None, _STDOUT):
        return top / MANIFEST_JSON
    path = Path(os.path.realpath(os.path.dirname(out) or "."), os.path.basename(out))
    if path.suffix != ".json":
        raise UsageError(f"{out}: a built manifest is JSON, and its name ends in .json")
    if not top.is_relative_to(path.parent):
        raise UsageError(f"{out} is neither in {display_name(top)} nor above it")
    return path


COMMANDS: Final = (check, graph, build)
