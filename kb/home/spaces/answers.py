"""What several stores answer together, where a store alone answers less."""

from msgspec import Struct

from kb.model.search import SpaceName
from kb.operations.fetch import FetchOutput
from kb.operations.kept import KeptDoc, KeptDocs, PassageInPlace, WholeDoc
from kb.operations.list_docs import ListDocsOutput, ListedDoc
from kb.search.facets import Facets


class SpaceDoc(KeptDoc, frozen=True, kw_only=True):
    """A doc as it is listed, and where it is."""

    space: SpaceName


class SpaceDocs(KeptDocs, frozen=True, kw_only=True):
    """Docs of every space, the newest change first and then by source, and how many match."""

    docs: tuple[SpaceDoc, ...]
    warnings: tuple[str, ...]


class ListedInSpace(ListedDoc, frozen=True, kw_only=True):
    """A doc as agents are told of it, and where it is."""

    space: SpaceName


class SpaceListing(ListDocsOutput, frozen=True, kw_only=True):
    """A page of the docs of every space, the newest change first."""

    docs: tuple[ListedInSpace, ...]


class SpaceFacets(Facets, frozen=True, kw_only=True):
    """What the docs of every space can be narrowed to."""

    warnings: tuple[str, ...]


class SpaceText(FetchOutput, frozen=True, kw_only=True):
    """A text that an id names, and where it is."""

    space: SpaceName


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
