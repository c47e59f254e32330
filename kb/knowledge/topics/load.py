"""Reads subjects one after another, until the answer has reached its limit."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kb.errors import SourceError, Unreadable, Unsupported
from kb.knowledge.topics.records import LearnLimits, LeftOut, Topic
from kb.knowledge.topics.render import fenced, harmless, start_of, tagged
from kb.knowledge.topics.scan import Subject, extension_of
from kb.store.content.inside import read_inside

_BINARY_LOOK_BYTES: Final = 8_192
_NAMED_MAX: Final = 10


class SubjectRequest(Struct, frozen=True, kw_only=True):
    """A subject to read, without problems."""

    subject: Subject
    by_name: bool
    """It was requested by its slug, so leaving it out is a failure."""


class LoadedSubjects(Struct, frozen=True, kw_only=True):
    """The texts of some subjects, in the order of the requests."""

    subjects: tuple[str, ...] = ()
    """The slugs of the subjects in the text."""
    text: str = ""
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()
    truncated: str | None = None


def load(
    topic: Topic,
    requests: Sequence[SubjectRequest],
    limits: LearnLimits,
    *,
    bare: bool,
    may_cut: bool,
) -> LoadedSubjects:
    """Read subjects and put tags around each; with `bare`, for a single subject, no tags.

    With `may_cut` a first subject over the limit is cut. The first subject that does not fit ends
    the answer.
    """
    slugs: list[str] = []
    blocks: list[str] = []
    left_out: list[LeftOut] = []
    warnings: list[str] = []
    truncated: list[str] = []
    room = limits.answer_bytes_max
    for place, request in enumerate(requests):
        slug = request.subject.slug
        try:
            text, is_whole = _read(topic, request.subject, limits.file_bytes_max)
        except SourceError as error:
            failed = request.by_name or isinstance(error, Unreadable)
            left_out.append(LeftOut(subject=slug, reason=error.reason, failed=failed))
            continue
        text = text if bare else harmless(text)
        block = _block(request.subject, text, bare=bare)
        if _bytes(block) > room:
            if blocks or not may_cut:
                truncated.append(_over([rest.subject.slug for rest in requests[place:]]))
                break
            start = start_of(text, room - (_bytes(block) - _bytes(text)))
            block = _block(request.subject, start, bare=bare)
            truncated.append(f"{slug} is cut to {len(start)} of {len(text)} characters")
        if not is_whole:
            warnings.append(f"{slug}: not UTF-8; what cannot be read is shown as U+FFFD")
        slugs.append(slug)
        blocks.append(block)
        room -= _bytes(block)
    return LoadedSubjects(
        subjects=tuple(slugs),
        text="\n".join(blocks),
        left_out=tuple(left_out),
        warnings=tuple(warnings),
        truncated="; ".join(truncated) or None,
    )


def _read(topic: Topic, subject: Subject, bytes_max: int) -> tuple[str, bool]:
    """The text, and whether all of it was UTF-8. Raises SourceError."""
    data = read_inside(topic.folder, subject.path, bytes_max)
    if b"\0" in data[:_BINARY_LOOK_BYTES]:
        raise Unsupported("skipped, because it is binary", source=subject.slug)
    try:
        return data.decode("utf-8-sig"), True
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", "replace"), False


def _block(subject: Subject, text: str, *, bare: bool) -> str:
    body = fenced(text, extension_of(subject.path))
    return body if bare else tagged("subject", subject.slug, body)


def _bytes(text: str) -> int:
    return len(text.encode())


def _over(slugs: list[str]) -> str:
    others = len(slugs) - _NAMED_MAX
    more = f" and {others} more" if others > 0 else ""
    return f"left out for length: {', '.join(slugs[:_NAMED_MAX])}{more}; ask for them by name"
