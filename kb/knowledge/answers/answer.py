"""An answer, its sentences, and the sources that they cite."""

from typing import Final, Literal

from msgspec import Struct

from kb.model.ids import ChunkId, DocId

NOT_SAID: Final = "the sources do not say"
NOTHING_FOUND: Final = "nothing was found that could answer this"
UNSUPPORTED: Final = "[unsupported]"

AnswerKind = Literal["synthesis", "extracts"]
"""Written by a language model, or sentences of the sources as they stand there."""


class Sentence(Struct, frozen=True, kw_only=True):
    """A sentence of an answer, without its citations."""

    text: str
    citations: tuple[int, ...]
    """Numbers of sources, each of which is there."""
    supported: bool
    """Whether what it cites was found to say it; of an extract always."""


class Source(Struct, frozen=True, kw_only=True):
    """A passage that was found, with its neighbours, and where it stands."""

    n: int
    """What citations call it, from 1."""
    title: str
    source: str
    line: int | None
    """1-based, of its start; None where the source has no lines of its own."""
    page: int | None
    doc_id: DocId
    chunk_id: ChunkId
    text: str | None = None
    """None where it was not asked for."""
    weak: bool = False
    """It hardly fits the question, and is merely the nearest there is."""


class Answer(Struct, frozen=True, kw_only=True):
    """What the sources say to a question, as far as that was found out."""

    query: str
    answer: str
    """All sentences, with citations as `[n]`, and `[unsupported]` after those that are not."""
    found: bool
    """Whether at least one sentence is supported."""
    kind: AnswerKind
    sentences: tuple[Sentence, ...]
    sources: tuple[Source, ...]
    """All that were found, also those that are not cited; the best first."""
    warnings: tuple[str, ...]


class RawSource(Struct, frozen=True, kw_only=True):
    """A source as it was found: its passages, joined."""

    path: str
    content: str
