"""The records that the guide returns."""

from typing import Literal

from msgspec import Struct

from kb.model.search import SpaceName

CatalogName = SpaceName | Literal["kb"]
"""Whose entries they are; `kb` means those that ship with the program."""


class GuideChunk(Struct, frozen=True, kw_only=True):
    """A section of an entry that answers."""

    zettel_id: str
    title: str
    content: str
    score: float
    """How well it answers, at most 1; see docs/guide-threshold.md."""
    source: str
    """The entry's file, or `kb` for one that ships with the program."""


class Guidance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sections that answer, best first, or that none does. What is empty is left out of JSON."""

    found: bool
    chunks: tuple[GuideChunk, ...] = ()
    message: str | None = None
    """That nothing was found."""
    suggestion: str
    """What to do next."""
    warnings: tuple[str, ...] = ()


class SignalReceipt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Confirms that a signal was kept."""

    signal_id: str
    message: str
    """What happens next."""
    backup: str | None = None
    """The name of the backup that a checkpoint made."""
