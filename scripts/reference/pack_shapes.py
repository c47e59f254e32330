"""What the commands of `kb pack` print as JSON."""

from typing import Any

from kb.intake.sync.report import SourceLine
from kb.knowledge.packs import manifest, query
from kb.model.pack import PackRecord
from kb.operations import (
    pack_add,
    pack_browse,
    pack_build,
    pack_check,
    pack_export,
    pack_registered,
    signing,
)


def pack_shapes() -> list[tuple[str, Any]]:
    """Under each command's name, the records of its document: where, and of which class."""
    return [
        ("add", pack_add.AddPackResult),
        ("add.sync", SourceLine),
        ("ls", pack_registered.PackList),
        ("ls.packs", PackRecord),
        ("rm", pack_registered.RemovePackResult),
        ("list", pack_browse.PackDocs),
        ("list.docs", manifest.PackDoc),
        ("list.docs.related", manifest.PackEdge),
        ("read", pack_browse.PackDocText),
        ("search", pack_browse.PackHits),
        ("search.hits", query.PackHit),
        ("neighbors", pack_browse.PackNeighbors),
        ("neighbors.edges", query.NeighborEdge),
        ("vars", pack_browse.PackVariables),
        ("check", pack_check.CheckPackResult),
        ("check.findings", manifest.PackFinding),
        ("graph", pack_check.PackGraph),
        ("build", pack_build.BuildPackResult),
        ("export", pack_export.ExportPackResult),
        ("keygen", signing.NewKey),
    ]
