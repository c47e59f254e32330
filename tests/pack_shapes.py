"""What the commands of `kb pack` print as JSON."""

from typing import Any

from cli import pack_archive as archive
from cli import pack_author as author
from cli import pack_query as asked
from cli import pack_register as register
from kb.intake.sync.current import SourceLine
from kb.knowledge.packs import manifest, query
from kb.model.pack import PackRecord


def pack_shapes() -> list[tuple[str, Any]]:
    """Under each command's name, the records of its document: where, and of which class."""
    return [
        ("add", register.AddedPack),
        ("add.sync", SourceLine),
        ("ls", register.PackList),
        ("ls.packs", PackRecord),
        ("rm", register.RemovedPack),
        ("list", asked.PackDocs),
        ("list.docs", manifest.PackDoc),
        ("list.docs.related", manifest.PackEdge),
        ("read", asked.PackText),
        ("search", asked.PackHits),
        ("search.hits", query.PackHit),
        ("neighbors", asked.PackNeighbors),
        ("neighbors.edges", query.NeighborEdge),
        ("vars", asked.PackVariables),
        ("check", author.CheckedPack),
        ("check.findings", manifest.PackFinding),
        ("graph", author.DrawnPack),
        ("build", author.BuiltPack),
        ("export", archive.ExportedPack),
        ("keygen", archive.NewKey),
    ]
