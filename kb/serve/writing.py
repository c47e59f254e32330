"""Tools that write, for a server that was started to let agents do so."""

import threading
from typing import IO, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import EmptySource, SourceError
from kb.home.app import App
from kb.home.spaces.spaces import Spaces
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import AddOptions
from kb.intake.sync.report import Outcome
from kb.knowledge.notebook import JobReport, report
from kb.model.doc import LOCAL_USER, Scope, Visibility
from kb.model.ids import DocId
from kb.model.source import STDIN_NAME
from kb.operations.add import text_source
from kb.operations.failure import Failed, failed
from kb.operations.fields import Word
from kb.operations.operation import Tool
from kb.store.records import LEDGER

_WAIT_S: Final = 10.0
_LOOK_S: Final = 0.05

GivenTags = Annotated[tuple[Word, ...], Meta(max_length=32, description="Tags for it.")]


GivenTitle = (
    Annotated[
        str,
        Meta(
            min_length=1,
            max_length=500,
            description="Its name. A text under a title that is known becomes its new version.",
        ),
    ]
    | None
)


class AddInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be kept: a text or a page, one of them."""

    text: Annotated[str, Meta(description="Markdown or plain text.")] | None = None
    title: GivenTitle = None
    tags: GivenTags = ()
    url: (
        Annotated[
            str,
            Meta(
                pattern="^https?://",
                max_length=4_096,
                description="The address of a page that is fetched, and kept current.",
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        """Raise ValueError where it is not one of text and url."""
        if (self.text is None) == (self.url is None):
            raise ValueError("field `text`: give either a text or a url")


class AddOutput(Struct, frozen=True, kw_only=True):
    """The doc that it became."""

    doc_id: DocId
    source: str
    status: Outcome
    indexed: bool
    """Whether searches find all of it already; if not, they soon will."""
    warnings: tuple[str, ...]
    transaction: str | None = None
    """The token of a state of the home that has it: searches that ask for it find no older one."""


class NoteInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A note for the notebook."""

    text: Annotated[str, Meta(description="The note, in markdown.")]
    hint: (
        Annotated[
            str,
            Meta(
                max_length=1_000,
                description="Where it belongs: a folder, or words that name one.",
            ),
        ]
        | None
    ) = None
    tags: GivenTags = ()


def writers(app: App, stop: threading.Event | None = None) -> tuple[Tool, ...]:
    """`kb_add` and `note_add`, into one home whose jobs somebody does, as the asker's own.

    Until `stop` a doc is waited for that searches do not find yet, for some seconds; without one
    it is not.
    """

    def add_one(_: Spaces, request: AddInput, scope: Scope) -> AddOutput | Failed:
        try:
            done = add(app, request, owner_of(scope))
        except SourceError as error:
            return failed("invalid_input", error.reason)
        return done if stop is None else _waited(app, done, stop)

    def add_note(_: Spaces, request: NoteInput, scope: Scope) -> JobReport:
        owner = owner_of(scope)
        job = app.notebook.hand_in(request.text.encode(), request.hint, request.tags, owner=owner)
        with app.store.read() as txn:
            return report(txn, job)

    return (
        Tool(
            name="kb_add",
            description=(
                "Keep a text or a page in the knowledge base, so that later searches find it. "
                "Give a text a title if you may want to change it: the same title with another "
                "text makes a new version. Keep what is worth finding again, and nothing secret."
            ),
            request=AddInput,
            output=AddOutput,
            run=add_one,
            reads_only=False,
        ),
        Tool(
            name="note_add",
            description=(
                "Hand in a note for the notebook, which puts it into a file where it belongs. "
                "Use it for a thought of a few lines that goes with others; for a whole text use "
                "kb_add. It is placed a little later."
            ),
            request=NoteInput,
            output=JobReport,
            run=add_note,
            reads_only=False,
        ),
    )


def add(
    app: App, request: AddInput, owner: str | None, visibility: Visibility | None = None
) -> AddOutput:
    """Take a text or a page in, as `owner`'s own; None for the local user's.

    It is not waited for until searches find it. Raises SourceError.
    """
    with text_source(request.text or "") as text:
        ingest_options = IngestOptions(
            title=request.title, tags=request.tags or None, visibility=visibility, owner=owner
        )
        return _taken_in(app, request.url or STDIN_NAME, text, ingest_options)


def add_file(
    app: App, file: IO[bytes], name: str | None, ingest_options: IngestOptions, place: str = ""
) -> AddOutput:
    """Take in the bytes of a file of this name, as the owner's of `ingest_options`; else as `add`.

    The same place again, or the same name where no place is said, by the same owner, is the same
    source. Without a name they are taken as standard input is.
    """
    return _taken_in(app, STDIN_NAME, file, ingest_options, name, place)


def owner_of(scope: Scope) -> str | None:
    """Whose a doc is that a scope hands in; None for the local user's."""
    return None if scope.operator or scope.user == LOCAL_USER else scope.user


def _taken_in(
    app: App,
    source: str,
    file: IO[bytes],
    ingest_options: IngestOptions,
    file_name: str | None = None,
    file_place: str = "",
) -> AddOutput:
    bytes_max = app.settings.ingest.file_bytes_max
    options = AddOptions(
        ingest_options=ingest_options,
        file_bytes_max=bytes_max,
        file_name=file_name,
        file_place=file_place,
    )
    with app.parser() as parser:
        adder = app.adder(parser, options)
        done = adder.add([source], stdin_fd=file.fileno())
    if not done.docs:
        reasons = (problem.reason for problem in done.problems)
        raise adder.error or EmptySource(next(reasons, "nothing was added"), source=source)
    (doc,) = done.docs
    return AddOutput(
        doc_id=doc.doc_id,
        source=doc.source,
        status=doc.status,
        indexed=_is_indexed(app, doc.doc_id),
        warnings=tuple(problem.reason for problem in done.problems),
        transaction=app.transactions.token(),
    )


def _is_indexed(app: App, doc_id: DocId) -> bool:
    with app.store.read() as txn:
        entry = LEDGER.get(txn, doc_id.encode())
    return entry is None or entry.state != "pending"


def _waited(app: App, done: AddOutput, stop: threading.Event) -> AddOutput:
    """Wait a few seconds for a doc to be found."""
    for _ in range(int(_WAIT_S / _LOOK_S)):
        if _is_indexed(app, done.doc_id):
            token = app.transactions.token()
            return msgspec.structs.replace(done, indexed=True, transaction=token)
        if stop.wait(_LOOK_S):
            break
    return done
