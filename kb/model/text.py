"""What canonicalisers and the chunker hand on: markdown, passages, mentions."""

from typing import Final, Literal
from unicodedata import category

from msgspec import Struct

from kb.model.doc import Coverage
from kb.model.ids import ChunkId, ChunkNo, DocId, Lsid, SourceNo

# Controls, halves of pairs, and what parts lines and paragraphs.
_LINE_BREAKING: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


class Canonical(Struct, frozen=True, kw_only=True):
    """What a source says, as markdown, the same bytes on every run."""

    markdown: str
    """Never empty of text; newlines are \\n; form feeds (\\f) part pages where there are any."""
    title: str
    mime: str
    tags: tuple[str, ...] = ()
    date: str | None = None
    coverage: Coverage | None = None
    front_lines: int = 0
    """Lines of the source that stand before the markdown's first: its front matter."""
    warnings: tuple[str, ...] = ()


class ChunkDraft(Struct, frozen=True, kw_only=True):
    """One cut of a canonical markdown: markdown[start:end] == text."""

    text: str
    start: int
    end: int
    heading: tuple[str, ...]
    """Titles of the headings it stands under, outermost first."""
    page: int | None
    """1-based page of its first character, where the source has pages."""
    tokens: int
    """Length in the model's tokens, without title and heading path."""


EntityKind = Literal["url", "email", "hashtag", "mention"]


class Mention(Struct, frozen=True, kw_only=True):
    """An entity as it stands in a text."""

    kind: EntityKind
    surface: str
    """As written, less trailing punctuation."""
    key: str
    """Folded form under which equal entities meet, `kind:folded`."""


class Chunk(Struct, frozen=True, kw_only=True):
    """A passage at rest."""

    chunk_id: ChunkId
    no: ChunkNo
    doc_id: DocId
    lsid: Lsid
    ordinal: int
    text: str
    start: int
    end: int
    heading: tuple[str, ...]
    page: int | None
    line: int
    """1-based line of `start` in the canonical markdown."""
    text_hash: str
    """Of indexed_text: the key under which its vector is kept."""
    tokens: int
    source_no: SourceNo
    entities: tuple[str, ...] = ()
    """Keys of what it mentions."""


def escape_line_breaks(text: str) -> str:
    """A name as a model's prompt may carry it, with whatever would end its line escaped.

    A file name may hold any character, and a line that it makes is not told from one of ours.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(char) if category(char) in _LINE_BREAKING else char for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def indexed_text(title: str, heading: tuple[str, ...], text: str) -> str:
    """The text that is embedded and searched: title and heading path in front of the passage.

    A heading that only repeats the title is said once.
    """
    path = " > ".join(part for part in (title, *(h for h in heading if h != title)) if part)
    return f"{path}\n{text}" if path else text
