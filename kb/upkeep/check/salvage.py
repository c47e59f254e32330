"""A new store in the place of one that is damaged or gone: of all that can be reached of it.

What the store itself no longer says, raw/ may: those docs are taken in again. The new store is made
beside the old one, and takes its place when it is whole.
"""

import os
import shutil
import time
from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from kb.errors import KbError, ReadOnlyHome, StoreFull
from kb.intake.canonicalize import Parser
from kb.intake.ingest.ingest import Ingestor
from kb.model.clock import Clock
from kb.model.ids import DocId, Lsid
from kb.model.source import path_of
from kb.search.index.files import fsync_folder
from kb.store import births
from kb.store.alone import alone
from kb.store.codec import from_u64
from kb.store.content.files import ContentStore, translated
from kb.store.content.layout import HomePaths
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.records import DOCS, LSIDS, SEEN, SOURCE_DOCS, VERSIONS
from kb.store.store import Store, check_not_newer
from kb.store.survey import LostDoc, NoSurveyor, StoreSurvey, survey_store
from kb.upkeep.check.lookup import find
from kb.upkeep.check.reborn import Name, begin_again, request_of
from kb.upkeep.check.records import spare_numbers
from kb.upkeep.check.report import Salvaged

_NEW: Final = "new"
_PER_TXN: Final = 50
_NOTHING: Final = StoreSurvey(sound=False, is_safe=False, docs_lost=None)


class _Source(Struct, frozen=True):
    """A source whose newest doc has no record."""

    number: int
    doc_id: str
    names: list[Name]


class _Filled(Struct, frozen=True):
    recovered: int
    lost: list[LostDoc]
    unusable: list[str]


def look_at(paths: HomePaths) -> StoreSurvey | None:
    """Look at the store of a home, from a process of its own, beside others at work.

    None where no process can be started. Raises StoreTooNew, and StoreDamaged where it cannot be
    looked at.
    """
    try:
        found = survey_store(paths.store, beside_writers=True)
    except NoSurveyor:
        return None
    if not found.is_safe:
        # What LMDB cannot hold still may be read without it.
        again = survey_store(paths.store)
        found = again if found.unread or not again.is_safe else found
    check_not_newer(found.format, paths.store)
    return found


def salvage(paths: HomePaths, clock: Clock, parser: Parser) -> Salvaged:
    """Put a new store in the place of the damaged one, which is kept, or of one that is gone.

    A process that dies in this leaves the old one in its place. Raises StoreBusy where the store
    is in use, StoreTooNew, StoreFull, ReadOnlyHome, and StoreDamaged where it cannot be read.
    """
    paths.make()
    with alone(paths.store) as give_up:
        new = paths.store / _NEW
        shutil.rmtree(new, ignore_errors=True)
        try:
            new.mkdir(mode=0o700)
            found = survey_store(paths.store, salvage_to=new) if paths.has_store else _NOTHING
            check_not_newer(found.format, paths.store)
            with Store.open(new, clock) as store:
                _settle(store, found)
                carried = _count(store)
                filled = _fill(store, ContentStore(paths), parser, found)
            kept = _keep(paths) if paths.has_store else ""
            # Caches of numbers that may be given out again.
            shutil.rmtree(paths.index, ignore_errors=True)
            give_up()
            os.replace(new / "data.mdb", paths.data_file)
            fsync_folder(paths.store)
        except OSError as error:
            raise translated(error, paths.store) from error
        finally:
            shutil.rmtree(new, ignore_errors=True)
    paths.make()
    damaged = tuple(table for table in found.tables if not table.is_whole)
    return Salvaged(
        records=sum(table.readable for table in found.tables),
        docs=carried,
        recovered=filled.recovered,
        lost=tuple(filled.lost),
        lost_unnamed=found.lost_unnamed,
        unusable=tuple(filled.unusable),
        tables=damaged,
        kept_as=kept,
    )


