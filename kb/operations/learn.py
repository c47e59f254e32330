"""Learn what there is to know about a topic, and what its subjects say."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import ConfigError
from kb.knowledge.topics import Learned, LearnLimits, LearnRefusal, Topic, answer, learnable
from kb.knowledge.topics.answer import named
from kb.knowledge.topics.records import BYTES_PER_TOKEN
from kb.model.doc import Scope
from kb.operations.failure import ErrorCode, Failed, failed
from kb.operations.fields import TOKENS_MAX_DEFAULT
from kb.operations.operation import Operation, Tool

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces

LIMITS: Final = LearnLimits(answer_bytes_max=TOKENS_MAX_DEFAULT * BYTES_PER_TOKEN)
_CODES: Final[dict[str, ErrorCode]] = {
    "unknown_topic": "not_found",
    "no_match": "not_found",
    "invalid": "invalid_input",
    "unreadable": "unavailable",
}

# Written out: providers keep a tool's schema between turns, so that no setting may change it.
SCHEMA: Final = msgspec.json.encode(
    {
        "type": "object",
        "properties": {
            "topic": {
                "type": "string",
                "description": "Which topic: its id, or its title.",
            },
            "subjects": {
                "type": ["string", "array", "null"],
                "description": (
                    "Which subjects to read: slugs or globs, * for one level and ** for all "
                    "below. Without it the topic's subjects are listed."
                ),
                "items": {"type": "string"},
            },
        },
        "required": ["topic"],
        "additionalProperties": False,
    },
    order="sorted",
)

Name = Annotated[str, Meta(max_length=200)]
Pattern = Annotated[str, Meta(max_length=4_096)]
Patterns = Annotated[tuple[Pattern, ...], Meta(max_length=64)]


class LearnRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic and, where they are to be read, subjects of it."""

    topic: Name
    subjects: Pattern | Patterns | None = None


def run(spaces: "Spaces", request: LearnRequest, scope: Scope) -> Learned | Failed:
    """A topic's list or the texts of subjects, within 8,000 tokens of four bytes each.

    A topic that the scope may not know of is one that is not there.
    """
    try:
        topics = spaces.topics(scope)
    except ConfigError as error:
        return failed("unavailable", str(error) if scope.operator else "topics cannot be read now")
    patterns = (request.subjects,) if isinstance(request.subjects, str) else request.subjects
    learned = answer(topics, request.topic, patterns, LIMITS)
    if isinstance(learned, LearnRefusal):
        return failed(_CODES[learned.kind], learned.message)
    return learned


def description(topics: tuple[Topic, ...]) -> str | None:
    """What the tool says of itself; None where there is nothing to learn."""
    able = [topic.for_prompts for topic in learnable(topics, LIMITS.entries_max)]
    if not able:
        return None
    return (
        "Learn what is known here about a topic. Name the topic alone to see its subjects, then "
        "name subjects to read them. Do so before work that a topic is about. "
        f"Topics: {named(able)}."
    )


LEARN: Final = Operation(
    name="learn",
    summary="Learn what is known here about a topic.",
    request=LearnRequest,
    results=(Learned,),
    run=run,
    tool=Tool(
        name="learn",
        description="Learn what is known here about a topic.",
        request=LearnRequest,
        output=Learned,
        run=run,
        schema=SCHEMA,
    ),
)
