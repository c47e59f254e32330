"""`/v1/`: the tools, each at its own address, and what can be read by address alone."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from kb.home.spaces.answers import SpaceFacets, SpaceListing, SpaceText
from kb.home.spaces.homes import SpaceAsked
from kb.model.search import SearchResult, SpaceName
from kb.operations import HELP, LEARN, TOOLS, Tool, answer
from kb.operations.fields import NO_BUDGET, Rows, Tags
from kb.operations.help import HelpOutput, Question
from kb.operations.list_docs import Cursor, ListDocsOutput
from kb.operations.search import SearchInput
from kb.search.index import highlight_spans, terms
from kb.serve.http_content import named_in
from kb.serve.http_reply import Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Run, Served, answered, has_model, never

_ALL: Final[dict[str, Tool]] = {tool.name: tool for tool in (*TOOLS, HELP, LEARN)}

InSpace = Annotated[
    SpaceAsked, Meta(description="Which of the spaces that you read: one of them, or all.")
]
Readable = Annotated[
    tuple[SpaceName, ...],
    Meta(description="All that you read, asked or not; first the one that anything new goes to."),
]


class FindInput(SearchInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search, by an agent or for somebody who looks at what it finds."""

    marks: Annotated[
        bool,
        Meta(
            description="Give each hit by itself, whatever `max_tokens` says, and say where the "
            "query's words stand in it."
        ),
    ] = False
    space: InSpace = "all"


class MarkedResult(SearchResult, frozen=True, kw_only=True):
    """What was found, and where the query's words stand in it."""

    marks: tuple[tuple[tuple[int, int], ...], ...]
    """For each hit the half-open character spans in its text; ascending, disjoint."""
    spaces: Readable


class ListedDocs(SpaceListing, frozen=True, kw_only=True):
    """A page of docs, the newest change first, and where each is."""

    spaces: Readable


class ReadText(SpaceText, frozen=True, kw_only=True):
    """A text, and where it is."""

    spaces: Readable


class GuideInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody wants to do."""

    query: Annotated[Question, Meta(min_length=1)]


class NotesInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of the notes is wanted."""

    tags: Tags = ()
    limit: Rows = 50
    cursor: Cursor | None = None


class KnownNote(Struct, frozen=True, kw_only=True):
    """A note as it is listed."""

    path: str
    """In the notebook, as `/content` reads it."""
    title: str
    doc_id: str
    tags: tuple[str, ...]
    updated_ms: int


class Notes(Struct, frozen=True, kw_only=True):
    """A page of notes, the newest change first."""

    notes: tuple[KnownNote, ...]
    total: int
    next_cursor: str | None


class FacetsInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many values of each kind are wanted."""

    limit: Rows = 200
    space: InSpace = "all"


class KnownFacets(SpaceFacets, frozen=True, kw_only=True):
    """What a search can be narrowed to, in the spaces that were asked."""

    spaces: Readable


class KnownTopic(Struct, frozen=True, kw_only=True):
    """A topic that can be learned."""

    id: str
    title: str | None
    introduction: str | None


class Topics(Struct, frozen=True, kw_only=True):
    """What can be learned; `learn` reads it."""

    topics: tuple[KnownTopic, ...]


def tool_routes() -> tuple[Route, ...]:
    """A route to a tool, which takes and gives what the tool does."""
    return tuple(_tool_route(tool) for tool in _ALL.values())


def _tool_route(tool: Tool) -> Route:
    def run(served: Served, body: Any, caller: Caller) -> Reply:
        return answered(answer(tool.name, body, served.kit_of(caller), caller.scope))

    return Route(
        method="POST",
        path=f"/v1/tools/{tool.name}",
        role="reader",
        summary=tool.description,
        run=run,
        input=tool.input,
        schema=tool.schema,
        is_raw=True,
        outputs=(tool.output,),
        is_long=has_model if tool.name == "kb_ask" else never,
    )


def _by(name: str) -> Run:
    def run(served: Served, request: Any, caller: Caller) -> Reply:
        arguments = msgspec.to_builtins(request)
        kit = served.spaces_of(caller, arguments.pop("space")).toolkit
        return answered(answer(name, arguments, kit, caller.scope))

    return run


def _with_spaces(
    served: Served, caller: Caller, record: type[Struct], found: Struct, **more: Any
) -> Reply:
    """What was found as a record that says, too, which spaces the caller reads."""
    spaces = served.spaces_of(caller).names
    return json_of(record(**msgspec.structs.asdict(found), **more, spaces=spaces))


def _text(*, of_passage: bool) -> Run:
    def run(served: Served, request: Any, caller: Caller) -> Reply:
        found = served.spaces_of(caller, request.space).agents.text(request, caller.scope)
        if (found.chunk_id is not None) is not of_passage:
            raise Refusal(404, "not_found", f"nothing here has the id {request.id}")
        return _with_spaces(served, caller, ReadText, found)

    return run


def _listed(served: Served, request: Any, caller: Caller) -> Reply:
    found = served.spaces_of(caller, request.space).agents.listing(request, caller.scope)
    return _with_spaces(served, caller, ListedDocs, found)


def _found(served: Served, request: FindInput, caller: Caller) -> Reply:
    asked = served.spaces_of(caller, request.space)
    alone = msgspec.structs.replace(request, max_tokens=NO_BUDGET) if request.marks else request
    found = asked.search(alone, caller.scope)
    if not request.marks:
        return json_of(found)
    words = terms(found.query)
    marks = tuple(tuple(highlight_spans(hit.text, words)) for hit in found.hits)
    return _with_spaces(served, caller, MarkedResult, found, marks=marks)


def _guide(served: Served, request: GuideInput, caller: Caller) -> Reply:
    asked = {"action": "guidance", "query": request.query}
    return answered(answer("help", asked, served.spaces_of(caller).toolkit, caller.scope))


def _notes(served: Served, request: NotesInput, caller: Caller) -> Reply:
    asked = {**msgspec.to_builtins(request), "kinds": ["notebook"]}
    # Of the server's own notebook alone, for `/content` reads no other.
    found = answer("kb_list_docs", asked, served.spaces.toolkit, caller.scope)
    if not isinstance(found, ListDocsOutput):
        return answered(found)
    rows = tuple(
        KnownNote(
            path=named_in(served, one.source),
            title=one.title,
            doc_id=one.doc_id,
            tags=one.tags,
            updated_ms=one.updated_ms,
        )
        for one in found.docs
    )
    return json_of(Notes(notes=rows, total=found.total, next_cursor=found.next_cursor))


def _facets(served: Served, request: FacetsInput, caller: Caller) -> Reply:
    found = served.spaces_of(caller, request.space).facets(request.limit, caller.scope)
    return _with_spaces(served, caller, KnownFacets, found)


def _topics(served: Served, _: Any, caller: Caller) -> Reply:
    rows = (
        KnownTopic(id=one.id, title=one.title, introduction=one.introduction)
        for one in served.spaces_of(caller).agents.topics(caller.scope)
    )
    return json_of(Topics(topics=tuple(rows)))


def _read(path: str, tool: str, summary: str, **names: str) -> Route:
    known = _ALL[tool]
    runs: dict[str, tuple[Run, type[Struct]]] = {
        "/v1/docs": (_listed, ListedDocs),
        "/v1/docs/{id}": (_text(of_passage=False), ReadText),
        "/v1/passages/{id}": (_text(of_passage=True), ReadText),
    }
    run, output = runs.get(path) or (_by(tool), known.output)
    return Route(
        method="GET",
        path=path,
        role="reader",
        summary=summary,
        run=run,
        input=_in_space(known.input),
        names=tuple(names.items()),
        outputs=(output,),
    )


def _in_space(record: type[Struct]) -> type[Struct]:
    """What a tool takes, and in which space it is to look."""
    return msgspec.defstruct(
        f"{record.__name__}InSpace",
        [("space", InSpace, "all")],
        bases=(record,),
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _search_route(limits: Mapping[str, str]) -> Route:
    within = {**limits, "doc": "doc_ids", "pack": "packs"}
    mentions = {"require": "require_entities", "boost": "boost_entities"}
    return Route(
        method="GET",
        path="/v1/search",
        role="reader",
        summary="Find passages.",
        run=_found,
        input=FindInput,
        names=tuple({"q": "query", **within, **mentions}.items()),
        outputs=(SearchResult, MarkedResult),
    )


def read_routes() -> tuple[Route, ...]:
    """What can be read by address, by readers: docs, passages, and what there is to choose from."""
    limits = {"tag": "tags", "kind": "kinds", "source": "sources"}
    return (
        _search_route(limits),
        _read("/v1/docs", "kb_list_docs", "List docs, page by page.", **limits),
        _read("/v1/docs/{id}", "kb_fetch", "Read a doc."),
        _read("/v1/passages/{id}", "kb_fetch", "Read a passage and its neighbours."),
        _read("/v1/similar/{id}", "kb_similar", "Find passages of other docs that are like it."),
        _read("/v1/entities", "kb_search_entities", "List who and what is mentioned."),
        _read("/v1/packs", "kb_pack_list", "List packs, or the docs of one.", tag="tags"),
        Route(
            method="GET",
            path="/v1/facets",
            role="reader",
            summary="List what a search can be narrowed to: the values that docs have, counted.",
            run=_facets,
            input=FacetsInput,
            outputs=(KnownFacets,),
        ),
        Route(
            method="GET",
            path="/v1/guide",
            role="reader",
            summary="Say how something is done, from entries alone.",
            run=_guide,
            input=GuideInput,
            names=(("q", "query"),),
            outputs=(HelpOutput,),
        ),
        Route(
            method="GET",
            path="/v1/notes",
            role="reader",
            summary="List notes of the notebook, page by page.",
            run=_notes,
            input=NotesInput,
            names=(("tag", "tags"),),
            outputs=(Notes,),
        ),
        Route(
            method="GET",
            path="/v1/topics",
            role="reader",
            summary="List what can be learned.",
            run=_topics,
            outputs=(Topics,),
        ),
    )
