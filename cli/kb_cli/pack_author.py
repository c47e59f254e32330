"""`kb pack check`, `graph` and `build`: for whoever writes a pack."""

import sys
from typing import Final

import click

from kb.errors import ItemsFailed, UsageError
from kb.operations import pack_build, pack_check
from kb.operations.pack_build import STDOUT, BuildPackRequest
from kb.operations.pack_check import GRAPH_FORMATS, GraphFormat
from kb_cli.output import clean, many, print_json
from kb_cli.pack_register import opened, tell
from kb_cli.words import text


@click.command(name="check")
@click.argument("name", metavar="PACK")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def check(ctx: click.Context, name: str, as_json: bool) -> None:
    """Look for links and names that lead nowhere, cycles, and bodies that cannot be read."""
    pack = opened(ctx, name)
    result = pack_check.check(pack)
    if as_json:
        print_json(result)
    else:
        for finding in result.findings:
            click.echo(f"{click.style(finding.code, fg='yellow')}  {clean(finding.line)}")
        if result.sound:
            click.echo(f"nothing to mend in {many(len(pack.manifest.docs), 'doc')}")
    if result.findings:
        raise ItemsFailed(many(len(result.findings), "finding"))


@click.command(name="graph")
@click.argument("name", metavar="PACK")
@click.option(
    "--format",
    "form",
    type=click.Choice(GRAPH_FORMATS),
    default="mermaid",
    show_default=True,
    help="The language of the drawing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def graph(ctx: click.Context, name: str, form: GraphFormat, as_json: bool) -> None:
    """Print the docs of a pack and their links as a drawing."""
    drawing = pack_check.draw(opened(ctx, name), form)
    if as_json:
        print_json(drawing)
        return
    click.echo(drawing.graph, nl=False)
    tell(drawing.warnings)


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
    if as_json and out == STDOUT:
        raise UsageError("--json goes with a file, as the manifest itself is JSON")
    built = pack_build.run(BuildPackRequest(folder=folder, pack_id=pack_id, out=out, force=force))
    result = built.result
    if as_json:
        print_json(result)
    elif out == STDOUT:
        sys.stdout.buffer.write(built.data)
        sys.stdout.buffer.flush()
    else:
        done = "written" if result.written else "unchanged"
        click.echo(f"{clean(result.manifest)} {done}, {many(result.docs, 'doc')}")
    if not as_json:
        tell(result.warnings)
    if not built.is_whole:
        raise ItemsFailed


COMMANDS: Final = (check, graph, build)
