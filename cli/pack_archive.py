"""`kb pack export` and `keygen`: packs that can be handed on."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from cli.home import open_to_read
from cli.output import clean, many, print_json, size
from cli.pack_register import tell
from cli.words import text
from kb.errors import ItemsFailed, UsageError
from kb.home.app import App
from kb.home.spaces.spaces import Spaces
from kb.knowledge.packs import register
from kb.knowledge.packs.export import Exported, ExportRequest, NothingToExport, export
from kb.knowledge.packs.keys import new_key, read_key
from kb.knowledge.packs.manifest import PackDoc
from kb.model.doc import OPERATOR, Doc
from kb.model.ids import DocId
from kb.model.source import display_name
from kb.operations import search
from kb.operations.entries import doc_named
from kb.operations.search import SearchRequest
from kb.store import docs
from kb.store.content.layout import slug
from kb.store.kv import ReadTxn

_QUERY_HITS: Final = 100
_PRIVATE: Final = (
    "{count} left out; name them by --doc, or say `kb visibility ID public` of those meant"
)


class NewKey(Struct, frozen=True, kw_only=True):
    """A key pair that was made."""

    key_file: str
    public_key: str


class ExportedPack(Exported, frozen=True, kw_only=True):
    """An archive that was written."""

    file: str
    private_left_out: int
    """Docs that only their owner sees, and that were not named one by one."""


@click.command(name="export")
@click.option("--tag", type=text, help="The docs with this tag.")
@click.option("--query", type=text, help="The docs of the first hundred passages found.")
@click.option("--doc", "doc_ids", multiple=True, metavar="ID", help="This doc; may be repeated.")
@click.option("--pack", "name", type=text, help="The docs of a registered pack, with their links.")
@click.option("--to", "target", required=True, metavar="FILE", help="The archive, a .tar file.")
@click.option("--id", "pack_id", type=text, help="The pack's id; else from the file's name.")
@click.option("--title", type=text, default="", help="What the pack is called.")
@click.option("--version", type=text, default="1", show_default=True, help="The pack's version.")
@click.option("--key", "key_file", metavar="FILE", help="Sign it with this key.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def export_pack(
    ctx: click.Context, /, target: str, key_file: str | None, as_json: bool, **options: Any
) -> None:
    """Write docs, their passages and vectors into one archive, which `kb pack add` takes in.

    Private docs go into it only when they are named by --doc.
    """
    chosen = [options[name] for name in ("tag", "query", "doc_ids", "name") if options[name]]
    if len(chosen) != 1:
        raise UsageError("give one of --tag, --query, --doc and --pack")
    if not target.endswith(".tar"):
        raise UsageError(f"{target}: the name of an archive ends in .tar")
    key = read_key(Path(key_file)) if key_file else None
    app = open_to_read(ctx)
    meant = _meant(app, options)
    open_docs = [doc for doc in meant.docs if options["doc_ids"] or not doc.is_private]
    private = len(meant.docs) - len(open_docs)
    said = (_PRIVATE.format(count=many(private, "private doc")),) if private else ()
    if not open_docs:
        raise NothingToExport(said[0] if said else "no doc is meant")
    path = Path(os.path.realpath(os.path.dirname(target) or "."), os.path.basename(target))
    wanted = ExportRequest(
        pack_id=options["pack_id"] or meant.pack_id or slug(path.stem),
        title=options["title"],
        version=options["version"],
        docs=tuple(open_docs),
        described=meant.described,
    )
    done = export(app.store, app.content, wanted, path, key=key, force=options["force"])
    if as_json:
        fields = msgspec.structs.asdict(done)
        print_json(ExportedPack(**fields, file=display_name(path), private_left_out=private))
    else:
        held = f"{many(done.docs, 'doc')}, {many(done.passages, 'passage')}, {size(done.bytes)}"
        click.echo(f"{clean(display_name(path))} written: {clean(done.pack_id)}, {held}")
        tell((*said, *done.left_out))
    if done.left_out:
        raise ItemsFailed(f"{many(len(done.left_out), 'doc')} left out")


class _Meant(Struct, frozen=True, kw_only=True):
    """The docs that were asked for, in any order."""

    docs: list[Doc]
    pack_id: str = ""
    """Of the pack that they are of, where that was asked for."""
    described: dict[DocId, PackDoc] = {}
    """By doc id: what the manifest of that pack says."""


def _meant(app: App, options: dict[str, Any]) -> _Meant:
    if options["query"]:
        request = SearchRequest(query=options["query"], k=_QUERY_HITS)
        alone = Spaces([app.opened()])
        ids = [hit.doc_id for hit in search.run(alone, request, OPERATOR).hits]
    else:
        ids = list(options["doc_ids"])
    with app.store.read() as txn:
        if options["name"]:
            return _of_pack(app, txn, options["name"])
        if options["tag"]:
            found = [docs.latest(txn, no) for no in docs.with_facet(txn, "tag", options["tag"])]
        else:
            named = (doc_named(txn, one) for one in ids)
            found = [docs.latest(txn, doc.source_no) for doc in named]
    return _Meant(docs=_active(found))


def _of_pack(app: App, txn: ReadTxn, name: str) -> _Meant:
    record = register.resolve(txn, name, OPERATOR)
    pack = register.open_registered(record, app.paths.root)
    found = _active(docs.latest(txn, no) for no in docs.with_facet(txn, "pack", record.pack_id))
    about = {
        doc.doc_id: known
        for doc in found
        if doc.pack and (known := pack.find(doc.pack.selector)) is not None
    }
    return _Meant(docs=found, pack_id=record.pack_id, described=about)


def _active(found: Iterable[Doc | None]) -> list[Doc]:
    known = {doc.doc_id: doc for doc in found if doc is not None and doc.status == "active"}
    return list(known.values())


@click.command(name="keygen")
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def keygen(file: str, as_json: bool) -> None:
    """Make a key pair to sign archives with; prints the public key.

    FILE gets the private key, which only its owner may read.
    """
    public_key = new_key(Path(file))
    if as_json:
        print_json(NewKey(key_file=display_name(Path(file)), public_key=public_key))
    else:
        click.echo(public_key)


COMMANDS: Final = (export_pack, keygen)
