"""The answer to a question about a topic: what there is, or what some subjects say."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from kb.errors import SourceError
from kb.knowledge.topics.load import Loaded, Wanted, load
from kb.knowledge.topics.records import Learned, LearnInput, LeftOut, Limits, Refused, Topic
from kb.knowledge.topics.render import bullets
from kb.knowledge.topics.scan import Subject, composed
from kb.knowledge.topics.shelf import Shelf, means, open_shelf

_PATTERNS_MAX: Final = 64
_PATTERN_CHARS_MAX: Final = 4_096
_NAMED_MAX: Final = 50
_LEFT_OUT_MAX: Final = 100
_HOW: Final = "To read any of these, call `learn` again and name them in `subjects`.\n"
_NOTHING: Final = "There is nothing to list here.\n"
_AVAILABLE: Final = "Available subjects"
_NO_MATCH: Final = "nothing matches it"
_KNOWN: Final = "Already learned (in system prompt)"


def answer(
    topics: Sequence[Topic], name: str, subjects: Sequence[str] | None, limits: Limits
) -> Learned | Refused:
    """What a topic, named by id or title, has to say; see `execute`."""
    topic = find_topic(topics, name)
    if topic is None:
        said = f"there is no topic {name!r}; there are: {named(topics)}"
        return Refused(kind="unknown_topic", message=said)
    asked = tuple(subjects) if subjects is not None else None
    return execute(LearnInput(topic=topic, subjects=asked, limits=limits))


def find_topic(topics: Iterable[Topic], name: str) -> Topic | None:
    """The topic with this id, or else the first with this title, whatever its case."""
    known = tuple(topics)
    title = " ".join(name.split()).casefold()
    by_id = (topic for topic in known if topic.id == name)
    by_title = (topic for topic in known if topic.title and topic.title.casefold() == title)
    return next(by_id, None) or next(by_title, None)


def named(topics: Sequence[Topic]) -> str:
    """Ids and titles in words, the first 50 of them."""
    shown = [f"{one.id} ({one.title})" if one.title else one.id for one in topics[:_NAMED_MAX]]
    others = f" and {len(topics) - _NAMED_MAX} more" if len(topics) > _NAMED_MAX else ""
    return f"{', '.join(shown)}{others}" or "none"


def execute(asked: LearnInput) -> Learned | Refused:
    """List a topic's subjects, or give their texts. Reads files, and depends on nothing else.

    One subject that is asked for by its slug comes as it is, several or a glob's come in tags.
    What the system prompt holds is never given again.
    """
    patterns = tuple(composed(one) for one in asked.subjects or () if one.strip())
    if len(patterns) > _PATTERNS_MAX or any(len(one) > _PATTERN_CHARS_MAX for one in patterns):
        said = f"at most {_PATTERNS_MAX} subjects of {_PATTERN_CHARS_MAX} characters can be named"
        return Refused(kind="invalid", message=said)
    try:
        shelf = open_shelf(asked.topic, asked.limits.entries_max)
    except SourceError as error:
        return Refused(kind="unreadable", message=f"topic {asked.topic.id}: {error.reason}")
    return _given(shelf, patterns, asked.limits) if patterns else _listed(shelf, asked.limits)


def _listed(shelf: Shelf, limits: Limits) -> Learned:
    topic = shelf.topic
    opening = f"# Topic: {topic.name}\n"
    if topic.description:
        opening += f"\n{topic.description.strip()}\n"
    room = limits.answer_bytes_max - len(opening.encode())
    available = _fitting(shelf.available, room)
    learned = _fitting(shelf.learned, room - sum(map(_row_bytes, available)))
    parts = [opening]
    if available:
        parts += [bullets(_AVAILABLE, available), _HOW]
    if learned:
        parts.append(bullets(_KNOWN, learned))
    problems = tuple(_problem(one, named=False) for one in shelf.subjects if _is_said(one))
    missing = len(shelf.available) + len(shelf.learned) - len(available) - len(learned)
    return Learned(
        topic=topic.id,
        subjects=available,
        text="\n".join(parts if len(parts) > 1 else (opening, _NOTHING)),
        left_out=problems[:_LEFT_OUT_MAX],
        warnings=_unsaid(problems),
        truncated=f"{missing} subjects are not listed; ask for them by globs" if missing else None,
    )


def _unsaid(left_out: tuple[LeftOut, ...]) -> tuple[str, ...]:
    others = len(left_out) - _LEFT_OUT_MAX
    return (f"{others} more subjects are left out for reasons of their own",) if others > 0 else ()


def _is_said(subject: Subject) -> bool:
    return subject.problem is not None and not subject.is_hidden


def _fitting(slugs: tuple[str, ...], room: int) -> tuple[str, ...]:
    """As many as fit, in order, and the first one in any case."""
    for place, slug in enumerate(slugs):
        room -= _row_bytes(slug)
        if room < 0:
            return slugs[: max(place, 1)]
    return slugs


def _row_bytes(slug: str) -> int:
    return len(slug.encode()) + len("- \n")


class _Chosen(Struct, kw_only=True):
    """What some patterns mean, in the order of the patterns and then of the slugs."""

    wanted: list[Wanted]
    known: list[str]
    """Learned already, and asked for by name."""
    known_by_glob: list[str]
    left_out: list[LeftOut]

    @property
    def is_empty(self) -> bool:
        """None of the patterns means anything."""
        is_idle = all(one.reason == _NO_MATCH for one in self.left_out)
        return is_idle and not (self.wanted or self.known or self.known_by_glob)


def _given(shelf: Shelf, patterns: tuple[str, ...], limits: Limits) -> Learned | Refused:
    chosen = _chosen(shelf, patterns)
    topic = shelf.topic
    if chosen.is_empty:
        wished = ", ".join(map(repr, patterns))
        said = f"nothing in topic {topic.id} matches {wished}; without subjects it is listed"
        return Refused(kind="no_match", message=said)
    is_single = len(patterns) == 1 and [w.subject.slug for w in chosen.wanted] == [*patterns]
    loaded = load(topic, chosen.wanted, limits, bare=is_single, may_cut=True)
    return _put_together(topic, chosen, loaded)


def _put_together(topic: Topic, chosen: _Chosen, loaded: Loaded) -> Learned:
    known = chosen.known
    if not (known or chosen.wanted or chosen.left_out):
        known = chosen.known_by_glob
    notice = bullets(_KNOWN, known)
    # What was asked for by name comes first, should there be too many.
    left_out = tuple(sorted((*chosen.left_out, *loaded.left_out), key=lambda one: not one.failed))
    gap = "\n" if notice and loaded.text else ""
    return Learned(
        topic=topic.id,
        subjects=loaded.subjects,
        text=f"{loaded.text}{gap}{notice}",
        left_out=left_out[:_LEFT_OUT_MAX],
        warnings=(*loaded.warnings, *_unsaid(left_out)),
        truncated=loaded.truncated,
    )


def _chosen(shelf: Shelf, patterns: tuple[str, ...]) -> _Chosen:
    chosen = _Chosen(wanted=[], known=[], known_by_glob=[], left_out=[])
    learned = set(shelf.learned)
    done: set[str] = set()
    for pattern in dict.fromkeys(patterns):
        meant = [subject for subject in shelf.subjects if means(pattern, subject)]
        if not meant:
            chosen.left_out.append(_unmatched(shelf, pattern))
        for subject in meant:
            if subject.slug in done:
                continue
            done.add(subject.slug)
            by_name = subject.slug in patterns
            if subject.problem is not None:
                chosen.left_out.append(_problem(subject, named=by_name))
            elif subject.slug in learned:
                (chosen.known if by_name else chosen.known_by_glob).append(subject.slug)
            else:
                chosen.wanted.append(Wanted(subject=subject, by_name=by_name))
    return chosen


def _unmatched(shelf: Shelf, pattern: str) -> LeftOut:
    """A pattern that means nothing, and why if it leads below what is not gone into."""
    for subject in shelf.subjects:
        if subject.problem is not None and pattern.startswith(f"{subject.slug}/"):
            return LeftOut(
                subject=pattern, reason=f"{subject.slug}: {subject.problem}", failed=True
            )
    return LeftOut(subject=pattern, reason=_NO_MATCH, failed=True)


def _problem(subject: Subject, *, named: bool) -> LeftOut:
    return LeftOut(
        subject=subject.slug, reason=str(subject.problem), failed=named or subject.failed
    )


def learnable(topics: Iterable[Topic], entries_max: int) -> tuple[Topic, ...]:
    """Topics of which something can be learned still, hidden subjects included.

    A folder that cannot be looked through counts as one without subjects.
    """
    return tuple(topic for topic in topics if _has_more(topic, entries_max))


def _has_more(topic: Topic, entries_max: int) -> bool:
    try:
        shelf = open_shelf(topic, entries_max)
    except SourceError:
        return False
    return sum(one.problem is None for one in shelf.subjects) > len(shelf.learned)
