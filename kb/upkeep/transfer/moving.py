"""The one walk over all that a home holds, into another."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from kb.store.meta import get_word
from kb.upkeep.transfer.filling import Target
from kb.upkeep.transfer.holdings import TABLES_OF_RECORDS, Holdings

Stage = Literal["records", "content", "files"]


class TransferProgress(Struct, frozen=True, kw_only=True):
    """How far a copy is in one of its stages."""

    stage: Stage
    done: int
    """Records, docs or files."""
    total: int | None
    """None where nobody has counted."""


class TransferCounts(Struct, frozen=True, kw_only=True):
    """What a home holds, or what of it was copied."""

    records: int
    docs: int
    """Active ones."""
    passages: int
    contents: int
    """Pieces of content that docs name: their bytes, and their markdown."""
    files: int
    """Settings, entries, notes and whatever else lies in the home."""
    problems: tuple[str, ...] = ()
    """What the home lacks, or what is damaged in it."""


def transfer(
    source: Holdings,
    target: Target,
    tell: Callable[[TransferProgress], None] = lambda _: None,
) -> TransferCounts:
    """Copy all that a home holds, and finish the target; reports what the home lacks.

    Raises StoreFull, StoreBusy, StoreUnreachable, StoreDamaged, ReadOnlyHome; then the target does
    not count as a home.
    """
    problems: list[str] = []
    records = _records(source, target, tell)
    contents = 0
    for batch in source.contents(problems.append):
        target.put_contents(batch)
        contents += len(batch)
        tell(TransferProgress(stage="content", done=contents, total=None))
    files = 0
    for file, pieces in source.files(problems.append):
        target.put_file(file, pieces)
        files += 1
        tell(TransferProgress(stage="files", done=files, total=None))
    target.finish(get_word(source.txn, "format"))
    return TransferCounts(
        records=records,
        docs=source.active_docs,
        passages=source.txn.count("chunks"),
        contents=contents,
        files=files,
        problems=tuple(problems),
    )


def count(source: Holdings) -> TransferCounts:
    """What a home holds, all of it read and nothing written."""
    problems: list[str] = []
    return TransferCounts(
        records=sum(map(source.txn.count, TABLES_OF_RECORDS)),
        contents=sum(len(batch) for batch in source.contents(problems.append)),
        files=sum(1 for _ in source.files(problems.append)),
        docs=source.active_docs,
        passages=source.txn.count("chunks"),
        problems=tuple(problems),
    )


def _records(source: Holdings, target: Target, tell: Callable[[TransferProgress], None]) -> int:
    total = sum(map(source.txn.count, TABLES_OF_RECORDS))
    done = 0
    for table in TABLES_OF_RECORDS:
        for count in target.put_rows(table, source.txn.scan(table)):
            done += count
            tell(TransferProgress(stage="records", done=done, total=total))
    return total
