"""`kb_similar`: passages of other docs that are like a doc or a passage."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.model.search import Hit, SearchResult
from kb.store import chunks
from kb.store.kv import ReadTxn
from kb.tools.budget import estimate, shortened
from kb.tools.fields import TOKENS_MAX_DEFAULT, Hits, Ident, TokensMax
from kb.tools.kit import ToolKit


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
    result = kit.searcher().similar(request.id, request.k, scope)
    with kit.store.read() as txn:
        hits, truncated = _fitting(txn, result.hits, request.max_tokens)
    return msgspec.structs.replace(result, hits=hits, truncated=truncated)


def _fitting(
    txn: ReadTxn, hits: tuple[Hit, ...], tokens_max: int
) -> tuple[tuple[Hit, ...], str | None]:
    """The first hits that fit together; the first one always, cut if need be."""
    if not hits:
        return hits, None
    used = _tokens(txn, hits[0])
    first, said = shortened(hits[0], used, tokens_max)
    kept = [first]
    for hit in hits[1:]:
        used += _tokens(txn, hit)
        if used > tokens_max:
            break
        kept.append(hit)
    left_out = len(hits) - len(kept)
    parts = [said] if said else []
    if left_out:
        parts.append(f"{left_out} of {len(hits)} hits left out: over {tokens_max} tokens")
    return tuple(kept), "; ".join(parts) or None


def _tokens(txn: ReadTxn, hit: Hit) -> int:
    chunk = chunks.by_id(txn, hit.chunk_id)
    return chunk.tokens if chunk else estimate(hit.text)
