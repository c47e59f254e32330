"""Read the text of a doc or a chunk, with exact offsets."""

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import NotFound, UsageError
from kb.home.open_home import OpenHome
from kb.home.spaces.each import warnings_of
from kb.model.doc import Doc, Kind, Scope
from kb.model.search import Freshness, SpaceName
from kb.model.text import Chunk
from kb.operations.budget import Counted, cut_to, estimate, share_of
from kb.operations.fields import BUDGET, MaxTokens
from kb.operations.locate import home_with, locate, open_text, text_named
from kb.operations.operation import Address, Operation, Tool
from kb.search.freshness import freshness_of
from kb.search.locators import locator_of
from kb.search.resolve import ResolvedId
from kb.store import chunks
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces

_NEIGHBOURS_DEFAULT: Final = 1
_CHARS_MAX: Final = 1 << 40
# What has another form is an entry's id, and so a doc's.
CHUNK_ID: Final = re.compile(r"c[0-9a-f]*")

Neighbours = Annotated[
    int,
    Meta(ge=0, le=5, description="For a passage: how many on either side come along; if unsaid 1."),
]
Start = Annotated[
    int, Meta(ge=0, le=_CHARS_MAX, description="For a doc: its first character wanted, from 0.")
]
End = Annotated[
    int, Meta(ge=1, le=_CHARS_MAX, description="For a doc: where to stop, before this character.")
]
PageNo = Annotated[
    int, Meta(ge=1, le=1 << 31, description="For a doc that has pages: only this one, from 1.")
]


class FetchRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which text is wanted. `start` and `end`, or `page`, go with a doc; neighbours do not."""

    id: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=4_096,
            description="A doc's or a passage's id, whole or its start; a doc's `source`, or the "
            "end of its path; or an entry's zettel_id.",
        ),
    ]
    neighbours: Neighbours | None = None
    start: Start | None = None
    end: End | None = None
    page: PageNo | None = None
    max_tokens: MaxTokens = None

    def __post_init__(self) -> None:
        """Raise ValueError where fields do not go together."""
        has_range = self.start is not None or self.end is not None
        if CHUNK_ID.fullmatch(self.id):
            if has_range or self.page is not None:
                name = "page" if self.page is not None else _first_said(self.start)
                raise ValueError(f"field `{name}` goes with a doc's id, not with a passage's")
        elif self.neighbours is not None:
            raise ValueError("field `neighbours` goes with a passage's id, not with a doc's")
        if self.page is not None and has_range:
            raise ValueError("field `page` does not go with `start` and `end`")
        if self.end is not None and self.end <= (self.start or 0):
            raise ValueError("field `end` is not after `start`")


class Rest(Struct, frozen=True, kw_only=True):
    """The arguments of the `kb_fetch` that brings a part that was left out."""

    id: str
    start: int
    end: int


class FetchedText(Struct, frozen=True, kw_only=True):
    """A text and where it stands: characters `start` to `end` of the doc's canonical markdown."""

    doc_id: str
    chunk_id: str | None
    title: str
    source: str
    kind: Kind
    mime: str
    tags: tuple[str, ...]
    date: str | None
    heading: tuple[str, ...]
    """Of the chunk that was asked for, or of the one in which the text starts."""
    page: int | None
    locator: str | None
    """Of a chunk: its cells of a workbook, as `Costs!A1:F40`, or its slide."""
    freshness: Freshness
    chars: int
    """Length of the whole doc."""
    start: int
    end: int
    text: str
    tokens: int
    counted: Counted
    truncated: str | None
    """What `max_tokens` cut, in words."""
    rest: tuple[Rest, ...]
    warnings: tuple[str, ...]


class _Text(Struct, frozen=True, kw_only=True):
    """A text to show, and the ranges that were asked for and left out."""

    start: int
    text: str
    tokens: int
    counted: Counted
    left_out: tuple[tuple[int, int], ...]
    heading: tuple[str, ...]
    page: int | None
    locator: str | None = None
    warnings: tuple[str, ...] = ()


def run(spaces: "Spaces", request: FetchRequest, scope: Scope) -> FetchedText:
    """The text that an id names for a scope, as much of it as fits `max_tokens`.

    A chunk and its neighbours are counted by the tokens that chunks have, and the nearest
    neighbours come first. A doc's text is estimated by its bytes. An older version's id brings
    the newest one, with a warning; an entry's whole id brings the entry. Of an id that several
    spaces have, the first one's text is given.

    Raises NotFound, AmbiguousId, UsageError for a page that the doc does not have, and
    StoreDamaged where the doc's file is not whole.
    """
    return _fetched(spaces, request, scope)[1]


