"""`kb_similar`: passages of other docs that are like a doc or a passage."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.model.search import Hit, SearchResult
from kb.operations.budget import estimate, hits_fitting
from kb.operations.fields import TOKENS_MAX_DEFAULT, Hits, Ident, TokensMax
from kb.operations.kit import ToolKit
from kb.store import chunks
from kb.store.kv import ReadTxn


class SimilarInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What others should be like."""

    id: Annotated[Ident, Meta(description="A doc's or a passage's id, whole or its start.")]
    k: Hits = 10
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT


SimilarOutput = SearchResult


def run(kit: ToolKit, request: SimilarInput, scope: Scope) -> SimilarOutput:
    """The passages that are nearest in meaning, best first, as far as they fit `max_tokens`.

    Tokens are counted as passages have them. Raises NotFound and AmbiguousId.
    """
    return bounded(kit, kit.searcher().similar(request.id, request.k, scope), request.max_tokens)


def bounded(kit: ToolKit, result: SearchResult, tokens_max: int) -> SearchResult:
    """The result with the hits that fit the budget together."""
    with kit.store.read() as txn:
        counts = [tokens_of(txn, hit) for hit in result.hits]
    hits, truncated = hits_fitting(result.hits, counts, tokens_max)
    return msgspec.structs.replace(result, hits=hits, truncated=truncated)


def tokens_of(txn: ReadTxn, hit: Hit) -> int:
    """How many tokens a hit's text has, by the count of its passage; neighbours are estimated."""
    chunk = chunks.by_id(txn, hit.chunk_id)
    if chunk is None or not chunk.text:
        return estimate(hit.text)
    return chunk.tokens * len(hit.text) // len(chunk.text)
