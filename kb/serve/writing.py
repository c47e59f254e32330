"""Tools that write, for a server that was started to let agents do so."""

import tempfile
import threading
from typing import Annotated, Final

from msgspec import Meta, Struct

from kb.app import App
from kb.errors import EmptySource
from kb.ingest.request import Wishes
from kb.model.doc import Scope
from kb.model.ids import DocId
from kb.model.source import STDIN_NAME
from kb.notebook import JobReport, report
from kb.store.records import LEDGER
from kb.sync.add import AddOptions
from kb.sync.report import Outcome
from kb.tools import Tool, ToolKit
from kb.tools.fields import Word

_WAIT_S: Final = 10.0
_LOOK_S: Final = 0.05

GivenTags = Annotated[tuple[Word, ...], Meta(max_length=32, description="Tags for it.")]


class AddInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be kept: a text or a page, one of them."""

    text: Annotated[str, Meta(description="Markdown or plain text.")] | None = None
    title: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=500,
                description="Its name. A text under a title that is known becomes its new version.",
            ),
        ]
        | None
    ) = None
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


def writers(app: App, stop: threading.Event) -> tuple[Tool, ...]:
    """`kb_add` and `note_add`, into one home whose jobs somebody does. `stop` ends their waiting.

    They are the operator's: a title or an address means one doc of the home, whoever names it.
    """

    def add(_: ToolKit, request: AddInput, __: Scope) -> AddOutput:
        return _add(app, request, stop)

    def add_note(_: ToolKit, request: NoteInput, __: Scope) -> JobReport:
        job = app.notebook.hand_in(request.text.encode(), request.hint, request.tags)
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
            input=AddInput,
            output=AddOutput,
            run=add,
            reads_only=False,
        ),
        Tool(
            name="note_add",
            description=(
                "Hand in a note for the notebook, which puts it into a file where it belongs. "
                "Use it for a thought of a few lines that goes with others; for a whole text use "
                "kb_add. It is placed a little later."
            ),
            input=NoteInput,
            output=JobReport,
            run=add_note,
            reads_only=False,
        ),
    )


def _add(app: App, request: AddInput, stop: threading.Event) -> AddOutput:
    """Take it in, and wait a few seconds for it to be found. Raises SourceError."""
    options = AddOptions(
        wishes=Wishes(title=request.title, tags=request.tags or None),
        file_bytes_max=app.settings.ingest.file_bytes_max,
    )
    with app.parser() as parser, tempfile.TemporaryFile() as text:
        text.write((request.text or "").encode())
        text.seek(0)
        adder = app.adder(parser, options)
        done = adder.add([request.url or STDIN_NAME], stdin_fd=text.fileno())
    if not done.docs:
        reasons = (problem.reason for problem in done.problems)
        raise adder.error or EmptySource(next(reasons, "nothing was taken in"), source=STDIN_NAME)
    (doc,) = done.docs
    return AddOutput(
        doc_id=doc.doc_id,
        source=doc.source,
        status=doc.status,
        indexed=_is_indexed(app, doc.doc_id, stop),
        warnings=tuple(problem.reason for problem in done.problems),
    )


def _is_indexed(app: App, doc_id: DocId, stop: threading.Event) -> bool:
    for _ in range(int(_WAIT_S / _LOOK_S)):
        with app.store.read() as txn:
            entry = LEDGER.get(txn, doc_id.encode())
        if entry is None or entry.state != "pending":
            return True
        if stop.wait(_LOOK_S):
            break
    return False