def _fetched(spaces: "Spaces", request: FetchRequest, scope: Scope) -> tuple[OpenHome, FetchedText]:
    failed = list(spaces.failed)
    try:
        located = locate(spaces.homes, request.id, text_named(request.id, scope), failed)
    except NotFound:
        from kb.operations.doc_at import doc_at

        ident = doc_at(spaces.homes, request.id, scope, failed)
        request = msgspec.structs.replace(request, id=ident)
        located = locate(spaces.homes, ident, text_named(ident, scope), failed)
    home = home_with(spaces.homes, located)
    text = _text_of(home, request, scope)
    if warnings := warnings_of(failed, scope):
        text = msgspec.structs.replace(text, warnings=(*warnings, *text.warnings))
    return home, text


def _text_of(home: OpenHome, request: FetchRequest, scope: Scope) -> FetchedText:
    with home.store.read() as txn:
        opened = open_text(txn, request.id, home.scope(scope))
        doc, chunk = opened.doc, opened.chunk
        if chunk is not None:
            shown = _of_chunk(home, txn, doc, chunk, request)
        else:
            shown = _of_doc(home, txn, opened, request)
        freshness = freshness_of(txn, doc, home.store)
    return FetchedText(
        doc_id=doc.doc_id,
        chunk_id=chunk.chunk_id if chunk else None,
        title=doc.title,
        source=doc.source,
        kind=doc.kind,
        mime=doc.mime,
        tags=doc.tags,
        date=doc.day,
        heading=shown.heading,
        page=shown.page,
        locator=shown.locator,
        freshness=freshness,
        chars=doc.md_chars,
        start=shown.start,
        end=shown.start + len(shown.text),
        text=shown.text,
        tokens=shown.tokens,
        counted=shown.counted,
        truncated=_said(shown, request.max_tokens),
        rest=tuple(Rest(id=doc.doc_id, start=a, end=b) for a, b in shown.left_out),
        warnings=shown.warnings,
    )


def _first_said(start: int | None) -> str:
    return "start" if start is not None else "end"


def _said(shown: _Text, max_tokens: int | None) -> str | None:
    if not shown.left_out:
        return None
    parts = " and ".join(f"{start} to {end}" for start, end in shown.left_out)
    return f"characters {parts} of the doc left out: over {max_tokens} tokens; `rest` brings them"


def _of_chunk(home: OpenHome, txn: ReadTxn, doc: Doc, chunk: Chunk, request: FetchRequest) -> _Text:
    is_current = chunk.doc_id == doc.doc_id
    count = _NEIGHBOURS_DEFAULT if request.neighbours is None else request.neighbours
    row, place = around(txn, chunk, count if is_current else 0)
    first, last, tokens = nearest(row, place, request.max_tokens)
    start, end = row[first].start, row[last].end
    text = chunk.text if first == last else _markdown(home, doc)[start:end]
    text = share_of(text, tokens, request.max_tokens)
    ranges = [(row[0].start, start), (start + len(text), row[-1].end)]
    return _Text(
        start=start,
        text=text,
        tokens=tokens if request.max_tokens is None else min(tokens, request.max_tokens),
        counted="passages",
        left_out=tuple((a, b) for a, b in ranges if a < b) if is_current else (),
        heading=chunk.heading,
        page=row[first].page,
        locator=locator_of(doc, row[first], text),
        warnings=() if is_current else _stale(chunk, text),
    )


def _stale(chunk: Chunk, text: str) -> tuple[str, ...]:
    warning = "the doc has changed and waits to be cut anew; this passage is of its last version"
    if len(text) == len(chunk.text):
        return (warning,)
    return warning, f"its text is cut to {len(text)} of {len(chunk.text)} characters"


def around(txn: ReadTxn, chunk: Chunk, count: int) -> tuple[list[Chunk], int]:
    """A chunk among up to `count` neighbours on either side, and its place among them."""
    before: list[Chunk] = []
    after: list[Chunk] = []
    for row, step in ((before, -1), (after, 1)):
        for distance in range(1, count + 1):
            neighbor = chunks.at(txn, chunk.source_no, chunk.ordinal + step * distance)
            if neighbor is None:
                break
            row.append(neighbor)
    return [*reversed(before), chunk, *after], len(before)


def nearest(row: list[Chunk], place: int, max_tokens: int | None) -> tuple[int, int, int]:
    """First and last of the chunks that fit, the nearest ones, and their tokens together.

    Of two that are as near the later comes first. A side ends with what does not fit.
    """
    first = last = place
    used = row[place].tokens
    for distance in range(1, len(row)):
        for at in (place + distance, place - distance):
            if at not in (first - 1, last + 1) or not 0 <= at < len(row):
                continue
            if max_tokens is None or used + row[at].tokens <= max_tokens:
                used += row[at].tokens
                first, last = min(first, at), max(last, at)
    return first, last, used


