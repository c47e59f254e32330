"""What can be put right, and how it is told to a person. Doing it is `repair`'s business."""

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from kb.model.ids import DocId


class ByHand(Struct, frozen=True):
    """Nothing here can mend it."""

    advice: str


class DropRecord(Struct, frozen=True):
    """Remove a record that other records can replace, while it is still what was looked at."""

    table: str
    key: bytes
    stored: bytes


class Repoint(Struct, frozen=True):
    """Make what leads from a source to this doc anew."""

    doc_id: DocId


class Refacet(Struct, frozen=True):
    """Write the facets of a doc again."""

    doc_id: DocId


class Relink(Struct, frozen=True):
    """Write what leads to a passage again: its id, its place, its entities."""

    no: int


class Recut(Struct, frozen=True):
    """Ask for a source's passages anew, without the passage `drop`."""

    source_no: int
    drop: int | None = None


class Embed(Struct, frozen=True):
    """Ask for the vectors that a doc lacks."""

    doc_id: DocId


class Relist(Struct, frozen=True):
    """Make the lists of jobs anew."""


class RaiseCounter(Struct, frozen=True):
    """Let a counter go on above every number in use."""

    name: str
    at_least: int


class CountBirths(Struct, frozen=True):
    """Count the births that the docs tell of; where counts were `lost`, skip what they had."""

    lost: bool = False


class BringBack(Struct, frozen=True):
    """Take a source in again whose doc was overwritten by another source's."""

    source_no: int


class RestoreFile(Struct, frozen=True):
    """Make a content file again from what it came from, where that still says the same."""

    doc_id: DocId
    part: Literal["raw", "md"]


class Rebuild(Struct, frozen=True):
    """Make a cache anew."""

    cache: Literal["lexical", "dense"]


class MendNotebook(Struct, frozen=True):
    """Have the notebook's index anew, or its files back."""

    what: Literal["index", "files"]
    paths: tuple[str, ...] = ()


class SyncNotebook(Struct, frozen=True):
    """Bring the docs of the notebook level with its notes."""


Mend: TypeAlias = (
    ByHand
    | DropRecord
    | Repoint
    | Refacet
    | Relink
    | Recut
    | Embed
    | Relist
    | RaiseCounter
    | CountBirths
    | BringBack
    | RestoreFile
    | Rebuild
    | MendNotebook
    | SyncNotebook
)
_REPAIR = "`kb check --repair` "
_RESTORED = {
    "md": "makes it again from the raw bytes",
    "raw": "takes it from its source, where that is unchanged; else restore it",
}


def said(mend: Mend) -> str:
    """The mend in words."""
    if isinstance(mend, MendNotebook | SyncNotebook):
        return _REPAIR + _of_notebook(mend)
    match mend:
        case ByHand(advice):
            return advice
        case DropRecord():
            return _REPAIR + "removes the record and makes it again"
        case Repoint() | Refacet() | Relink() | Relist() | RaiseCounter() | CountBirths():
            return _REPAIR + "writes it again"
        case Recut():
            return _REPAIR + "asks for the doc's passages anew; then run `kb worker --drain`"
        case Embed():
            return _REPAIR + "asks for its vectors; then run `kb worker --drain`"
        case BringBack():
            return _REPAIR + "takes it in again from its raw bytes; else add it again"
        case RestoreFile(part=part):
            return _REPAIR + _RESTORED[part]
        case Rebuild():
            return _REPAIR + "rebuilds the cache"
        case _:
            assert_never(mend)


def _of_notebook(mend: MendNotebook | SyncNotebook) -> str:
    match mend:
        case SyncNotebook():
            return "or `kb sync-all` sees to it"
        case MendNotebook("index"):
            return "makes it anew from the newest commit"
        case _:
            return "puts it back; if you removed it, commit that"
