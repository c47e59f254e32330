"""List what can be learned."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.model.doc import Scope
from kb.operations.operation import Address, Operation

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces


class TopicsRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every topic is wanted."""


class ListedTopic(Struct, frozen=True, kw_only=True):
    """A topic that can be learned."""

    id: str
    title: str | None
    introduction: str | None


class Topics(Struct, frozen=True, kw_only=True):
    """What can be learned; `learn` reads it."""

    topics: tuple[ListedTopic, ...]


def run(spaces: "Spaces", request: TopicsRequest, scope: Scope) -> Topics:  # noqa: ARG001  all
    """The topics that a scope can learn. Raises ConfigError where it can be told of none."""
    rows = (
        ListedTopic(id=topic.id, title=topic.title, introduction=topic.introduction)
        for topic in spaces.topics(scope)
    )
    return Topics(topics=tuple(rows))


TOPICS: Final = Operation(
    name="topics",
    summary="List what can be learned.",
    request=TopicsRequest,
    results=(Topics,),
    run=run,
    addresses=(
        Address(
            path="/v1/topics",
            summary="List what can be learned.",
            request=TopicsRequest,
            result=Topics,
            tells_spaces=False,
            by_space=False,
            run=run,
        ),
    ),
)