def _of_doc(home: OpenHome, txn: ReadTxn, opened: ResolvedId, request: FetchRequest) -> _Text:
    doc = opened.doc
    markdown = _markdown(home, doc)
    start, end = _range(markdown, doc, request)
    text = cut_to(markdown[start:end], request.max_tokens)
    cut = start + len(text)
    warnings: list[str] = []
    if opened.is_older:
        warnings.append(f"this id is of an older version; the text is that of {doc.doc_id}")
    if start == len(markdown):
        warnings.append(f"the doc has {len(markdown)} characters; nothing stands at `start`")
    return _Text(
        start=start,
        text=text,
        tokens=estimate(text),
        counted="bytes",
        left_out=((cut, end),) if cut < end else (),
        heading=_heading_at(txn, doc, start),
        page=markdown.count("\f", 0, start) + 1 if doc.coverage else None,
        warnings=tuple(warnings),
    )


def _markdown(home: OpenHome, doc: Doc) -> str:
    return home.content.read(doc.md_path, doc.md_sha256).decode()


def _range(markdown: str, doc: Doc, request: FetchRequest) -> tuple[int, int]:
    if request.page is not None:
        return _page_range(markdown, doc, request.page)
    size = len(markdown)
    start = min(request.start or 0, size)
    return start, size if request.end is None else max(start, min(request.end, size))


def _page_range(markdown: str, doc: Doc, page: int) -> tuple[int, int]:
    """Where a page's text stands; form feeds part pages, and new lines around them are no text."""
    if doc.coverage is None:
        raise UsageError("field `page`: this doc has no pages; ask for `start` and `end`")
    start = 0
    for _ in range(page - 1):
        start = markdown.find("\f", start) + 1
        if not start:
            raise UsageError(
                f"field `page`: there are {markdown.count(chr(12)) + 1} pages in this doc"
            )
    stop = markdown.find("\f", start)
    stop = len(markdown) if stop < 0 else stop
    text = markdown[start:stop]
    start += len(text) - len(text.lstrip("\n"))
    return start, start + len(text.strip("\n"))


def _heading_at(txn: ReadTxn, doc: Doc, start: int) -> tuple[str, ...]:
    """The heading path of the chunk that a character stands in; empty before the doc is cut."""
    numbers = chunks.numbers_of(txn, doc.source_no)

    def start_of(place: int) -> int:
        chunk = chunks.get(txn, numbers[place])
        return chunk.start if chunk else 0

    place = bisect_right(range(len(numbers)), start, key=start_of) - 1
    chunk = chunks.get(txn, numbers[max(place, 0)]) if numbers else None
    return chunk.heading if chunk is not None and chunk.doc_id == doc.doc_id else ()


class TextInSpace(FetchedText, frozen=True, kw_only=True):
    """A text that an id names, and where it is."""

    space: SpaceName | None


def _run_address(spaces: "Spaces", request: FetchRequest, scope: Scope) -> TextInSpace:
    home, text = _fetched(spaces, request, scope)
    return TextInSpace(**msgspec.structs.asdict(text), space=home.name)


def _doc_only(spaces: "Spaces", request: FetchRequest, scope: Scope) -> TextInSpace:
    text = _run_address(spaces, request, scope)
    if text.chunk_id is not None:
        raise NotFound(id=request.id)
    return text


def _chunk_only(spaces: "Spaces", request: FetchRequest, scope: Scope) -> TextInSpace:
    text = _run_address(spaces, request, scope)
    if text.chunk_id is None:
        raise NotFound(id=request.id)
    return text


_BOUNDS: Final = {"max_tokens": BUDGET}

FETCH: Final = Operation(
    name="fetch",
    summary="Read the text of a doc or a passage.",
    request=FetchRequest,
    results=(FetchedText,),
    run=run,
    tool=Tool(
        name="kb_fetch",
        description=(
            "Read the text of a doc or a passage by its id. Use it after kb_search when a hit "
            "is too short to answer from: a passage's id brings it with its neighbours, a doc's "
            "id, or an entry's own id, brings the doc from its start, a range of characters or "
            "one page. If the text is longer than max_tokens, `rest` holds the arguments of the "
            "next call."
        ),
        request=FetchRequest,
        output=FetchedText,
        run=run,
        bounds=_BOUNDS,
    ),
    addresses=(
        Address(
            path="/v1/docs/{id}",
            summary="Read a doc.",
            request=FetchRequest,
            result=TextInSpace,
            run=_doc_only,
            bounds=_BOUNDS,
        ),
        Address(
            path="/v1/passages/{id}",
            summary="Read a passage and its neighbours.",
            request=FetchRequest,
            result=TextInSpace,
            run=_chunk_only,
            bounds=_BOUNDS,
        ),
    ),
)
