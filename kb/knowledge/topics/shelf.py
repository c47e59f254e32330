"""What a topic holds: its subjects but the disabled, and which of them are learned already."""

from collections.abc import Iterable

from msgspec import Struct

from kb.knowledge.topics.glob import matches
from kb.knowledge.topics.records import Topic
from kb.knowledge.topics.scan import Subject, composed, scan


class Shelf(Struct, frozen=True, kw_only=True):
    """A topic as it lies on the disk now."""

    topic: Topic
    subjects: tuple[Subject, ...]
    """By slug, without those that are disabled."""
    learned: tuple[str, ...]
    """Slugs of those that the system prompt holds."""
    blocked: tuple[Subject, ...]
    """Those that it should hold, but for a problem."""
    idle: tuple[str, ...]
    """Patterns of `learned` that mean nothing in the folder, disabled or not."""

    @property
    def available(self) -> tuple[str, ...]:
        """Slugs that a list shows: not hidden, not learned, without a problem."""
        learned = set(self.learned)
        return tuple(
            subject.slug
            for subject in self.subjects
            if not (subject.is_hidden or subject.problem or subject.slug in learned)
        )


def open_shelf(topic: Topic, entries_max: int) -> Shelf:
    """Look a topic's folder through. Raises Unreadable and TooLarge as `scan` does."""
    found = scan(topic.folder, entries_max)
    present = tuple(s for s in found if not is_disabled(topic.disabled, s))
    patterns = tuple(map(composed, topic.learned))
    meant = [s for s in present if any(means(p, s) for p in patterns)]
    return Shelf(
        topic=topic,
        subjects=present,
        learned=tuple(s.slug for s in meant if s.problem is None),
        blocked=tuple(s for s in meant if s.problem is not None),
        idle=tuple(p for p in patterns if not any(means(p, s) for s in found)),
    )


def means(pattern: str, subject: Subject) -> bool:
    """Whether a slug or glob means a subject; a hidden one only by its slug."""
    if subject.slug == pattern:
        return True
    return not subject.is_hidden and matches(pattern, subject.slug)


def is_disabled(patterns: Iterable[str], subject: Subject) -> bool:
    """Whether one of some slugs and globs keeps a subject out, hidden or not."""
    disabled = map(composed, patterns)
    return any(one == subject.slug or matches(one, subject.slug) for one in disabled)
