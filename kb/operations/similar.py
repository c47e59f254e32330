"""Find chunks of other docs that are like a doc or a chunk."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.model.search import NO_FILTERS, SearchRequest, SearchResult
from kb.operations.fields import BUDGET, HITS, IDENT_OR_PLACE, TOOL_HITS, MaxTokens
from kb.operations.operation import Address, Operation, Tool

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces


class SimilarRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What others should be like."""

    id: Annotated[str, Meta(description="A doc's or a passage's id, or a doc's `source`.")]
    k: Annotated[int, Meta(ge=1, le=1_000, description="How many passages are wanted.")] = 10
    max_tokens: MaxTokens = None


def run(spaces: "Spaces", request: SimilarRequest, scope: Scope) -> SearchResult:
    """Chunks of all spaces that are nearest in meaning to what an id names, best first.

    It is of whichever space has it. Spaces whose chunks another model embedded say so and bring
    none. Tokens are counted as chunks have them. Raises NotFound and AmbiguousId, and a space's
    own error where none can answer.
    """
    from kb.home.spaces.each import ask_each, homes_with_docs
    from kb.operations.budget import bounded
    from kb.operations.locate import doc_or_chunk, home_with, locate_or_at
    from kb.operations.merge_hits import Limits, merged
    from kb.search.paging import Pager

    if spaces.at_least:
        spaces.reached(SearchRequest(query="", mode="dense"))
    failed = list(spaces.failed)
    located = locate_or_at(spaces.homes, request.id, doc_or_chunk, scope, failed)
    origin = home_with(spaces.homes, located)
    seed = origin.searcher().seed(located[origin.name], origin.scope(scope))
    elsewhere = msgspec.structs.replace(seed, warnings=())

    def like(home: "OpenHome") -> SearchResult:
        vector = seed if home is origin else elsewhere
        result = home.searcher().like(vector, request.k, home.scope(scope))
        return bounded([home], result, request.max_tokens)

    each = ask_each(homes_with_docs(spaces.homes, scope, failed), like, failed)
    pager = Pager(k=request.k, reach=request.k)
    limits = Limits(pager=pager, max_tokens=request.max_tokens, scope=scope, filters=NO_FILTERS)
    return msgspec.structs.replace(merged(each, failed, limits), query=request.id)


_BOUNDS: Final = {"id": IDENT_OR_PLACE, "k": HITS, "max_tokens": BUDGET}

SIMILAR: Final = Operation(
    name="similar",
    summary="Find passages of other docs that are like it.",
    request=SimilarRequest,
    results=(SearchResult,),
    run=run,
    tool=Tool(
        name="kb_similar",
        description=(
            "Find passages of other docs that are near in meaning to a doc or a passage. Use it "
            "when one good hit is known and more of its sort are wanted: related notes, other "
            "versions of the same story, contradictions."
        ),
        request=SimilarRequest,
        output=SearchResult,
        run=run,
        bounds={**_BOUNDS, "k": TOOL_HITS},
    ),
    addresses=(
        Address(
            path="/v1/similar/{id}",
            summary="Find passages of other docs that are like it.",
            request=SimilarRequest,
            result=SearchResult,
            tells_spaces=False,
            run=run,
            bounds=_BOUNDS,
        ),
    ),
)
