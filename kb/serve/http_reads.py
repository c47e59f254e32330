"""`/v1/`: the tools, each at its own address, and what can be read by address alone."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from kb.home_stats import Stats, counted
from kb.jobs import queue
from kb.model.origin import Origin
from kb.model.token import may
from kb.notebook import JobReport, reports
from kb.serve.http_reply import Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Run, Served, answered
from kb.sync.origins import listed
from kb.tools import HELP, LEARN, TOOLS, Tool, answer

_ALL: Final[dict[str, Tool]] = {tool.name: tool for tool in (*TOOLS, HELP, LEARN)}
_ROWS_MAX: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=_ROWS_MAX, description="How many are wanted.")]


class ListInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many rows are wanted."""

    limit: Limit = 50


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
        if tool is HELP and not may(caller.role, "writer") and _leaves_signal(body):
            raise Refusal(403, "forbidden", "a token of a reader leaves no signals")
        return answered(answer(tool.name, body, served.kit, caller.scope))

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
    )


def _leaves_signal(body: bytes) -> bool:
    """Whether this asks `help` to keep something; a checkpoint makes a backup even."""
    said = msgspec.json.decode(body)
    return not isinstance(said, dict) or said.get("action") != "guidance"


def _by(name: str) -> Run:
    def run(served: Served, request: Struct, caller: Caller) -> Reply:
        arguments = msgspec.to_builtins(request)
        return answered(answer(name, arguments, served.kit, caller.scope))

    return run


def _of_kind(letter: str) -> Run:
    fetch = _by("kb_fetch")

    def run(served: Served, request: Any, caller: Caller) -> Reply:
        if not request.id.startswith(letter):
            raise Refusal(404, "not_found", f"nothing here has the id {request.id}")
        return fetch(served, request, caller)

    return run


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


def _jobs(served: Served, request: ListInput, _: Caller) -> Reply:
    with served.app.store.read() as txn:
        return json_of(Jobs(jobs=tuple(reports(txn, request.limit))))


def _stats(served: Served, _: Any, caller: Caller) -> Reply:
    found = counted(served.app)
    if not caller.scope.operator:
        # Where the home lies on its machine is for whoever is there.
        found = msgspec.structs.replace(found, home="")
    return json_of(found)


def _metrics(served: Served, _: Any, caller: Caller) -> Reply:  # noqa: ARG001  the role is enough
    with served.app.store.read() as txn:
        counts = queue.counts(txn)
        rows = {"docs": txn.count("versions"), "passages": txn.count("chunks")}
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
    letters = {"/v1/docs/{id}": "d", "/v1/passages/{id}": "c"}
    return Route(
        method="GET",
        path=path,
        role="reader",
        summary=summary,
        run=_of_kind(letters[path]) if path in letters else _by(tool),
        input=known.input,
        names=tuple(names.items()),
        outputs=(known.output,),
    )


def read_routes() -> tuple[Route, ...]:
    """What can be read by address: docs and passages for readers, the state for admins."""
    limits = {"tag": "tags", "kind": "kinds"}
    within = {**limits, "doc": "doc_ids", "pack": "packs"}
    mentions = {"require": "require_entities", "boost": "boost_entities"}
    return (
        _read("/v1/search", "kb_search", "Find passages.", q="query", **within, **mentions),
        _read("/v1/docs", "kb_list_docs", "List docs, page by page.", **limits),
        _read("/v1/docs/{id}", "kb_fetch", "Read a doc."),
        _read("/v1/passages/{id}", "kb_fetch", "Read a passage and its neighbours."),
        _read("/v1/similar/{id}", "kb_similar", "Find passages of other docs that are like it."),
        _read("/v1/entities", "kb_search_entities", "List who and what is mentioned."),
        _read("/v1/packs", "kb_pack_list", "List packs, or the docs of one.", tag="tags"),
        Route(
            method="GET",
            path="/v1/topics",
            role="reader",
            summary="List what can be learned.",
            run=_topics,
            outputs=(Topics,),
        ),
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
            input=ListInput,
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
