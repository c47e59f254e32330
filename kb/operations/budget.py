"""A budget of tokens: how long a text is, and what of it fits.

Chunks are counted as they were when they were cut, in the tokens of the embedding model. What
has no such count is estimated: a token for every four bytes of UTF-8.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from kb.knowledge.topics.records import BYTES_PER_TOKEN
from kb.model.search import Hit, SearchResult
from kb.store import chunks
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome

Counted = Literal["passages", "bytes"]
"""By the counts that chunks have, or by four bytes to a token."""


def estimate(text: str) -> int:
    """About how many tokens a text has: a quarter of its bytes, rounded up."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def cut_to(text: str, max_tokens: int | None) -> str:
    """The start of a text that `estimate` lets through, never empty of a text that is not.

    It ends after a line where one ends in its second half.
    """
    if max_tokens is None or estimate(text) <= max_tokens:
        return text
    start = text.encode()[: max_tokens * BYTES_PER_TOKEN].decode(errors="ignore")
    line_end = start.rfind("\n") + 1
    return start[:line_end] if line_end > len(start) // 2 else start


def share_of(text: str, tokens: int, max_tokens: int | None) -> str:
    """The start of a text of so many tokens that has about `max_tokens` of them, never empty."""
    if max_tokens is None or tokens <= max_tokens:
        return text
    return text[: max(1, len(text) * max_tokens // tokens)]


def shortened(hit: Hit, tokens: int, tokens_max: int) -> tuple[Hit, str | None]:
    """A hit of so many tokens, its text cut where it is over the budget; and what was cut."""
    text = share_of(hit.text, tokens, tokens_max)
    if len(text) == len(hit.text):
        return hit, None
    remark = f"the text of the first hit is cut to {len(text)} of {len(hit.text)} characters"
    return msgspec.structs.replace(hit, text=text, end=hit.start + len(text)), remark


def hits_fitting(
    hits: Sequence[Hit], counts: Sequence[int], tokens_max: int
) -> tuple[tuple[Hit, ...], str | None]:
    """The first hits that fit together, and what was cut; the first one always, cut if need be.

    `counts` has the tokens of each hit.
    """
    if not hits:
        return (), None
    first, remark = shortened(hits[0], counts[0], tokens_max)
    fitting = [first]
    for hit, used in zip(hits[1:], list(accumulate(counts))[1:], strict=True):
        if used > tokens_max:
            break
        fitting.append(hit)
    left_out = len(hits) - len(fitting)
    parts = [remark] if remark else []
    if left_out:
        parts.append(f"{left_out} of {len(hits)} hits left out: over {tokens_max} tokens")
    return tuple(fitting), "; ".join(parts) or None


def bounded(
    homes: "Sequence[OpenHome]", result: SearchResult, max_tokens: int | None
) -> SearchResult:
    """The result with the hits that fit the budget together; the first one always, cut if need be.

    A hit is counted in the home of its space, or else in the first one.
    """
    if max_tokens is None:
        return result
    names = {home.name for home in homes}
    counts: dict[int, int] = {}
    for place, home in enumerate(homes):
        # What is of no home that is known counts as one of the first.
        mine = [
            hit
            for hit in result.hits
            if hit.source_space == home.name or (place == 0 and hit.source_space not in names)
        ]
        counts |= counts_of(home, mine)
    hits, cut = hits_fitting(result.hits, [counts[hit.rank] for hit in result.hits], max_tokens)
    truncated = "; ".join(part for part in (result.truncated, cut) if part) or None
    return msgspec.structs.replace(result, hits=hits, truncated=truncated)


def rows_fitting(rows: Sequence[Struct], max_tokens: int | None) -> int:
    """How many of the rows fit the budget as JSON, in order; the first one always does."""
    if max_tokens is None:
        return len(rows)
    used_bytes = count = 0
    for row in rows:
        used_bytes += len(msgspec.json.encode(row))
        if count and used_bytes > max_tokens * BYTES_PER_TOKEN:
            break
        count += 1
    return count


def counts_of(home: "OpenHome", hits: Sequence[Hit]) -> dict[int, int]:
    """How many tokens the texts of a home's hits have, by their ranks, which differ."""
    if not hits:
        return {}
    with home.store.read() as txn:
        chunks.expect_by_id(txn, (hit.chunk_id for hit in hits))
        return {hit.rank: _tokens_of(txn, hit) for hit in hits}


def _tokens_of(txn: ReadTxn, hit: Hit) -> int:
    """How many tokens a hit's text has, by the count of its chunk; neighbours are estimated."""
    chunk = chunks.by_id(txn, hit.chunk_id)
    if chunk is None or not chunk.text:
        return estimate(hit.text)
    return chunk.tokens * len(hit.text) // len(chunk.text)
