"""What can an agent learn? Topics are folders of subjects, read when they are needed."""

from kb.knowledge.topics.answer import answer, execute, learnable
from kb.knowledge.topics.contents import is_disabled, read_contents
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
    LearnLimits,
    LearnRefusal,
    LeftOut,
    Topic,
    TopicRow,
)
from kb.knowledge.topics.resolve import resolved
from kb.knowledge.topics.scan import subject_at

__all__ = [
    "Knowledge",
    "LearnInput",
    "LearnLimits",
    "LearnRefusal",
    "Learned",
    "LeftOut",
    "Topic",
    "TopicRow",
    "answer",
    "execute",
    "is_disabled",
    "knowledge_section",
    "learnable",
    "read_contents",
    "resolved",
    "subject_at",
    "topic_rows",
    "with_learned",
    "without_learned",
]
