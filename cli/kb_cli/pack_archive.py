"""`kb pack export` and `keygen`: packs that can be handed on."""

from pathlib import Path
from typing import Any, Final

import click

from kb.errors import ItemsFailed
from kb.operations import pack_export, signing
from kb.operations.pack_export import ExportPackRequest
from kb_cli.home import open_to_read
from kb_cli.output import clean, many, print_json, size
from kb_cli.pack_register import tell
from kb_cli.words import text


@click.command(name="export")
@click.option("--tag", type=text, help="The docs with this tag.")
@click.option("--query", type=text, help="The docs of the first hundred passages found.")
@click.option("--doc", "doc_ids", multiple=True, metavar="ID", help="This doc; may be repeated.")
@click.option("--pack", type=text, help="The docs of a registered pack, with their links.")
@click.option("--to", "target", required=True, metavar="FILE", help="The archive, a .tar file.")
@click.option("--id", "pack_id", type=text, help="The pack's id; else from the file's name.")
@click.option("--title", type=text, default="", help="What the pack is called.")
@click.option("--version", type=text, default="1", show_default=True, help="The pack's version.")
@click.option("--key", "key_file", metavar="FILE", help="Sign it with this key.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def export_pack(ctx: click.Context, /, key_file: str | None, as_json: bool, **options: Any) -> None:
    """Write docs, their passages and vectors into one archive, which `kb pack add` takes in.

    Private docs go into it only when they are named by --doc.
    """
    request = ExportPackRequest(**options)
    pack_export.check(request)
    key = signing.read_key(Path(key_file)) if key_file else None
    result = pack_export.run(open_to_read(ctx), request, key=key)
    if as_json:
        print_json(result)
    else:
        docs, passages = many(result.docs, "doc"), many(result.passages, "passage")
        held = f"{docs}, {passages}, {size(result.bytes)}"
        click.echo(f"{clean(result.file)} written: {clean(result.pack_id)}, {held}")
        private = pack_export.private_note(result.private_left_out)
        tell((*filter(None, (private,)), *result.left_out))
    if result.left_out:
        raise ItemsFailed(f"{many(len(result.left_out), 'doc')} left out")


@click.command(name="keygen")
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def keygen(file: str, as_json: bool) -> None:
    """Make a key pair to sign archives with; prints the public key.

    FILE gets the private key, which only its owner may read.
    """
    key = signing.make_key(Path(file))
    if as_json:
        print_json(key)
    else:
        click.echo(key.public_key)


COMMANDS: Final = (export_pack, keygen)
