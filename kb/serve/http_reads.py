"""`/v1/`: the tools, each at its own address, and what can be read by address alone."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from kb.home_stats import Stats, counted
from kb.index import highlight_spans, terms
from kb.model.note import NoteStatus
from kb.model.origin import Origin
from kb.model.search import SearchResult
from kb.notebook import JobReport, reports
from kb.serve.http_content import named_in
from kb.serve.http_events import queue_state
from kb.serve.http_reply import Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Run, Served, answered, has_model, never
from kb.sync.origins import listed
from kb.tools import HELP, LEARN, TOOLS, Tool, answer
from kb.tools.fetch import FetchOutput
from kb.tools.fields import NO_BUDGET, Rows, Tags
from kb.tools.help import HelpOutput, Question
from kb.tools.list_docs import Cursor, ListDocsOutput
from kb.tools.search import SearchInput

_ALL: Final[dict[str, Tool]] = {tool.name: tool for tool in (*TOOLS, HELP, LEARN)}
_ROWS_MAX: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=_ROWS_MAX, description="How many are wanted.")]


class FindInput(SearchInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search, by an agent or for somebody who looks at what it finds."""

    marks: Annotated[
        bool,
        Meta(
            description="Give each hit by itself, whatever `max_tokens` says, and say where the "
            "query's words stand in it."
        ),
    ] = False


class MarkedResult(SearchResult, frozen=True, kw_only=True):
    """What was found, and where the query's words stand in it."""

    marks: tuple[tuple[tuple[int, int], ...], ...]
    """For each hit the half-open character spans in its text; ascending, disjoint."""


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


class ListInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many rows are wanted."""

    limit: Limit = 50


class JobsInput(ListInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs are wanted."""

    state: Annotated[NoteStatus | None, Meta(description="Only those that stand so.")] = None


class KnownTopic(Struct, frozen=True, kw_only=True):
    """A topic that can be learned."""

    id: str
    title: str | None
    introduction: str | None


class Topics(Struct, frozen=True, kw_only=True):
    """What can be learned; `learn` reads it."""

    topics: tuple[KnownTopic, ...]


class Sources(Struct, frozen=True, kw_only=True):
    """What is kept current, and how many such there are in all."""

    sources: tuple[Origin, ...]
    total: int


class Jobs(Struct, frozen=True, kw_only=True):
    """Jobs that are not done, and the newest notes that are."""

    jobs: tuple[JobReport, ...]


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
    def run(served: Served, request: Struct, caller: Caller) -> Reply:
        arguments = msgspec.to_builtins(request)
        return answered(answer(name, arguments, served.kit, caller.scope))

    return run


def _text(*, of_passage: bool) -> Run:
    def run(served: Served, request: Any, caller: Caller) -> Reply:
        arguments = msgspec.to_builtins(request)
        found = answer("kb_fetch", arguments, served.kit, caller.scope)
        if isinstance(found, FetchOutput) and (found.chunk_id is not None) is not of_passage:
            raise Refusal(404, "not_found", f"nothing here has the id {request.id}")
        return answered(found)

    return run


def _found(served: Served, request: FindInput, caller: Caller) -> Reply:
    if not request.marks:
        arguments = msgspec.to_builtins(request)
        del arguments["marks"]
        return answered(answer("kb_search", arguments, served.kit, caller.scope))
    alone = msgspec.structs.replace(request, max_tokens=NO_BUDGET)
    found = served.spaces.search(alone, caller.scope)
    words = terms(found.query)
    marks = tuple(tuple(highlight_spans(hit.text, words)) for hit in found.hits)
    return json_of(MarkedResult(**msgspec.structs.asdict(found), marks=marks))


def _guide(served: Served, request: GuideInput, caller: Caller) -> Reply:
    asked = {"action": "guidance", "query": request.query}
    return answered(answer("help", asked, served.kit, caller.scope))


def _notes(served: Served, request: NotesInput, caller: Caller) -> Reply:
    asked = {**msgspec.to_builtins(request), "kinds": ["notebook"]}
    found = answer("kb_list_docs", asked, served.kit, caller.scope)
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


def _topics(served: Served, _: Any, caller: Caller) -> Reply:  # noqa: ARG001  topics have no owner
    rows = (
        KnownTopic(id=one.id, title=one.title, introduction=one.introduction)
        for one in served.kit.topics()
    )
    return json_of(Topics(topics=tuple(rows)))


def _sources(served: Served, request: ListInput, _: Caller) -> Reply:
    with served.app.store.read() as txn:
        found = listed(txn)
    return json_of(Sources(sources=tuple(found[: request.limit]), total=len(found)))


def _jobs(served: Served, request: JobsInput, _: Caller) -> Reply:
    with served.app.store.read() as txn:
        return json_of(Jobs(jobs=tuple(reports(txn, request.limit, request.state))))


def _stats(served: Served, _: Any, caller: Caller) -> Reply:
    found = counted(served.app)
    if not caller.scope.operator:
        # Where the home lies, and what it is pushed to, is for whoever is there.
        found = msgspec.structs.replace(found, home="", push=None)
    return json_of(found)


def _metrics(served: Served, _: Any, caller: Caller) -> Reply:  # noqa: ARG001  the role is enough
    with served.app.store.read() as txn:
        counts = queue_state(txn)
    rows = {"docs": counts.docs, "passages": counts.passages}
    lines = ["# TYPE kb_jobs gauge"]
    states = (("ready", counts.ready), ("running", counts.running), ("failed", counts.failed))
    lines += [f'kb_jobs{{state="{state}"}} {count}' for state, count in states]
    for name, count in rows.items():
        lines += [f"# TYPE kb_{name} gauge", f"kb_{name} {count}"]
    lines += ["# TYPE kb_worker_up gauge", f"kb_worker_up {int(served.is_working())}"]
    text = served.counters() + "\n".join(lines) + "\n"
    return Reply(body=text.encode(), media="text/plain; version=0.0.4; charset=utf-8")


def _read(path: str, tool: str, summary: str, **names: str) -> Route:
    known = _ALL[tool]
    passage = {"/v1/docs/{id}": False, "/v1/passages/{id}": True}.get(path)
    return Route(
        method="GET",
        path=path,
        role="reader",
        summary=summary,
        run=_by(tool) if passage is None else _text(of_passage=passage),
        input=known.input,
        names=tuple(names.items()),
        outputs=(known.output,),
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
    """What can be read by address: docs and passages for readers, the state for admins."""
    return (*_content_routes(), *_state_routes())


def _content_routes() -> tuple[Route, ...]:
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


def _state_routes() -> tuple[Route, ...]:
    return (
        Route(
            method="GET",
            path="/v1/sources",
            role="admin",
            summary="List what is kept current.",
            run=_sources,
            input=ListInput,
            outputs=(Sources,),
        ),
        Route(
            method="GET",
            path="/v1/stats",
            role="admin",
            summary="Count what there is.",
            run=_stats,
            outputs=(Stats,),
        ),
        Route(
            method="GET",
            path="/v1/jobs",
            role="admin",
            summary="List jobs that are not done, and notes that are.",
            run=_jobs,
            input=JobsInput,
            outputs=(Jobs,),
        ),
        Route(
            method="GET",
            path="/metrics",
            role="admin",
            summary="The state in numbers, as Prometheus reads it.",
            run=_metrics,
        ),
    )
