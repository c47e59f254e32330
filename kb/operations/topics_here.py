"""Learn from the topics of one home, without opening its store."""

from pathlib import Path

from msgspec import Struct

from kb.errors import KbError, NothingToLearn, UsageError
from kb.home.app import topics_of
from kb.knowledge.topics import (
    Knowledge,
    Learned,
    LearnLimits,
    LearnRefusal,
    TopicRow,
    answer,
    knowledge_section,
    topic_rows,
    with_learned,
)
from kb.knowledge.topics.records import BYTES_PER_TOKEN
from kb.knowledge.topics.render import topic_bullet
from kb.model.config import Settings
from kb.model.doc import OPERATOR

__all__ = ["TopicList", "learn", "list_topics", "prompt_section", "topic_bullet"]


class TopicList(Struct, frozen=True, kw_only=True):
    """What can be learned here."""

    topics: tuple[TopicRow, ...]


def list_topics(home: Path, settings: Settings, max_tokens: int) -> TopicList:
    """Every topic of a home. Raises ConfigError where a topic's folder is not there."""
    limits = _limits(max_tokens)
    return TopicList(topics=topic_rows(topics_of(home, settings, OPERATOR), limits.entries_max))


def learn(
    home: Path, settings: Settings, topic: str, subjects: tuple[str, ...], max_tokens: int
) -> Learned:
    """A topic's list of subjects, or the texts of those that are named.

    Raises NothingToLearn where there is no such topic or subject, UsageError for a pattern that
    means nothing, KbError where the folder cannot be read, and ConfigError as `list_topics`.
    """
    topics = topics_of(home, settings, OPERATOR)
    learned = answer(topics, topic, subjects or None, _limits(max_tokens))
    if not isinstance(learned, LearnRefusal):
        return learned
    match learned.kind:
        case "unknown_topic" | "no_match":
            raise NothingToLearn(learned.message, id="")
        case "invalid":
            raise UsageError(learned.message)
        case "unreadable":
            raise KbError(learned.message)


def prompt_section(home: Path, settings: Settings, patterns: tuple[str, ...]) -> Knowledge:
    """The section of a system prompt that tells of topics, with these subjects learned, too.

    Raises as `list_topics`, and UsageError for a subject that means nothing.
    """
    return knowledge_section(with_learned(topics_of(home, settings, OPERATOR), patterns))


def _limits(max_tokens: int) -> LearnLimits:
    return LearnLimits(answer_bytes_max=max_tokens * BYTES_PER_TOKEN)
