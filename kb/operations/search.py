"""`kb_search`: passages by words and by meaning."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kb.knowledge.packs.register import resolve
from kb.model.doc import Scope
from kb.model.ids import DocId
from kb.model.search import NOTHING_HERE, SearchMode, SearchRequest, SearchResult
from kb.operations.budget import shortened
from kb.operations.fields import (
    NO_BUDGET,
    TOKENS_MAX_DEFAULT,
    Hits,
    Ident,
    Kinds,
    Sources,
    Tags,
    TokensMax,
    Word,
)
from kb.operations.kit import ToolKit
from kb.operations.neighbors import with_neighbors
from kb.search.filters import readable_audiences
from kb.search.resolve import resolve_doc
from kb.store import chunks

Query = Annotated[
    str,
    Meta(
        max_length=8_192,
        description="What is looked for: a question, or words that it should hold.",
    ),
]
Mode = Annotated[
    SearchMode, Meta(description="By words and meaning (hybrid), or by one of them alone.")
]
DocIds = Annotated[
    tuple[Ident, ...], Meta(max_length=100, description="Only these docs; short ids will do.")
]
Packs = Annotated[
    tuple[Word, ...],
    Meta(
        max_length=16,
        description="Only docs of one of these packs, by id or selector as kb_pack_list says it.",
    ),
]
WithNeighbors = Annotated[
    bool,
    Meta(
        description="Let the docs that a pack's doc links to follow the hits, each with `via`: the "
        "hit that brought it."
    ),
]
Required = Annotated[
    tuple[Word, ...],
    Meta(
        max_length=16,
        description="Only passages that mention all of these: a #tag, @name, address or link.",
    ),
]
Boosted = Annotated[
    tuple[Word, ...],
    Meta(max_length=16, description="Passages that mention these come earlier."),
]


MinScore = Annotated[
    float,
    Meta(
        ge=0,
        le=1,
        description="Leave out hits that score less. Where nothing fits the query all score below "
        "0.5, so that 0.5 gives silence.",
    ),
]


class SearchInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question and its limits."""

    query: Query
    k: Hits = 10
    mode: Mode = "hybrid"
    tags: Tags = ()
    kinds: Kinds = ()
    doc_ids: DocIds = ()
    packs: Packs = ()
    sources: Sources = ()
    with_neighbors: WithNeighbors = False
    require_entities: Required = ()
    boost_entities: Boosted = ()
    min_score: MinScore = 0.0
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT
    explain: Annotated[bool, Meta(description="Say how each score came about.")] = False


SearchOutput = SearchResult


def run(kit: ToolKit, request: SearchInput, scope: Scope) -> SearchOutput:
    """The best passages for a scope, with their neighbours as far as `max_tokens` has room.

    Tokens are counted as passages have them. Raises NotFound and AmbiguousId for a doc id, and
    UnknownPack and SharedSelector for a pack.
    """
    with kit.store.read() as txn:
        doc_ids = tuple(DocId(resolve_doc(txn, one, scope).doc_id) for one in request.doc_ids)
        packs = tuple(resolve(txn, one, scope).pack_id for one in request.packs)
        has_docs = bool(readable_audiences(txn, scope))
    if not has_docs:
        return no_hits(request, (NOTHING_HERE,))
    asked = SearchRequest(
        query=request.query,
        k=request.k,
        mode=request.mode,
        tags=request.tags,
        kinds=request.kinds,
        doc_ids=doc_ids,
        packs=packs,
        sources=request.sources,
        require_entities=request.require_entities,
        boost_entities=request.boost_entities,
        min_score=request.min_score,
        # Without a budget there is nothing to fill with neighbours: each hit stands alone.
        max_tokens=None if request.max_tokens >= NO_BUDGET else request.max_tokens,
        explain=request.explain,
    )
    result = _bounded(kit, kit.searcher().search(asked, scope), request.max_tokens)
    if not request.with_neighbors:
        return result
    return with_neighbors(lambda _: kit, result, asked, scope)


def no_hits(request: SearchInput, warnings: tuple[str, ...]) -> SearchResult:
    """An answer without hits."""
    return SearchResult(
        query=request.query, mode=request.mode, hits=(), entity_alignment=(), warnings=warnings
    )


def _bounded(kit: ToolKit, result: SearchResult, tokens_max: int) -> SearchResult:
    """The result, its first hit cut where that alone is over the budget."""
    if not result.hits:
        return result
    first, *others = result.hits
    with kit.store.read() as txn:
        chunk = chunks.by_id(txn, first.chunk_id)
    first, said = shortened(first, chunk.tokens if chunk else 0, tokens_max)
    if said is None:
        return result
    truncated = "; ".join(part for part in (said, result.truncated) if part)
    return msgspec.structs.replace(result, hits=(first, *others), truncated=truncated)
