"""List what a search can be narrowed to: the values that docs have, counted."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.operations.fields import ROWS
from kb.operations.operation import Address, Operation
from kb.search.facets import FacetCounts, Facets, count_facets, facets_of

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces


class FacetsRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many values of each kind are wanted."""

    limit: Annotated[int, Meta(ge=1, description="How many are wanted.")] = 200


class FacetsOfSpaces(Facets, frozen=True, kw_only=True):
    """What the docs of every space can be narrowed to."""

    warnings: tuple[str, ...]


def run(spaces: "Spaces", request: FacetsRequest, scope: Scope) -> FacetsOfSpaces:
    """What a search can be narrowed to, counted over all spaces.

    Raises a space's own error where none can be read.
    """
    from kb.home.spaces.each import ask_each, warnings_of

    failed = list(spaces.failed)

    def counted(home: "OpenHome") -> FacetCounts:
        with home.store.read() as txn:
            return count_facets(txn, home.scope(scope))

    each = ask_each(spaces.homes, counted, failed)
    facets = facets_of((counts for _, counts in each), request.limit)
    return FacetsOfSpaces(**msgspec.structs.asdict(facets), warnings=warnings_of(failed, scope))


FACETS: Final = Operation(
    name="facets",
    summary="List what a search can be narrowed to.",
    request=FacetsRequest,
    results=(FacetsOfSpaces,),
    run=run,
    example="kb facets --limit 20",
    addresses=(
        Address(
            path="/v1/facets",
            summary="List what a search can be narrowed to: the values that docs have, counted.",
            request=FacetsRequest,
            result=FacetsOfSpaces,
            run=run,
            bounds={"limit": ROWS},
        ),
    ),
)
