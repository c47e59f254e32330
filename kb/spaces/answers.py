"""What several stores answer together, where a store alone answers less."""

from msgspec import Struct

from kb.model.search import SpaceName
from kb.tools.kept import KeptDoc, KeptDocs, PassageInPlace, WholeDoc


class SpaceDoc(KeptDoc, frozen=True, kw_only=True):
    """A doc as it is listed, and where it is."""

    space: SpaceName


class SpaceDocs(KeptDocs, frozen=True, kw_only=True):
    """Docs of every space, the newest change first and then by source, and how many match."""

    docs: tuple[SpaceDoc, ...]
    warnings: tuple[str, ...]


class ShownDoc(Struct, frozen=True, kw_only=True):
    """The doc that an id names, and where it is."""

    space: SpaceName
    shown: WholeDoc
    warnings: tuple[str, ...]


class ShownPassage(Struct, frozen=True, kw_only=True):
    """The passage that an id names, and where it is."""

    space: SpaceName
    shown: PassageInPlace
    warnings: tuple[str, ...]


Shown = ShownDoc | ShownPassage
