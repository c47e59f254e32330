"""The records of `learn`: topics, a question about one, and the two kinds of answer."""

from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from kb.model.doc import Visibility

BYTES_PER_TOKEN: Final = 4
"""Texts that no model has counted are taken to have a token for every four bytes of UTF-8."""


class Topic(Struct, frozen=True, kw_only=True):
    """A topic that is enabled, its folder found."""

    id: str
    folder: Path
    """Absolute. Each file below it is a subject."""
    title: str | None = None
    """On one line, as is the introduction."""
    introduction: str | None = None
    description: str | None = None
    learned: tuple[str, ...] = ()
    """Slugs and globs of what the system prompt holds from the start."""
    disabled: tuple[str, ...] = ()
    index: bool = True
    """Whether searches find its subjects too."""
    visibility: Visibility = "private"
    """Who may know that it exists; private is for the home's own user."""
    is_strange: bool = False
    """It comes with a project that is not trusted: a prompt names it, and says no more of it."""

    @property
    def for_prompts(self) -> "Topic":
        """The topic as prompts may describe it to a model that has not asked."""
        if not self.is_strange:
            return self
        return msgspec.structs.replace(self, title=None, introduction=None, description=None)

    @property
    def name(self) -> str:
        """Its title, or else its id."""
        return self.title or self.id


class LearnLimits(Struct, frozen=True, kw_only=True):
    """Bounds of one answer."""

    answer_bytes_max: int
    """Of the text, as UTF-8. A first subject that is longer is cut, later ones are left out."""
    file_bytes_max: int = 1 << 20
    entries_max: int = 20_000
    """Files and folders that one topic may hold."""


class LearnInput(Struct, frozen=True, kw_only=True):
    """A question about one topic."""

    topic: Topic
    subjects: tuple[str, ...] | None
    """Slugs and globs; None asks what there is."""
    limits: LearnLimits


class LeftOut(Struct, frozen=True, kw_only=True):
    """A subject that was asked for and is not in the answer, and why."""

    subject: str
    reason: str
    failed: bool
    """It was asked for by its name, or should have been readable."""


class Learned(Struct, frozen=True, kw_only=True):
    """What a topic has to say."""

    topic: str
    """Its id."""
    subjects: tuple[str, ...]
    """The slugs that the text lists or holds, in its order."""
    text: str
    left_out: tuple[LeftOut, ...]
    warnings: tuple[str, ...]
    truncated: str | None
    """What was cut to keep the answer within its bounds."""


class LearnRefusal(Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    kind: Literal["unknown_topic", "no_match", "invalid", "unreadable"]
    message: str


class Knowledge(Struct, frozen=True, kw_only=True):
    """The part of a system prompt that tells of topics."""

    text: str
    """Empty where there is nothing to tell."""
    warnings: tuple[str, ...]
    is_cut: bool = False
    """Whether the limits left something out."""


class TopicRow(Struct, frozen=True, kw_only=True):
    """A topic as it is listed."""

    id: str
    title: str | None
    introduction: str | None
    available: int
    """Subjects that its list shows."""
    learned: int
    """Subjects that the system prompt holds."""
