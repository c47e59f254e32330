"""Answers `learn`: lists the subjects of a topic, or returns their texts."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from kb.errors import SourceError
from kb.knowledge.topics.contents import TopicContents, means, read_contents
from kb.knowledge.topics.load import LoadedSubjects, SubjectRequest, load
from kb.knowledge.topics.records import (
    Learned,
    LearnInput,
    LearnLimits,
    LearnRefusal,
    LeftOut,
    Topic,
)
from kb.knowledge.topics.render import bullets
from kb.knowledge.topics.scan import Subject, composed

_PATTERNS_MAX: Final = 64
_PATTERN_CHARS_MAX: Final = 4_096
_NAMED_MAX: Final = 50
_LEFT_OUT_MAX: Final = 100
_HOW: Final = "To read any of these, call `learn` again and name them in `subjects`.\n"
_NOTHING: Final = "There is nothing to list here.\n"
_AVAILABLE: Final = "Available subjects"
_NO_MATCH: Final = "nothing matches it"
_LEARNED: Final = "Already learned (in system prompt)"


def answer(
    topics: Sequence[Topic], name: str, subjects: Sequence[str] | None, limits: LearnLimits
) -> Learned | LearnRefusal:
    """The subjects of a topic, named by id or title, or their texts; see `execute`."""
    topic = find_topic(topics, name)
    if topic is None:
        message = f"there is no topic {name!r}; there are: {named(topics)}"
        return LearnRefusal(kind="unknown_topic", message=message)
    patterns = tuple(subjects) if subjects is not None else None
    return execute(LearnInput(topic=topic, subjects=patterns, limits=limits))


def find_topic(topics: Iterable[Topic], name: str) -> Topic | None:
    """The topic with this id, or else the first with this title, whatever its case."""
    candidates = tuple(topics)
    title = " ".join(name.split()).casefold()
    by_id = (topic for topic in candidates if topic.id == name)
    by_title = (topic for topic in candidates if topic.title and topic.title.casefold() == title)
    return next(by_id, None) or next(by_title, None)


def named(topics: Sequence[Topic]) -> str:
    """Ids and titles in words, the first 50 topics."""
    shown = [
        f"{topic.id} ({topic.title})" if topic.title else topic.id for topic in topics[:_NAMED_MAX]
    ]
    others = f" and {len(topics) - _NAMED_MAX} more" if len(topics) > _NAMED_MAX else ""
    return f"{', '.join(shown)}{others}" or "none"


def execute(request: LearnInput) -> Learned | LearnRefusal:
    """List a topic's subjects, or return their texts. Reads files, and depends on nothing else.

    A single subject that is requested by its slug comes without tags; several subjects, or those of
    a glob, come in tags. Subjects that the system prompt holds are never returned again.
    """
    patterns = tuple(composed(text) for text in request.subjects or () if text.strip())
    if len(patterns) > _PATTERNS_MAX or any(len(text) > _PATTERN_CHARS_MAX for text in patterns):
        message = (
            f"at most {_PATTERNS_MAX} subjects of {_PATTERN_CHARS_MAX} characters can be named"
        )
        return LearnRefusal(kind="invalid", message=message)
    try:
        contents = read_contents(request.topic, request.limits.entries_max)
    except SourceError as error:
        return LearnRefusal(kind="unreadable", message=f"topic {request.topic.id}: {error.reason}")
    return (
        _read(contents, patterns, request.limits) if patterns else _list(contents, request.limits)
    )


def _list(contents: TopicContents, limits: LearnLimits) -> Learned:
    topic = contents.topic
    opening = f"# Topic: {topic.name}\n"
    if topic.description:
        opening += f"\n{topic.description.strip()}\n"
    room = limits.answer_bytes_max - len(opening.encode())
    available = _fitting(contents.available, room)
    learned = _fitting(contents.learned, room - sum(map(_row_bytes, available)))
    parts = [opening]
    if available:
        parts += [bullets(_AVAILABLE, available), _HOW]
    if learned:
        parts.append(bullets(_LEARNED, learned))
    problems = tuple(
        _problem(subject, named=False) for subject in contents.subjects if _is_reported(subject)
    )
    missing = len(contents.available) + len(contents.learned) - len(available) - len(learned)
    return Learned(
        topic=topic.id,
        subjects=available,
        text="\n".join(parts if len(parts) > 1 else (opening, _NOTHING)),
        left_out=problems[:_LEFT_OUT_MAX],
        warnings=_more_left_out(problems),
        truncated=f"{missing} subjects are not listed; ask for them by globs" if missing else None,
    )


def _more_left_out(left_out: tuple[LeftOut, ...]) -> tuple[str, ...]:
    others = len(left_out) - _LEFT_OUT_MAX
    return (f"{others} more subjects are left out for reasons of their own",) if others > 0 else ()


def _is_reported(subject: Subject) -> bool:
    return subject.problem is not None and not subject.is_hidden


def _fitting(slugs: tuple[str, ...], room: int) -> tuple[str, ...]:
    """As many as fit, in order, and always the first one."""
    for place, slug in enumerate(slugs):
        room -= _row_bytes(slug)
        if room < 0:
            return slugs[: max(place, 1)]
    return slugs


def _row_bytes(slug: str) -> int:
    return len(slug.encode()) + len("- \n")


class _Matched(Struct, kw_only=True):
    """The matches of some patterns, in the order of the patterns and then of the slugs."""

    requests: list[SubjectRequest]
    already_learned: list[str]
    """Subjects that are learned already, and were requested by name."""
    already_learned_by_glob: list[str]
    left_out: list[LeftOut]

    @property
    def is_empty(self) -> bool:
        """Whether no pattern matches anything."""
        is_idle = all(row.reason == _NO_MATCH for row in self.left_out)
        return is_idle and not (
            self.requests or self.already_learned or self.already_learned_by_glob
        )


def _read(
    contents: TopicContents, patterns: tuple[str, ...], limits: LearnLimits
) -> Learned | LearnRefusal:
    matched = _matched(contents, patterns)
    topic = contents.topic
    if matched.is_empty:
        quoted = ", ".join(map(repr, patterns))
        message = f"nothing in topic {topic.id} matches {quoted}; without subjects it is listed"
        return LearnRefusal(kind="no_match", message=message)
    is_single = len(patterns) == 1 and [request.subject.slug for request in matched.requests] == [
        *patterns
    ]
    loaded = load(topic, matched.requests, limits, bare=is_single, may_cut=True)
    return _combined(topic, matched, loaded)


def _combined(topic: Topic, matched: _Matched, loaded: LoadedSubjects) -> Learned:
    already_learned = matched.already_learned
    if not (already_learned or matched.requests or matched.left_out):
        already_learned = matched.already_learned_by_glob
    notice = bullets(_LEARNED, already_learned)
    # Subjects that were requested by name come first, in case there are too many.
    left_out = tuple(sorted((*matched.left_out, *loaded.left_out), key=lambda row: not row.failed))
    gap = "\n" if notice and loaded.text else ""
    return Learned(
        topic=topic.id,
        subjects=loaded.subjects,
        text=f"{loaded.text}{gap}{notice}",
        left_out=left_out[:_LEFT_OUT_MAX],
        warnings=(*loaded.warnings, *_more_left_out(left_out)),
        truncated=loaded.truncated,
    )


def _matched(contents: TopicContents, patterns: tuple[str, ...]) -> _Matched:
    matched = _Matched(requests=[], already_learned=[], already_learned_by_glob=[], left_out=[])
    learned = set(contents.learned)
    done: set[str] = set()
    for pattern in dict.fromkeys(patterns):
        subjects = [subject for subject in contents.subjects if means(pattern, subject)]
        if not subjects:
            matched.left_out.append(_unmatched(contents, pattern))
        for subject in subjects:
            if subject.slug in done:
                continue
            done.add(subject.slug)
            by_name = subject.slug in patterns
            if subject.problem is not None:
                matched.left_out.append(_problem(subject, named=by_name))
            elif subject.slug in learned:
                (matched.already_learned if by_name else matched.already_learned_by_glob).append(
                    subject.slug
                )
            else:
                matched.requests.append(SubjectRequest(subject=subject, by_name=by_name))
    return matched


def _unmatched(contents: TopicContents, pattern: str) -> LeftOut:
    """A pattern without a match; the reason, if it leads below a folder that is not scanned."""
    for subject in contents.subjects:
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
    """Topics with subjects that are not learned yet, hidden subjects included.

    A folder that cannot be scanned counts as one without subjects.
    """
    return tuple(topic for topic in topics if _has_more(topic, entries_max))


def _has_more(topic: Topic, entries_max: int) -> bool:
    try:
        contents = read_contents(topic, entries_max)
    except SourceError:
        return False
    return sum(subject.problem is None for subject in contents.subjects) > len(contents.learned)
