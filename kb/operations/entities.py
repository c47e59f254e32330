"""List who and what is mentioned, by how their names start."""

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from kb.model.doc import Scope
from kb.model.search import KnownEntity
from kb.operations.fields import BUDGET, ROWS, MaxTokens
from kb.operations.operation import Address, Bounds, Operation, Tool

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces


class EntitiesRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entities are wanted."""

    prefix: Annotated[
        str,
        Meta(
            description="How the name starts; # or @ or a scheme says which kind. Nothing is all."
        ),
    ] = ""
    limit: Annotated[int, Meta(ge=1, description="How many are wanted.")] = 50
    max_tokens: MaxTokens = None


class EntitiesPage(Struct, frozen=True, kw_only=True):
    """Entities by kind and then by name."""

    entities: tuple[KnownEntity, ...]
    more: bool
    """There are others that start so; a longer prefix or a higher limit shows them."""
    warnings: tuple[str, ...] = ()


def run(spaces: "Spaces", request: EntitiesRequest, scope: Scope) -> EntitiesPage:
    """The first entities whose name starts with `prefix`, counted by what the scope sees.

    The counts of spaces are added up. Tokens are estimated from the JSON of the rows. Raises a
    space's own error where none can be read.
    """
    from kb.home.spaces.each import ask_each, warnings_of
    from kb.operations.budget import rows_fitting
    from kb.operations.merge_hits import merged_entities
    from kb.search.entities import list_entities

    failed = list(spaces.failed)

    def starting(home: "OpenHome") -> tuple[KnownEntity, ...]:
        with home.store.read() as txn:
            return list_entities(txn, request.prefix, home.scope(scope), request.limit + 1)

    each = ask_each(spaces.homes, starting, failed)
    entities = list(merged_entities(rows[: request.limit] for _, rows in each))
    shown = entities[: request.limit]
    shown = shown[: rows_fitting(shown, request.max_tokens)]
    return EntitiesPage(
        entities=tuple(shown),
        more=len(shown) < len(entities) or any(len(rows) > request.limit for _, rows in each),
        warnings=warnings_of(failed, scope),
    )


def has_any(spaces: "Spaces", scope: Scope) -> bool:
    """Whether the scope sees a doc that mentions something."""
    from kb.home.spaces.each import ask_each
    from kb.search.entities import list_entities

    def first(home: "OpenHome") -> bool:
        with home.store.read() as txn:
            return bool(list_entities(txn, "", home.scope(scope), 1))

    return any(has for _, has in ask_each(spaces.homes, first, list(spaces.failed)))


_BOUNDS: Final = {
    "prefix": Bounds(meta=Meta(max_length=512)),
    "limit": ROWS,
    "max_tokens": BUDGET,
}

ENTITIES: Final = Operation(
    name="entities",
    summary="List who and what is mentioned.",
    request=EntitiesRequest,
    results=(EntitiesPage,),
    run=run,
    tool=Tool(
        name="kb_search_entities",
        description=(
            "List the links, e-mail addresses, #hashtags and @names that passages mention, by "
            "how their name starts, with how many passages and docs mention each. Use it to find "
            "the exact spelling of a name before kb_search with require_entities or "
            "boost_entities."
        ),
        request=EntitiesRequest,
        output=EntitiesPage,
        run=run,
        bounds=_BOUNDS,
        has_answers=has_any,
    ),
    addresses=(
        Address(
            path="/v1/entities",
            summary="List who and what is mentioned.",
            request=EntitiesRequest,
            result=EntitiesPage,
            tells_spaces=False,
            run=run,
            bounds=_BOUNDS,
        ),
    ),
)
