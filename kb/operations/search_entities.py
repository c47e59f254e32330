"""`kb_search_entities`: who and what is mentioned."""

from typing import Annotated

from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.model.search import KnownEntity
from kb.operations.budget import rows_fitting
from kb.operations.fields import TOKENS_MAX_DEFAULT, Rows, TokensMax
from kb.operations.kit import ToolKit
from kb.search.entities import list_entities

Prefix = Annotated[
    str,
    Meta(
        max_length=512,
        description="How the name starts; # or @ or a scheme says which kind. Nothing is all.",
    ),
]


class SearchEntitiesInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entities are wanted."""

    prefix: Prefix = ""
    limit: Rows = 50
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT


class SearchEntitiesOutput(Struct, frozen=True, kw_only=True):
    """Entities by kind and then by name."""

    entities: tuple[KnownEntity, ...]
    more: bool
    """There are others that start so; a longer prefix or a higher limit shows them."""
    warnings: tuple[str, ...] = ()


def run(kit: ToolKit, request: SearchEntitiesInput, scope: Scope) -> SearchEntitiesOutput:
    """The first entities whose name starts with `prefix`, counted by what the scope sees.

    Tokens are estimated from the JSON of the rows.
    """
    with kit.store.read() as txn:
        found = list_entities(txn, request.prefix, scope, request.limit + 1)
    shown = found[: request.limit]
    shown = shown[: rows_fitting(shown, request.max_tokens)]
    return SearchEntitiesOutput(entities=shown, more=len(shown) < len(found))
