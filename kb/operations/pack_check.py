"""What the author of a pack would want to know: what to mend, and how its docs hang together."""

from typing import TYPE_CHECKING, Final, get_args

from msgspec import Struct

from kb.knowledge.packs.manifest import PackFinding
from kb.model import pack as packs

if TYPE_CHECKING:
    from kb.operations.pack_registered import OpenPack

GraphFormat = packs.GraphFormat
GRAPH_FORMATS: Final[tuple[GraphFormat, ...]] = get_args(GraphFormat)


class CheckPackResult(Struct, frozen=True, kw_only=True):
    """What the author of a pack would want to mend."""

    pack_id: str
    sound: bool
    findings: list[PackFinding]


class PackGraph(Struct, frozen=True, kw_only=True):
    """A pack's graph as the source of a drawing."""

    pack_id: str
    format: GraphFormat
    graph: str
    warnings: tuple[str, ...]


def check(pack: "OpenPack") -> CheckPackResult:
    """Look for links and names that lead nowhere, cycles, and bodies that cannot be read."""
    from kb.knowledge.packs.check import check as findings_of

    findings = findings_of(pack)
    return CheckPackResult(pack_id=pack.manifest.pack_id, sound=not findings, findings=findings)


def draw(pack: "OpenPack", form: GraphFormat) -> PackGraph:
    """The docs of a pack and their links, in the language of a drawing program."""
    from kb.knowledge.packs.brief import warnings_of
    from kb.knowledge.packs.graph import graph
    from kb.knowledge.packs.query import dangling

    return PackGraph(
        pack_id=pack.manifest.pack_id,
        format=form,
        graph=graph(pack, form),
        warnings=warnings_of((*pack.findings, *dangling(pack))),
    )
