"""The contents of a topic: its enabled subjects, and which of them are learned already."""

from collections.abc import Iterable

from msgspec import Struct

from kb.knowledge.topics.glob import matches
from kb.knowledge.topics.records import Topic
from kb.knowledge.topics.scan import Subject, composed, scan


class TopicContents(Struct, frozen=True, kw_only=True):
    """A topic and its subjects as they are on the disk now."""

    topic: Topic
    subjects: tuple[Subject, ...]
    """The subjects by slug, without disabled ones."""
    learned: tuple[str, ...]
    """The slugs of subjects that the system prompt holds."""
    blocked: tuple[Subject, ...]
    """Subjects that the system prompt should hold but that have a problem."""
    idle: tuple[str, ...]
    """Patterns of `learned` that match no subject of the folder, disabled or not."""

    @property
    def available(self) -> tuple[str, ...]:
        """Slugs that a list shows: not hidden, not learned, without a problem."""
        learned = set(self.learned)
        return tuple(
            subject.slug
            for subject in self.subjects
            if not (subject.is_hidden or subject.problem or subject.slug in learned)
        )


def read_contents(topic: Topic, entries_max: int) -> TopicContents:
    """Scan a topic's folder. Raises Unreadable and TooLarge as `scan` does."""
    subjects = scan(topic.folder, entries_max)
    present = tuple(subject for subject in subjects if not is_disabled(topic.disabled, subject))
    patterns = tuple(map(composed, topic.learned))
    learned = [
        subject for subject in present if any(means(pattern, subject) for pattern in patterns)
    ]
    return TopicContents(
        topic=topic,
        subjects=present,
        learned=tuple(subject.slug for subject in learned if subject.problem is None),
        blocked=tuple(subject for subject in learned if subject.problem is not None),
        idle=tuple(
            pattern
            for pattern in patterns
            if not any(means(pattern, subject) for subject in subjects)
        ),
    )


def means(pattern: str, subject: Subject) -> bool:
    """Whether a slug or glob matches a subject; a hidden one matches only by its slug."""
    if subject.slug == pattern:
        return True
    return not subject.is_hidden and matches(pattern, subject.slug)


def is_disabled(patterns: Iterable[str], subject: Subject) -> bool:
    """Whether one of the slugs and globs disables a subject, hidden or not."""
    disabled = map(composed, patterns)
    return any(pattern == subject.slug or matches(pattern, subject.slug) for pattern in disabled)
