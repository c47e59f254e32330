"""The system prompt's section on topics: subjects in full, and topics that can be learned."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kb.errors import SourceError, UsageError
from kb.knowledge.topics.answer import named
from kb.knowledge.topics.contents import TopicContents, read_contents
from kb.knowledge.topics.load import SubjectRequest, load
from kb.knowledge.topics.records import Knowledge, LearnLimits, Topic, TopicRow
from kb.knowledge.topics.render import harmless, tagged, topic_bullet

_LIMITS: Final = LearnLimits(answer_bytes_max=1 << 20)
_LEARNED: Final = "You know these subjects from the start:"
_TO_LEARN: Final = "These topics can be learned when they are needed:"
_HOW: Final = (
    "The `learn` tool lists the subjects of a topic and reads them to you.\n"
    "(note: a topic can have hidden subjects, which no list shows. They are read only by their\n"
    "exact name, once another text has told you of it.)"
)


def with_learned(topics: Sequence[Topic], additions: Iterable[str]) -> tuple[Topic, ...]:
    """The topics, with more subjects to be learned from the start.

    An addition is TOPIC/GLOB, where TOPIC is an id. Raises UsageError for an addition of another
    form, or if there is no such topic.
    """
    added: dict[str, tuple[str, ...]] = {}
    for addition in additions:
        name, slash, pattern = addition.partition("/")
        if not (name and slash and pattern):
            raise UsageError(
                f"{addition!r} is not of the form TOPIC/GLOB, such as project/maintainers/*"
            )
        if all(topic.id != name for topic in topics):
            raise UsageError(
                f"{addition!r}: there is no topic {name!r}; there are: {named(topics)}"
            )
        added[name] = (*added.get(name, ()), pattern)
    return tuple(
        msgspec.structs.replace(topic, learned=(*topic.learned, *added.get(topic.id, ())))
        for topic in topics
    )


def without_learned(topics: Iterable[Topic]) -> tuple[Topic, ...]:
    """The topics with nothing learned, for readers whose system prompt may not hold it."""
    return tuple(msgspec.structs.replace(topic, learned=()) for topic in topics)


def knowledge_section(
    topics: Iterable[Topic], limits: LearnLimits = _LIMITS, *, with_tool: bool = True
) -> Knowledge:
    """The section between `<knowledge>` tags: learned subjects in full, others by name.

    A topic without listed subjects is not named, and without topics the text is empty. Equal files
    and topics give equal bytes. No subject can open or close the tags. A subject for which the
    limits leave no room is left out whole, with a warning. Set `with_tool` to false for a model
    without the tool `learn`: then topics that can be learned are not named.
    """
    blocks: list[str] = []
    listed: list[str] = []
    warnings: list[str] = []
    is_cut = False
    room = limits.answer_bytes_max
    for topic in (topic.for_prompts for topic in topics):
        try:
            contents = read_contents(topic, limits.entries_max)
        except SourceError as error:
            warnings.append(f"{topic.id}: {error.reason}")
            continue
        within = msgspec.structs.replace(limits, answer_bytes_max=room)
        block, problems, block_is_cut = _learned_block(contents, within)
        is_cut = is_cut or block_is_cut
        warnings += [f"{topic.id}: {line}" for line in problems]
        if block:
            blocks.append(block)
            room -= len(block.encode())
        if with_tool and contents.available:
            listed.append(harmless(f"{topic_bullet(topic)}\n"))
    return Knowledge(text=_section(blocks, listed), warnings=tuple(warnings), is_cut=is_cut)


def _section(blocks: list[str], listed: list[str]) -> str:
    parts: list[str] = []
    if blocks:
        parts += [f"{_LEARNED}\n", *blocks]
    if listed:
        parts += [f"{_TO_LEARN}\n", "".join(listed), f"{_HOW}\n"]
    inner = "\n".join(parts)
    return f"<knowledge>\n{inner}</knowledge>\n" if parts else ""


def _learned_block(contents: TopicContents, limits: LearnLimits) -> tuple[str, list[str], bool]:
    """A topic's learned subjects in its tag, or nothing; what is missing, and why.

    The last value says whether the limits left something out.
    """
    topic = contents.topic
    learned = set(contents.learned)
    requests = [
        SubjectRequest(subject=subject, by_name=True)
        for subject in contents.subjects
        if subject.slug in learned
    ]
    description = f"{harmless(topic.description.strip())}\n\n" if topic.description else ""
    room = limits.answer_bytes_max - len(tagged("topic", topic.name, description).encode())
    limits = msgspec.structs.replace(limits, answer_bytes_max=room)
    loaded = load(topic, requests, limits, bare=False, may_cut=False)
    problems = [f"{pattern}: nothing matches it" for pattern in contents.idle]
    problems += [f"{subject.slug}: {subject.problem}" for subject in contents.blocked]
    problems += [f"{row.subject}: {row.reason}" for row in loaded.left_out]
    problems += [*loaded.warnings, *filter(None, (loaded.truncated,))]
    is_cut = loaded.truncated is not None
    if not loaded.text:
        return "", problems, is_cut
    return tagged("topic", topic.name, description + loaded.text), problems, is_cut


def topic_rows(topics: Iterable[Topic], entries_max: int) -> tuple[TopicRow, ...]:
    """Each topic with its counts. Raises Unreadable and TooLarge as `scan` does."""
    rows = []
    for topic in topics:
        contents = read_contents(topic, entries_max)
        rows.append(
            TopicRow(
                id=topic.id,
                title=topic.title,
                introduction=topic.introduction,
                available=len(contents.available),
                learned=len(contents.learned),
            )
        )
    return tuple(rows)
