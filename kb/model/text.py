"""The results of canonicalizers and the chunker: markdown, chunks, mentions of entities."""

from typing import Final, Literal
from unicodedata import category

from msgspec import Struct

from kb.model.code import Definition
from kb.model.doc import Coverage
from kb.model.ids import ChunkId, ChunkNo, DocId, Lsid, SourceNo
from kb.model.mail import MailHead
from kb.model.sheet import SheetRows

# Controls, surrogates, line separators and paragraph separators.
_LINE_BREAKING: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


class AttachedFile(Struct, frozen=True, kw_only=True):
    """A file inside a source, which becomes a doc of its own."""

    name: str
    mime: str
    data: bytes
    key: str = ""
    """Of a record of an export: what it is known by in the next export, too."""


class Canonical(Struct, frozen=True, kw_only=True):
    """A source as markdown; equal bytes give equal markdown on every run."""

    markdown: str
    """Always has text; newlines are \\n; form feeds (\\f) separate pages, if it has pages."""
    title: str
    mime: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names that it gives itself."""
    date: str | None = None
    """The source's own date, ISO 8601, as are the two below."""
    created: str | None = None
    modified: str | None = None
    coverage: Coverage | None = None
    front_lines: int = 0
    """How many lines of the source come before the markdown: its front matter."""
    by_name: bool = False
    """Whether the markdown says no more than what the file is, as of a picture without words."""
    warnings: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """As in Doc, besides those in the text."""
    mail: MailHead | None = None
    """Of a mail: its head."""
    attachments: tuple[AttachedFile, ...] = ()
    """The files in a mail, or the records of an export; the markdown has these records, too."""
    rest: str = ""
    """Of an export: what of the markdown is in none of its records."""
    sheet_rows: tuple[SheetRows, ...] = ()
    """Of a workbook: where the rows of its tables stand."""
    definitions: tuple[Definition, ...] = ()
    """Of source code that a grammar read: what it defines, in the order of the names."""


class ChunkDraft(Struct, frozen=True, kw_only=True):
    """A chunk as the chunker cuts it, before it has ids: markdown[start:end] == text."""

    text: str
    start: int
    end: int
    heading: tuple[str, ...]
    """Titles of the headings above it, outermost first; then the first row of the table, if it
    begins in a later one."""
    page: int | None
    """1-based page of its first character; None if the source has no pages."""
    tokens: int
    """Length in the model's tokens, without title and heading path."""


EntityKind = Literal["url", "email", "hashtag", "mention"]


class Mention(Struct, frozen=True, kw_only=True):
    """An entity as it occurs in a text."""

    kind: EntityKind
    surface: str
    """As written, without trailing punctuation."""
    key: str
    """The key shared by equal entities, `kind:folded`."""


class Chunk(Struct, frozen=True, kw_only=True):
    """A chunk as it is stored."""

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
    """Hash of its indexed_text: the key of its vector."""
    tokens: int
    source_no: SourceNo
    entities: tuple[str, ...] = ()
    """Keys of the entities that it mentions."""


def escape_line_breaks(text: str) -> str:
    """A name for a model's prompt, with every character escaped that would end the line.

    A file name may contain any character; without this it could add lines to the prompt.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(char) if category(char) in _LINE_BREAKING else char for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def headings_under(title: str, heading: tuple[str, ...]) -> list[str]:
    """The headings of a path without the title, which a long heading says up to an ellipsis."""
    words = " ".join(title.split())
    return [
        part
        for part in heading
        if part != title and not (part.endswith("…") and words.startswith(part[:-1]))
    ]


def indexed_text(title: str, heading: tuple[str, ...], text: str) -> str:
    """The text that is embedded and searched: title and heading path, then the chunk's text.

    Headings equal to the title are left out.
    """
    path = " > ".join(part for part in (title, *(h for h in heading if h != title)) if part)
    return f"{path}\n{text}" if path else text
