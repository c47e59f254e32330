"""Search requests and their results."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from kb.model.doc import Kind, PackPart
from kb.model.file_kinds import FileKind
from kb.model.ids import ChunkId, DocId
from kb.model.mail import MailHead
from kb.model.text import EntityKind

SearchMode = Literal["hybrid", "lexical", "dense"]
Freshness = Literal["fresh", "changed", "gone", "unknown"]
WantedKind = Literal[Kind, FileKind]
"""A kind of source, or of file by its format."""
SpaceName = Literal["user", "project", "home"]
"""Whose store it is; `home` is one that was named."""

NOTHING_HERE: Final = "there are no docs to search"
"""The warning of an answer where nothing could be found."""


_Words = Annotated[tuple[str, ...], Meta(max_length=1_000)]
_Idents = Annotated[tuple[DocId, ...], Meta(max_length=1_000)]
_Kinds = Annotated[tuple[WantedKind, ...], Meta(max_length=1_000)]


_Person = Annotated[str, Meta(min_length=1, max_length=200)]
DATE_FORM: Final = (
    "a date is written as 2026-11-22, 2026-11 or 2026, or as yesterday, monday, last week, "
    "last 7 days, 3 days ago or 7d"
)
Date = Annotated[str, Meta(max_length=40)]
"""A date, or words for one, which `kb.model.days` reads."""


CURSOR_PATTERN: Final = r"^\d{1,5}(\.[0-9a-f]{16}){0,2}$"
TRANSACTION_FORM: Final = "at_least takes the `transaction` that a write answered"
CURSOR_FORM: Final = "a cursor is the next_cursor of an answer to the same query"


class Filters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs are wanted; a doc passes that meets every one of these."""

    tags: Annotated[
        _Words,
        Meta(
            description="Only docs that have all of these tags, or tags below them, as a/b is.",
            extra={"parameter": "tag"},
        ),
    ] = ()
    kinds: Annotated[
        _Kinds,
        Meta(
            description="Only docs of one of these kinds, of sources or of files.",
            extra={"parameter": "kind"},
        ),
    ] = ()
    doc_ids: Annotated[
        _Idents, Meta(description="Only these docs, by id or path.", extra={"parameter": "doc"})
    ] = ()
    packs: Annotated[
        _Words,
        Meta(
            description="Only docs of one of these packs, by id or selector as kb_pack_list says "
            "it.",
            extra={"parameter": "pack", "help": "Only docs of these packs, by id or selector."},
        ),
    ] = ()
    sources: Annotated[
        _Words,
        Meta(
            description="Only docs from one of these files, folders or addresses, or from below "
            "it, as `source` says where a doc is from.",
            extra={
                "parameter": "source",
                "help": "Only docs from one of these files, folders or addresses, or from below "
                "it.",
            },
        ),
    ] = ()

    site_versions: Annotated[
        _Words,
        Meta(
            description="Only pages of these versions of their site: v2, 3.11, latest.",
            extra={
                "parameter": "version",
                "help": "Only pages of one of these versions of a site, as its addresses name "
                "them: v2, 3.11, latest.",
            },
        ),
    ] = ()

    since: Annotated[
        Date | None,
        Meta(
            description="Only docs of this day, month, year or later: 2026-11, last week.",
            extra={
                "expects": DATE_FORM,
                "help": "Only docs of this day, month or year, or later: by their own date, or "
                "else by when they were last changed. Also as `last week`, `3 days ago` or `7d`.",
            },
        ),
    ] = None
    until: Annotated[
        Date | None,
        Meta(
            description="Only docs of this day, month or year, or earlier.",
            extra={"expects": DATE_FORM},
        ),
    ] = None

    sender: Annotated[
        _Person | None,
        Meta(
            description="Only mails from this person: a name, an address, or a part of one; and "
            "what is attached to them.",
            extra={"parameter": "from"},
        ),
    ] = None
    recipient: Annotated[
        _Person | None,
        Meta(
            description="Only mails to this person (To or Cc), and what is attached to them.",
            extra={"parameter": "to"},
        ),
    ] = None

    linked_to: Annotated[
        _Idents,
        Meta(
            description="Only docs that link to these.",
            extra={"help": "Only docs that link to one of these docs."},
        ),
    ] = ()
    links_from: Annotated[
        _Idents,
        Meta(
            description="Only docs that these link to.",
            extra={"help": "Only docs that one of these docs links to."},
        ),
    ] = ()

    @property
    def filters(self) -> "Filters":
        """These alone, of a request that has more."""
        return Filters(**{name: getattr(self, name) for name in Filters.__struct_fields__})

    @property
    def without(self) -> tuple["Filters", ...]:
        """What a query leaves out: no doc passes that meets one of these."""
        return ()


