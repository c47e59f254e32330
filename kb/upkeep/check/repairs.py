"""What can be put right, and how it is told to a person. Doing it is `repair`'s business."""

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from kb.model.ids import DocId


class ManualRepair(Struct, frozen=True):
    """Nothing here can mend it."""

    advice: str


class DropRecord(Struct, frozen=True):
    """Remove a record that other records can replace, while it is still what was looked at."""

    table: str
    key: bytes
    stored: bytes


class RewritePointers(Struct, frozen=True):
    """Make what leads from a source to this doc anew."""

    doc_id: DocId


class RewriteFacets(Struct, frozen=True):
    """Write the facets of a doc again."""

    doc_id: DocId


class RewriteChunkLinks(Struct, frozen=True):
    """Write what leads to a passage again: its id, its place, its entities."""

    no: int


class Rechunk(Struct, frozen=True):
    """Ask for a source's passages anew, without the passage `drop`."""

    source_no: int
    drop: int | None = None


class QueueEmbedding(Struct, frozen=True):
    """Ask for the vectors that a doc lacks."""

    doc_id: DocId


class RewriteJobLists(Struct, frozen=True):
    """Make the lists of jobs anew."""


class RaiseCounter(Struct, frozen=True):
    """Let a counter go on above every number in use."""

    name: str
    at_least: int


class CountGenerations(Struct, frozen=True):
    """Count the births that the docs tell of; where counts were `lost`, skip what they had."""

    lost: bool = False


class RecoverSource(Struct, frozen=True):
    """Take a source in again whose doc was overwritten by another source's."""

    source_no: int


class RestoreFile(Struct, frozen=True):
    """Make a content file again from what it came from, where that still says the same."""

    doc_id: DocId
    part: Literal["raw", "md"]


class RebuildCache(Struct, frozen=True):
    """Make a cache anew."""

    cache: Literal["lexical", "dense"]


class RepairNotebook(Struct, frozen=True):
    """Have the notebook's index anew, or its files back."""

    what: Literal["index", "files"]
    paths: tuple[str, ...] = ()


class SyncNotebook(Struct, frozen=True):
    """Bring the docs of the notebook level with its notes."""


Repair: TypeAlias = (
    ManualRepair
    | DropRecord
    | RewritePointers
    | RewriteFacets
    | RewriteChunkLinks
    | Rechunk
    | QueueEmbedding
    | RewriteJobLists
    | RaiseCounter
    | CountGenerations
    | RecoverSource
    | RestoreFile
    | RebuildCache
    | RepairNotebook
    | SyncNotebook
)
_REPAIR = "`kb check --repair` "
_FILE_ORIGINS = {
    "md": "makes it again from the raw bytes",
    "raw": "takes it from its source, where that is unchanged; else restore it",
}


def describe(repair: Repair) -> str:
    """The mend in words."""
    if isinstance(repair, RepairNotebook | SyncNotebook):
        return _REPAIR + _describe_notebook(repair)
    match repair:
        case ManualRepair(advice):
            return advice
        case DropRecord():
            return _REPAIR + "removes the record and makes it again"
        case (
            RewritePointers()
            | RewriteFacets()
            | RewriteChunkLinks()
            | RewriteJobLists()
            | RaiseCounter()
            | CountGenerations()
        ):
            return _REPAIR + "writes it again"
        case Rechunk():
            return _REPAIR + "asks for the doc's passages anew; then run `kb worker --drain`"
        case QueueEmbedding():
            return _REPAIR + "asks for its vectors; then run `kb worker --drain`"
        case RecoverSource():
            return _REPAIR + "takes it in again from its raw bytes; else add it again"
        case RestoreFile(part=part):
            return _REPAIR + _FILE_ORIGINS[part]
        case RebuildCache():
            return _REPAIR + "rebuilds the cache"
        case _:
            assert_never(repair)


def _describe_notebook(repair: RepairNotebook | SyncNotebook) -> str:
    match repair:
        case SyncNotebook():
            return "or `kb sync-all` sees to it"
        case RepairNotebook("index"):
            return "makes it anew from the newest commit"
        case _:
            return "puts it back; if you removed it, commit that"
