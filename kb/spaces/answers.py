"""What several stores answer together, where a store alone answers less."""

from msgspec import Struct

from kb.model.search import SpaceName
from kb.tools.kept import KeptDoc, KeptDocs, PassageInPlace, WholeDoc
from kb.tools.search_entities import SearchEntitiesOutput


class SpaceDoc(KeptDoc, frozen=True, kw_only=True):
    """A doc as it is listed, and where it is."""

    space: SpaceName


class SpaceDocs(KeptDocs, frozen=True, kw_only=True):
    """Docs of every space, the newest change first and then by source, and how many match."""

    docs: tuple[SpaceDoc, ...]
    warnings: tuple[str, ...]


class SpaceEntities(SearchEntitiesOutput, frozen=True, kw_only=True):
    """Entities by kind and then by name; what several spaces mention is counted in each."""

    warnings: tuple[str, ...]


class Shown(Struct, frozen=True, kw_only=True):
    """What an id names, and where it is."""

    space: SpaceName
    shown: WholeDoc | PassageInPlace
    warnings: tuple[str, ...]