NO_FILTERS: Final = Filters()


class SearchRequest(Filters, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query and its limits. Who asks is not part of it."""

    query: Annotated[
        str,
        Meta(
            description='A question, or words that passages should hold. `"a phrase"` must be '
            "there, `-word` must not; filters narrow, as `title:x` or `-tag:x`.",
            extra={"parameter": "q"},
        ),
    ]
    k: Annotated[int, Meta(ge=1, le=10_000, description="How many passages are wanted.")] = 10
    cursor: Annotated[
        Annotated[str, Meta(pattern=CURSOR_PATTERN, max_length=40)] | None,
        Meta(
            description="The next_cursor of the page before.",
            extra={
                "expects": CURSOR_FORM,
                "help": "Go on after a page: the next_cursor that it had.",
            },
        ),
    ] = None
    mode: Annotated[
        SearchMode, Meta(description="By words and meaning (hybrid), or by one of them alone.")
    ] = "hybrid"
    with_neighbors: Annotated[
        bool,
        Meta(
            description="Let the docs that a pack's doc links to follow the hits, each with "
            "`via`: the hit that brought it."
        ),
    ] = False
    require_entities: Annotated[
        _Words,
        Meta(
            description="Only passages that mention all of these: a #tag, @name, address or link.",
            extra={"parameter": "require", "option": "require-entity"},
        ),
    ] = ()
    boost_entities: Annotated[
        _Words,
        Meta(
            description="Passages that mention these come earlier.",
            extra={"parameter": "boost", "option": "boost-entity"},
        ),
    ] = ()
    min_score: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Leave out hits that score less: 0.5 gives silence where nothing fits.",
        ),
    ] = 0.0
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 62)] | None,
        Meta(
            description="About how many tokens the answer may have: hits, and then the text around "
            "them, fill it. Without it each hit stands alone."
        ),
    ] = None
    sort: Annotated[
        Literal["score", "date"],
        Meta(
            description="What comes first.",
            extra={
                "help": "The best passages first, or those of the newest docs among all that fit."
            },
        ),
    ] = "score"
    verbatim: Annotated[bool, Meta(description="Take all of the query as plain text.")] = False
    rerank: Annotated[
        bool | None,
        Meta(
            description="Have the reranker order the best passages; without it, as the settings "
            "say."
        ),
    ] = None
    explain: Annotated[bool, Meta(description="Say how each score came about.")] = False
    at_least: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(
            description="Only a state that has the write whose answer said this `transaction`.",
            extra={
                "expects": TRANSACTION_FORM,
                "help": "Answer from a state that has a write: the `transaction` of its answer.",
            },
        ),
    ] = None


class Legs(Struct, frozen=True, kw_only=True):
    """A hit's place in each leg, from 1; None where the leg did not bring it."""

    lexical: int | None
    dense: int | None


class LearnCall(Struct, frozen=True, kw_only=True):
    """What loads a subject whole: `kb learn TOPIC SUBJECT`, or the tool `learn`."""

    topic: str
    """Its id."""
    subject: str
    """Its slug."""


class Via(Struct, frozen=True, kw_only=True):
    """The hit whose pack links it to another doc, and by what link."""

    doc_id: DocId
    selector: str
    """Of that hit's doc."""
    edge: str


def location_of(source: str, line: int | None, page: int | None, locator: str | None) -> str:
    """A place in a source, for people: `notes.md:12`, `paper.pdf page 3`, `talk.pptx slide 4`."""
    named = source if line is None else f"{source}:{line}"
    named = named if page is None else f"{named} page {page}"
    return named if locator is None else f"{named} {locator}"


class Snippet(Struct, frozen=True, kw_only=True):
    """The sentence of a hit that shows best why it was found."""

    text: str
    start: int
    """In the hit's text."""
    end: int


class Hit(Struct, frozen=True, kw_only=True):
    """One passage found. Raw scores of a leg are never given out."""

    rank: int
    score: float
    """How well it fits the query, from 0 to 1; comparable between queries. 0.5 and more fits. It
    falls along the ranking: a hit has at most the score of the hit before it."""
    chunk_id: ChunkId
    doc_id: DocId
    title: str
    source: str
    kind: Kind
    tags: tuple[str, ...]
    heading: tuple[str, ...]
    text: str
    start: int
    end: int
    page: int | None
    line: int | None
    """1-based line of `start` in the source; None where the source has no lines of its own."""
    freshness: Freshness
    legs: Legs
    locator: str | None = None
    """Where it stands in a file that has no pages: the cells of a workbook, as `Costs!A1:F40`,
    `slide 3`, or `at 0:27:18` in subtitles."""
    learn: LearnCall | None = None
    """Of a topic's subject: what loads it whole."""
    source_space: SpaceName | None = None
    """Where it was found; None of a store that is asked alone, which knows no others."""
    zettel_id: str | None = None
    """Of an entry: its own id."""
    date: str | None = None
    """The doc's own date, else when its source was last changed; ISO 8601."""
    pack: PackPart | None = None
    """Of a pack's doc: which pack, and its name in it."""
    weak: bool = False
    """It hardly fits the question, and is merely the nearest there is."""
    mail: MailHead | None = None
    """Of a mail or an attachment: who wrote it, and the first ten that it is to."""
    ocr: bool = False
    """Some of it was recognised in a picture (OCR), and may have wrong letters."""
    via: Via | None = None
    """Of a neighbour, which matches nothing itself: the hit that brought it."""
    site_version: str | None = None
    """Of a page: the version of its site that its address names."""
    explain: dict[str, int | float | str] | None = None
    snippet: Snippet | None = None
    """None where there was no query, and where the text is given alone, to agents."""

    @property
    def location(self) -> str:
        """Where it stands, as `location_of` names it."""
        return location_of(self.source, self.line, self.page, self.locator)


class EntityAlignment(Struct, frozen=True, kw_only=True):
    """Whether an entity that the query names appears in what was found."""

    entity: str
    kind: str
    known: bool
    """A chunk that the caller may see mentions it."""
    in_hits: int


class KnownEntity(Struct, frozen=True, kw_only=True):
    """An entity that passages mention, as far as the caller may see them."""

    kind: EntityKind
    surface: str
    """As the first of these chunks writes it."""
    passages: int
    docs: int


class SearchResult(Struct, frozen=True, kw_only=True):
    """The answer: same request, same store, same scope, same bytes."""

    query: str
    mode: SearchMode
    hits: tuple[Hit, ...]
    entity_alignment: tuple[EntityAlignment, ...]
    warnings: tuple[str, ...]
    next_cursor: str | None = None
    """What brings the next page, as `cursor` of the same request; None where no hit is left."""
    truncated: str | None = None
    """What a token budget cut, in words."""

    def __iter__(self) -> Iterator[Hit]:
        """The hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """How many hits are in this answer."""
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        """One of the hits."""
        return self.hits[place]
