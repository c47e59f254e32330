"""How far has the work on docs come? For callers that wait for it."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from kb.model.ids import DocId

STANDINGS_MAX: Final = 64


class StandingsRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Docs that are waited for, by their whole ids."""

    doc_ids: Annotated[
        tuple[Annotated[DocId, Meta(min_length=1, max_length=64)], ...],
        Meta(max_length=STANDINGS_MAX),
    ]


class Standing(Struct, frozen=True, kw_only=True):
    """How far the work on a doc has come."""

    doc_id: DocId
    state: Literal["pending", "done", "failed"]
    reason: str | None = None
    """Of one that failed, why; None where that is not for the caller to know."""
