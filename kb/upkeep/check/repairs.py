"""The kinds of repair, and their descriptions for people. `repairer` applies them."""

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from kb.model.ids import DocId


class ManualRepair(Struct, frozen=True):
    """No automatic repair: `advice` tells a person what to do."""

    advice: str


class DropRecord(Struct, frozen=True):
    """Remove a record that can be derived again, if it is unchanged since the check."""

    table: str
    key: bytes
    stored: bytes


class RewritePointers(Struct, frozen=True):
    """Write the pointers from a source to this doc again."""

    doc_id: DocId


class RewriteFacets(Struct, frozen=True):
    """Write the facets of a doc again."""

    doc_id: DocId


class RewriteChunkLinks(Struct, frozen=True):
    """Write the rows that lead to a chunk again: its id, its ordinal, its entities."""

    no: int


class Rechunk(Struct, frozen=True):
    """Queue a chunk job for a source's newest doc, and remove the chunk `drop` at once."""

    source_no: int
    drop: int | None = None


class QueueEmbedding(Struct, frozen=True):
    """Queue an embed job for the vectors that a doc lacks."""

    doc_id: DocId


class RewriteJobLists(Struct, frozen=True):
    """Build the lists of jobs again from the jobs."""


class RaiseCounter(Struct, frozen=True):
    """Raise a counter to at least `at_least`, so that it gives out no number in use."""

    name: str
    at_least: int


class CountGenerations(Struct, frozen=True):
    """Count source generations again from the docs; if counts were `lost`, skip some numbers."""

    lost: bool = False


class RecoverSource(Struct, frozen=True):
    """Ingest a source again whose doc was overwritten by another source's doc."""

    source_no: int


class RestoreFile(Struct, frozen=True):
    """Write a content file again from its origin, if that still gives the same bytes."""

    doc_id: DocId
    part: Literal["raw", "md"]


class RebuildCache(Struct, frozen=True):
    """Rebuild a cache from the store."""

    cache: Literal["lexical", "dense"]


class RepairNotebook(Struct, frozen=True):
    """Rebuild the notebook's git index, or restore its files."""

    what: Literal["index", "files"]
    paths: tuple[str, ...] = ()


class SyncNotebook(Struct, frozen=True):
    """Sync the docs of the notebook with its notes."""


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
    "raw": "takes it from its source, if that is unchanged; if not, restore it",
}


def describe(repair: Repair) -> str:
    """The repair as a sentence for a person."""
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
            return _REPAIR + "adds a job to cut the doc again; then run `kb worker --drain`"
        case QueueEmbedding():
            return _REPAIR + "adds a job to embed it; then run `kb worker --drain`"
        case RecoverSource():
            return _REPAIR + "adds it again from its raw bytes; if that fails, add its source again"
        case RestoreFile(part=part):
            return _REPAIR + _FILE_ORIGINS[part]
        case RebuildCache():
            return _REPAIR + "rebuilds the cache"
        case _:
            assert_never(repair)


def _describe_notebook(repair: RepairNotebook | SyncNotebook) -> str:
    match repair:
        case SyncNotebook():
            return "or run `kb sync-all`"
        case RepairNotebook("index"):
            return "makes it again from the newest commit"
        case _:
            return "puts it back; if you removed it, commit that"
