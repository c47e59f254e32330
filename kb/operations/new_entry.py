"""A new entry, written into the knowledge folder of an open home."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.entries import Entry
    from kb.operations.add import AddResult

TYPE_DEFAULT: Final = "note"


class NewEntryRequest(Struct, frozen=True, kw_only=True):
    """The entry that is wanted."""

    title: str
    zettel_id: str | None = None
    """Without one the title suggests it."""
    entry_type: str = TYPE_DEFAULT
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    """Ids of entries."""


def entry_text(app: "App", request: NewEntryRequest) -> str:
    """The text of the entry's file; nothing is written. Raises UsageError, which says why."""
    from kb.knowledge.entries import text_of

    return text_of(_draft(app, request))


def write_entry(app: "App", request: NewEntryRequest) -> Path:
    """Write the entry's file, and return its path; to be found it is still to be taken in.

    A file that is there is left as it is. Raises UsageError where the id is taken or something in
    the request cannot be, ReadOnlyHome, StoreFull.
    """
    from kb.home.services.entries import write_new

    app.paths.check_keeps_files("entries")
    return write_new(app.store, app.paths.knowledge, _draft(app, request))


def take_in(app: "App", path: Path) -> "AddResult":
    """Take an entry's file in; to be found it still needs workers."""
    from kb.intake.sync.add import AddOptions

    with app.parser() as parser:
        return app.adder(parser, AddOptions()).add([str(path)])


def _draft(app: "App", request: NewEntryRequest) -> "Entry":
    from kb.knowledge.entries import draft

    return draft(
        request.title,
        app.store.clock.now_ms(),
        zettel_id=request.zettel_id,
        entry_type=request.entry_type,
        tags=request.tags,
        references=request.references,
    )
