"""An answer, its sentences, and the sources that they cite."""

from typing import Final, Literal

from msgspec import Struct

from kb.model.ids import ChunkId, DocId
from kb.model.search import location_of

NOT_SAID: Final = "the sources do not say"
NOTHING_FOUND: Final = "nothing was found that could answer this"
UNSUPPORTED: Final = "[unsupported]"

AnswerKind = Literal["synthesis", "extracts"]
"""A text by a language model, or sentences quoted from the sources."""


class Sentence(Struct, frozen=True, kw_only=True):
    """A sentence of an answer, without its citations."""

    text: str
    citations: tuple[int, ...]
    """The numbers of its sources; all of them exist."""
    supported: bool
    """Whether the cited sources support it; always true for an extract."""


class Source(Struct, frozen=True, kw_only=True):
    """A passage that was found, with its neighbours, and where it stands."""

    n: int
    """Its number in citations, from 1."""
    title: str
    source: str
    line: int | None
    """The 1-based line of its start; None if the source has no lines."""
    page: int | None
    locator: str | None
    """As of a hit: the cells of a workbook, or the slide."""
    doc_id: DocId
    chunk_id: ChunkId
    text: str | None = None
    """None where it was not asked for."""
    weak: bool = False
    """It hardly fits the question, and is merely the nearest there is."""

    @property
    def location(self) -> str:
        """Where it stands, as `location_of` names it."""
        return location_of(self.source, self.line, self.page, self.locator)


class Answer(Struct, frozen=True, kw_only=True):
    """What the sources say to a question, as far as that was found out."""

    query: str
    answer: str
    """All sentences, with citations as `[n]`, and `[unsupported]` after unsupported ones."""
    found: bool
    """Whether at least one sentence is supported."""
    kind: AnswerKind
    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    """All that the search found, cited or not, best first."""
    warnings: tuple[str, ...]


class RawSource(Struct, frozen=True, kw_only=True):
    """A source as it was found: its passages, joined."""

    path: str
    content: str