def _count(store: Store) -> int:
    with store.read() as txn:
        return txn.count("docs")


def _settle(store: Store, found: StoreSurvey) -> None:
    """Let no number be given out again that the old store may have given out."""
    whole = {table.name for table in found.tables if table.is_whole}
    with store.write() as txn:
        if "meta" not in whole:
            spare_numbers(txn)
        if births.are_kept(txn):
            births.recount(txn, lost=not {"births", "meta"} <= whole)
        queue.relist(txn)


def _fill(store: Store, content: ContentStore, parser: Parser, found: StoreSurvey) -> _Filled:
    with store.read() as txn:
        sources = list(_without_doc(txn))
    recovered = 0
    lost: list[LostDoc] = []
    for source in sources:
        taken = begin_again(store, content, parser, source.number, source.names)
        recovered += taken
        if not taken:
            lost.append(LostDoc(doc_id=source.doc_id, place=_place(source.names)))
    unusable: list[str] = []
    if found.may_lack_docs:
        recovered += _take_in_strays(store, content, parser, unusable)
    return _Filled(recovered, lost, unusable)


def _without_doc(txn: ReadTxn) -> Iterator[_Source]:
    """Sources whose newest doc has no record, as far as anything names them."""
    newest: dict[int, tuple[int, DocId]] = {}
    for key, ref in SOURCE_DOCS.scan(txn):
        number = from_u64(key[:8])
        newest[number] = max(newest.get(number, (0, DocId(""))), (from_u64(key[8:]), ref.doc_id))
    for key, pointer in VERSIONS.scan(txn):
        number = from_u64(key)
        said = (pointer.version, pointer.doc_id)
        newest[number] = max(newest.get(number, (0, DocId(""))), said)
    names: dict[int, list[Name]] = {}
    for key, named in LSIDS.scan(txn):
        names.setdefault(named.source_no, []).append(Name(named.lsid, find(SEEN, txn, key)))
    with_docs = {doc.source_no for _, doc in DOCS.scan(txn)}
    for number in sorted({*newest, *(names.keys() - with_docs)}):
        _, doc_id = newest.get(number, (0, DocId("")))
        if txn.get("docs", doc_id.encode()) is None:
            yield _Source(number, doc_id, names.get(number, []))


def _place(names: list[Name]) -> str:
    return ", ".join(os.fspath(path_of(name.place) or name.place) for name in names)


def _take_in_strays(
    store: Store, content: ContentStore, parser: Parser, unusable: list[str]
) -> int:
    """Take in every file of raw/ that no doc names; what cannot be is put into `unusable`."""
    ingestor = Ingestor(store, content)
    root = content.paths.root
    with store.read() as txn:
        named = {doc.raw_path for _, doc in DOCS.scan(txn)}
    files = sorted(path for path in root.glob("raw/*/*") if path.is_file())
    waiting = (path for path in files if path.relative_to(root).as_posix() not in named)
    taken = 0
    while page := list(islice(waiting, _PER_TXN)):
        staged = []
        for path in page:
            shown = path.relative_to(root).as_posix()
            try:
                request = request_of(path, parser, Lsid(f"raw:{path.stem}"), shown)
                staged.append(ingestor.stage(request))
            except (StoreFull, ReadOnlyHome):
                raise
            except (OSError, KbError):
                unusable.append(shown)
        taken += len(ingestor.commit(staged))
    return taken


def _keep(paths: HomePaths) -> str:
    """Give the old file a second name; its path in the home."""
    at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    kept = paths.store / f"damaged-{at}.mdb"
    for number in range(1, 1_000):
        if not os.path.lexists(kept):
            break
        kept = paths.store / f"damaged-{at}-{number}.mdb"
    try:
        os.link(paths.data_file, kept)
    except OSError:
        shutil.copyfile(paths.data_file, kept)
    return kept.relative_to(paths.root).as_posix()
