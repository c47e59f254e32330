"""Cursors of a search: where its next page begins, and of which query they are."""

import hashlib
from typing import Final, TypeVar

import msgspec

from kb.errors import UsageError
from kb.model.search import SearchRequest, SearchResult

R = TypeVar("R", bound=SearchRequest)

_DIGEST_CHARS: Final = 16
# What a page may have otherwise than the page before it.
_FREE: Final = frozenset(("k", "cursor", "max_tokens", "with_neighbors", "explain", "at_least"))


def opened(request: R, offset: int) -> tuple[str, R]:
    """The digest of a request, and the request with a cursor as the engine takes it.

    Raises UsageError for a cursor of another query, and for one that comes with an offset.
    """
    digest = _digest(request)
    if request.cursor is None:
        cursor = str(offset) if offset else None
        return digest, msgspec.structs.replace(request, cursor=cursor)
    if offset:
        raise UsageError("a page has either an offset or a cursor, not both")
    place, _, made_of = request.cursor.rpartition(".")
    if made_of != digest:
        raise UsageError(
            "the cursor is of another query: ask with the query, filters and order of the page"
            " before, or without the cursor"
        )
    return digest, msgspec.structs.replace(request, cursor=place)


def sealed(result: SearchResult, digest: str, query: str) -> SearchResult:
    """The result with the query as it was asked, and with a cursor that tells of which it is."""
    place = result.next_cursor
    cursor = None if place is None else f"{place}.{digest}"
    return msgspec.structs.replace(result, query=query, next_cursor=cursor)


def _digest(request: SearchRequest) -> str:
    fixed = {
        field: getattr(request, field)
        for field in SearchRequest.__struct_fields__
        if field not in _FREE
    }
    text = msgspec.json.encode(fixed, order="deterministic")
    return hashlib.blake2b(text).hexdigest()[:_DIGEST_CHARS]
