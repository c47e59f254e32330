"""`/content` and `/jobs`: notes are handed in, placed, read, and asked about."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from kb.errors import NoJob
from kb.knowledge.notebook import JobReport, report
from kb.model.doc import Scope
from kb.model.ids import JobId
from kb.model.note import NoteStatus
from kb.model.token import role_allows
from kb.operations import ask
from kb.operations.jobs import is_own_note, shown_job
from kb.operations.notes import read_note
from kb.serve.http_reply import Reply, json_of
from kb.serve.http_routes import Caller, Route, Served, has_model
from kb.serve.writing import owner_of

_PATH_CHARS_MAX: Final = 4_096
_SOURCES: Final = 5


class ContentInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A note that is handed in."""

    content: Annotated[str, Meta(min_length=1, description="What it says, as markdown.")]
    hint: (
        Annotated[
            str, Meta(max_length=1_000, description="Where it belongs: a folder, or words for one.")
        ]
        | None
    ) = None
    tags: Annotated[tuple[str, ...], Meta(max_length=32)] = ()


class Queued(Struct, frozen=True, kw_only=True):
    """That a note was handed in; it is kept when this is said."""

    job_id: JobId
    status: Literal["queued"] = "queued"


class ContentQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which note is wanted, or what is asked."""

    path: (
        Annotated[
            str, Meta(min_length=1, max_length=_PATH_CHARS_MAX, description="In the notebook.")
        ]
        | None
    ) = None
    query: (
        Annotated[str, Meta(min_length=1, max_length=8_192, description="A question.")] | None
    ) = None
    mode: Annotated[
        Literal["synthesize", "raw"], Meta(description="An answer, or what it would be made of.")
    ] = "synthesize"

    def __post_init__(self) -> None:
        """Raise ValueError where not one of the two is asked for."""
        if (self.path is None) == (self.query is None):
            raise ValueError("give either field `path` or field `query`")


class Content(Struct, frozen=True, kw_only=True):
    """A source and what it says."""

    path: str
    """In the notebook for a note; else the place of the source."""
    content: str


class Answered(Struct, frozen=True, kw_only=True):
    """An answer from the sources."""

    query: str
    sources: tuple[str, ...]
    """The first is what the answer cites as `[1]`."""
    answer: str
    kind: str
    """`synthesis` by a language model, or `extracts` of the sources."""
    found: bool
    warnings: tuple[str, ...]


class JobQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which job is meant."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]


class JobStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it stands with a job."""

    job_id: str
    status: NoteStatus
    kind: str
    attempts: int
    path: str | None = None
    """Of a note that is placed."""
    commit: str | None = None
    reason: str | None = None


def content_routes() -> tuple[Route, ...]:
    """Notes in, notes and answers out."""
    return (
        Route(
            method="POST",
            path="/content",
            role="writer",
            summary="Hand in a note; a job places it.",
            run=_hand_in,
            input=ContentInput,
            outputs=(Queued,),
            status=202,
        ),
        Route(
            method="GET",
            path="/content",
            role="reader",
            summary="Read a note, or ask: for an answer, or for what it would be made of.",
            run=_content,
            input=ContentQuery,
            outputs=(Answered, Content, list[Content]),
            is_long=_is_long,
        ),
        Route(
            method="GET",
            path="/jobs/{id}",
            role="writer",
            summary="Say how it stands with a job.",
            run=_job,
            input=JobQuery,
            outputs=(JobStatus,),
        ),
    )


def _hand_in(served: Served, request: ContentInput, caller: Caller) -> Reply:
    data = request.content.encode()
    owner = owner_of(caller.scope)
    job = served.app.notebook.hand_in(data, request.hint, request.tags, owner=owner)
    return json_of(Queued(job_id=job), status=202)


def _is_long(served: Served, request: ContentQuery) -> bool:
    return request.query is not None and request.mode != "raw" and has_model(served, request)


def _content(served: Served, request: ContentQuery, caller: Caller) -> Reply:
    if request.path is not None:
        return json_of(_note(served, request.path, caller.scope))
    ask_request = ask.AskRequest(question=request.query or "", k=_SOURCES)
    if request.mode == "raw":
        sources = ask.run_sources(served.spaces_of(caller), ask_request, caller.scope)
        rows = [
            Content(path=named_in(served, source.path), content=source.content)
            for source in sources
        ]
        return json_of(rows)
    answer = ask.run(served.spaces_of(caller), ask_request, caller.scope)
    return json_of(
        Answered(
            query=answer.query,
            sources=tuple(named_in(served, source.source) for source in answer.sources),
            answer=answer.answer,
            kind=answer.kind,
            found=answer.found,
            warnings=answer.warnings,
        )
    )


def _note(served: Served, path: str, scope: Scope) -> Content:
    """A note that the scope sees. Raises NoNote for any other path, hidden or not there."""
    data = read_note(served.app, path, scope)
    return Content(path=path, content=data.decode("utf-8", "replace"))


def _job(served: Served, request: JobQuery, caller: Caller) -> Reply:
    return json_of(job_status(served, request.id, caller))


def job_status(served: Served, ident: str, caller: Caller) -> JobStatus:
    """A job as far as the caller may know. Raises NoJob for one that is not for them to know."""
    job = job_report(served, ident, caller)
    return JobStatus(
        job_id=job.job_id,
        status=job.status,
        kind=job.kind,
        attempts=job.attempts,
        path=job.path,
        commit=job.commit,
        reason=job.reason,
    )


def job_report(served: Served, ident: str, caller: Caller) -> JobReport:
    """As `job_status`, with all that is kept of it."""
    with served.app.store.read() as txn:
        job = report(txn, ident)
    if not is_own_note(job, caller.scope) and not role_allows(caller.role, "admin"):
        raise NoJob(id=ident)
    return shown_job(served.app, job, caller.scope)


def named_in(served: Served, source: str) -> str:
    """A note by its path in the notebook, as it is read by; any other source by its place."""
    return served.app.notebook.named(source)
