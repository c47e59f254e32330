"""Replace a damaged or missing store by a new one, made of every record that is still readable.

Docs whose records are lost are ingested again from raw/. The new store is built beside the old
one, and takes its place when it is complete.
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
from kb.store import generations
from kb.store.codec import from_u64
from kb.store.content.durable import fsync_folder
from kb.store.content.files import ContentFiles, ContentStore, translate_os_error
from kb.store.content.layout import HomePaths
from kb.store.exclusive import exclusive_access
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.records import DOCS, LSIDS, SEEN, SOURCE_DOCS, VERSIONS
from kb.store.store import Store, check_not_newer
from kb.store.survey import LostDoc, StoreSurvey, SurveyUnavailable, survey_store
from kb.upkeep.check.lookup import find
from kb.upkeep.check.records import skip_numbers
from kb.upkeep.check.recover import SourceLocation, recover_source, request_from_raw
from kb.upkeep.check.report import SalvageReport

_NEW: Final = "new"
_PER_TXN: Final = 50
_NO_STORE: Final = StoreSurvey(sound=False, is_safe=False, docs_lost=None)


class _LostSource(Struct, frozen=True):
    """A source whose newest doc has no record."""

    number: int
    doc_id: str
    locations: list[SourceLocation]


class _Recovery(Struct, frozen=True):
    recovered: int
    lost: list[LostDoc]
    unusable: list[str]


def survey_home(paths: HomePaths) -> StoreSurvey | None:
    """Survey the store of a home in a child process, while others may use it.

    None if no child process can be started. Raises StoreTooNew, and StoreDamaged if the store
    cannot be read.
    """
    try:
        survey = survey_store(paths.store, beside_writers=True)
    except SurveyUnavailable:
        return None
    if not survey.is_safe:
        # LMDB may be unable to pin a snapshot of a file that can be read without LMDB.
        exclusive = survey_store(paths.store)
        survey = exclusive if survey.unread or not exclusive.is_safe else survey
    check_not_newer(survey.format, paths.store)
    return survey


def salvage(paths: HomePaths, clock: Clock, parser: Parser) -> SalvageReport:
    """Replace a damaged store, whose file is kept, or a missing one by a new store.

    If the process dies meanwhile, the old store is still in place. Raises StoreBusy if the store
    is in use, StoreTooNew, StoreFull, ReadOnlyHome, and StoreDamaged if nothing can be read.
    """
    paths.make()
    with exclusive_access(paths.store) as reset_lock:
        new = paths.store / _NEW
        shutil.rmtree(new, ignore_errors=True)
        try:
            new.mkdir(mode=0o700)
            survey = survey_store(paths.store, salvage_to=new) if paths.has_store else _NO_STORE
            check_not_newer(survey.format, paths.store)
            with Store.open(new, clock) as store:
                _reset_counters(store, survey)
                copied_docs = _count_docs(store)
                recovery = _recover_docs(store, ContentFiles(paths), parser, survey)
            kept_as = _keep_damaged_file(paths) if paths.has_store else ""
            # The caches are keyed by numbers that the new store may give out again.
            shutil.rmtree(paths.index, ignore_errors=True)
            reset_lock()
            os.replace(new / "data.mdb", paths.data_file)
            fsync_folder(paths.store)
        except OSError as error:
            raise translate_os_error(error, paths.store) from error
        finally:
            shutil.rmtree(new, ignore_errors=True)
    paths.make()
    damaged = tuple(table for table in survey.tables if not table.is_whole)
    return SalvageReport(
        records=sum(table.readable for table in survey.tables),
        docs=copied_docs,
        recovered=recovery.recovered,
        lost=tuple(recovery.lost),
        lost_unnamed=survey.lost_unnamed,
        unusable=tuple(recovery.unusable),
        tables=damaged,
        kept_as=kept_as,
    )


def _count_docs(store: Store) -> int:
    with store.read() as txn:
        return txn.count("docs")


def _reset_counters(store: Store, survey: StoreSurvey) -> None:
    """Raise the counters, so that no number of the old store is given out again."""
    whole = {table.name for table in survey.tables if table.is_whole}
    with store.write() as txn:
        if "meta" not in whole:
            skip_numbers(txn)
        if generations.are_counted(txn):
            generations.recount(txn, lost=not {"births", "meta"} <= whole)
        queue.relist(txn)


def _recover_docs(
    store: Store, content: ContentStore, parser: Parser, survey: StoreSurvey
) -> _Recovery:
    with store.read() as txn:
        sources = list(_lost_sources(txn))
    recovered = 0
    lost: list[LostDoc] = []
    for source in sources:
        count = recover_source(store, content, parser, source.number, source.locations)
        recovered += count
        if not count:
            lost.append(LostDoc(doc_id=source.doc_id, place=_place(source.locations)))
    unusable: list[str] = []
    if survey.may_lack_docs:
        recovered += _ingest_unnamed_files(store, content, parser, unusable)
    return _Recovery(recovered, lost, unusable)


def _lost_sources(txn: ReadTxn) -> Iterator[_LostSource]:
    """Sources that some record names and whose newest doc has no record."""
    newest: dict[int, tuple[int, DocId]] = {}
    for key, ref in SOURCE_DOCS.scan(txn):
        number = from_u64(key[:8])
        newest[number] = max(newest.get(number, (0, DocId(""))), (from_u64(key[8:]), ref.doc_id))
    for key, pointer in VERSIONS.scan(txn):
        number = from_u64(key)
        candidate = (pointer.version, pointer.doc_id)
        newest[number] = max(newest.get(number, (0, DocId(""))), candidate)
    locations: dict[int, list[SourceLocation]] = {}
    for key, source_ref in LSIDS.scan(txn):
        locations.setdefault(source_ref.source_no, []).append(
            SourceLocation(source_ref.lsid, find(SEEN, txn, key))
        )
    with_docs = {doc.source_no for _, doc in DOCS.scan(txn)}
    for number in sorted({*newest, *(locations.keys() - with_docs)}):
        _, doc_id = newest.get(number, (0, DocId("")))
        if txn.get("docs", doc_id.encode()) is None:
            yield _LostSource(number, doc_id, locations.get(number, []))


def _place(locations: list[SourceLocation]) -> str:
    return ", ".join(os.fspath(path_of(location.place) or location.place) for location in locations)


def _ingest_unnamed_files(
    store: Store, content: ContentStore, parser: Parser, unusable: list[str]
) -> int:
    """Ingest every file of raw/ that no doc names; those that fail are added to `unusable`."""
    ingestor = Ingestor(store, content)
    root = content.paths.root
    with store.read() as txn:
        named = {doc.raw_path for _, doc in DOCS.scan(txn)}
    files = sorted(path for path in root.glob("raw/*/*") if path.is_file())
    waiting = (path for path in files if path.relative_to(root).as_posix() not in named)
    count = 0
    while page := list(islice(waiting, _PER_TXN)):
        staged = []
        for path in page:
            relative = path.relative_to(root).as_posix()
            try:
                request = request_from_raw(path, parser, Lsid(f"raw:{path.stem}"), relative)
                staged.append(ingestor.stage(request))
            except (StoreFull, ReadOnlyHome):
                raise
            except (OSError, KbError):
                unusable.append(relative)
        count += len(ingestor.commit(staged))
    return count


def _keep_damaged_file(paths: HomePaths) -> str:
    """Keep the damaged data file under a second name; returns its path in the home."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = paths.store / f"damaged-{moment}.mdb"
    for number in range(1, 1_000):
        if not os.path.lexists(target):
            break
        target = paths.store / f"damaged-{moment}-{number}.mdb"
    try:
        os.link(paths.data_file, target)
    except OSError:
        shutil.copyfile(paths.data_file, target)
    return target.relative_to(paths.root).as_posix()
