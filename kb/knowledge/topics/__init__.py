"""What may be learned? Topics are folders of subjects, which an agent reads when it needs them."""

from kb.knowledge.topics.answer import answer, execute, learnable
from kb.knowledge.topics.knowledge import (
    knowledge_section,
    topic_rows,
    with_learned,
    without_learned,
)
from kb.knowledge.topics.records import (
    Knowledge,
    Learned,
    LearnInput,
    LeftOut,
    Limits,
    Refused,
    Topic,
    TopicRow,
)
from kb.knowledge.topics.resolve import resolved
from kb.knowledge.topics.scan import subject_at
from kb.knowledge.topics.shelf import is_disabled, open_shelf

__all__ = [
    "Knowledge",
    "LearnInput",
    "Learned",
    "LeftOut",
    "Limits",
    "Refused",
    "Topic",
    "TopicRow",
    "answer",
    "execute",
    "is_disabled",
    "knowledge_section",
    "learnable",
    "open_shelf",
    "resolved",
    "subject_at",
    "topic_rows",
    "with_learned",
    "without_learned",
]
