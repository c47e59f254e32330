"""What is handed in and taken away over HTTP: docs, each in the name of who asks."""

import re
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from kb.errors import SourceError, TooLarge
from kb.intake.ingest.changes import tombstone
from kb.intake.ingest.request import IngestOptions
from kb.knowledge.notebook import retry
from kb.model.doc import Visibility
from kb.model.ids import DocId
from kb.model.token import role_allows
from kb.search.resolve import resolve_doc
from kb.serve.http_content import JobQuery, JobStatus, job_status
from kb.serve.http_reply import Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Served, Upload
from kb.serve.writing import AddInput, AddOutput, GivenTags, GivenTitle, add, add_file, owner_of
from kb.store import questions

_NAME_BYTES_MAX: Final = 255
_PLACE_CHARS_MAX: Final = 4_096
_QUERY_CHARS_MAX: Final = 8_192
# Separators of any system, and what no terminal should be given.
_UNFIT: Final = re.compile(r"[/\\\x00-\x1f\x7f]")

WantedVisibility = Annotated[
    Visibility | None, Meta(description="Who may see it; else as it was, and private if it is new.")
]


class DocInput(AddInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be kept: a text or a page, one of them."""

    visibility: WantedVisibility = None


class FileQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a file that is handed in."""

    name: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=_NAME_BYTES_MAX,
                description="Its name, without a folder; without a name it is a text.",
            ),
        ]
        | None
    ) = None
    place: Annotated[
        str,
        Meta(
            max_length=_PLACE_CHARS_MAX,
            description="Where it lies for who hands it in, if the same name may lie elsewhere.",
        ),
    ] = ""
    title: GivenTitle = None
    tags: GivenTags = ()
    visibility: WantedVisibility = None

    def __post_init__(self) -> None:
        """Raise ValueError for a name that no single file could have."""
        if self.place and (self.name is None or not self.place.isprintable()):
            raise ValueError("field `place` takes one line, and only together with `name`")
        if self.name is None:
            return
        is_long = len(self.name.encode()) > _NAME_BYTES_MAX
        if is_long or _UNFIT.search(self.name) or self.name in (".", ".."):
            raise ValueError("field `name` takes the plain name of a file")


class DocQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which doc is meant."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]


class QuestionInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, and the doc that answers it."""

    query: Annotated[str, Meta(min_length=1, max_length=_QUERY_CHARS_MAX, pattern=r"\S")]
    id: Annotated[str, Meta(min_length=1, max_length=64)]


class QuestionKept(Struct, frozen=True, kw_only=True):
    """The question is kept, for `kb eval`; the answer is the same if somebody else asked it."""

    query: str


class Removed(Struct, frozen=True, kw_only=True):
    """The docs that are hidden from now on."""

    removed: tuple[DocId, ...]


def write_routes() -> tuple[Route, ...]:
    """Docs in and out, and jobs that are tried again."""
    return (
        Route(
            method="POST",
            path="/v1/docs",
            role="writer",
            summary="Keep a text or a page as a doc of one's own.",
            run=_add,
            input=DocInput,
            outputs=(AddOutput,),
            refuses=(),
            is_long=lambda *_: True,
        ),
        Route(
            method="POST",
            path="/v1/files",
            role="writer",
            summary="Keep a file as a doc of one's own; the body is its bytes.",
            run=_add_file,
            input=FileQuery,
            takes="file",
            names=(("tag", "tags"),),
            outputs=(AddOutput,),
            refuses=(),
            is_long=lambda *_: True,
        ),
        Route(
            method="POST",
            path="/v1/docs/{id}/remove",
            role="writer",
            summary="Hide a doc of one's own from everybody; added again, it comes back.",
            run=_remove,
            input=DocQuery,
            takes="nothing",
            outputs=(Removed,),
        ),
        Route(
            method="POST",
            path="/v1/questions",
            role="writer",
            summary="Say that a doc answers a question, for `kb eval` to measure by.",
            run=_keep_question,
            input=QuestionInput,
            outputs=(QuestionKept,),
            refuses=(404,),
        ),
        Route(
            method="POST",
            path="/v1/jobs/{id}/retry",
            role="admin",
            summary="Have a job that failed for good tried again.",
            run=_retry,
            input=JobQuery,
            takes="nothing",
            outputs=(JobStatus,),
            refuses=(404,),
        ),
    )


def _add(served: Served, request: DocInput, caller: Caller) -> Reply:
    owner = owner_of(caller.scope)
    try:
        return json_of(add(served.app, request, owner, request.visibility))
    except SourceError as error:
        raise _not_taken_in(error) from error


def _add_file(served: Served, upload: Upload, caller: Caller) -> Reply:
    query: FileQuery = upload.query
    ingest_options = IngestOptions(
        title=query.title,
        tags=query.tags or None,
        visibility=query.visibility,
        owner=owner_of(caller.scope),
    )
    with upload.file:
        try:
            return json_of(
                add_file(served.app, upload.file, query.name, ingest_options, query.place)
            )
        except SourceError as error:
            raise _not_taken_in(error) from error


def _not_taken_in(error: SourceError) -> Refusal:
    """What is wrong with a source is told whoever handed it in: it is theirs."""
    status, code = (413, "too_large") if isinstance(error, TooLarge) else (422, "not_taken_in")
    return Refusal(status, code, error.reason)


def _remove(served: Served, request: DocQuery, caller: Caller) -> Reply:
    scope = caller.scope
    with served.app.store.read() as txn:
        doc = resolve_doc(txn, request.id, scope)
    if doc.owner != scope.user and not role_allows(caller.role, "admin"):
        raise Refusal(403, "forbidden", "this doc belongs to somebody else")
    return json_of(Removed(removed=tuple(tombstone(served.app.store, [doc.doc_id]))))


def _keep_question(served: Served, request: QuestionInput, caller: Caller) -> Reply:
    store = served.app.store
    with store.write() as txn:
        doc = resolve_doc(txn, request.id, caller.scope)
        questions.keep(txn, request.query.strip(), doc.place, store.clock.now_ms())
    return json_of(QuestionKept(query=request.query.strip()))


def _retry(served: Served, request: Any, caller: Caller) -> Reply:
    with served.app.store.write() as txn:
        retry(txn, request.id)
    return json_of(job_status(served, request.id, caller))
