"""The child process of a survey: `python -m kb.store.surveyor FOLDER alone|pinned [TO]`.

It writes MessagePack to standard output: a `StoreSurvey`, or a `StoreProblem` if it failed.
"""

import os
import resource
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from kb.errors import KbError, StoreDamaged, StoreFull
from kb.store import records
from kb.store.codec import RecordTable, from_u64, unseal
from kb.store.kv import TABLES
from kb.store.meta import FORMAT, get_word, set_word
from kb.store.survey import LostDoc, StoreProblem, StoreSurvey, TableSurvey
from kb.store.tree import DataFile, Record, Table

_FORMAT_KEY: Final = b"word:format"
_LISTED_MAX: Final = 1_000
_MEMORY_BYTES_MAX: Final = 4 << 30
_RECORDS_PER_TXN: Final = 10_000
_PINS_MAX: Final = 20
_ANSWER_FD: Final = 1
# The rows of these tables have no value and so no checksum; they can be derived from records.
_UNSEALED: Final = frozenset(("facets", "entity_chunks"))
_TYPED: Final[dict[str, RecordTable[Any]]] = {
    table.name: table for table in vars(records).values() if isinstance(table, RecordTable)
}


class _Surveyor:
    """Surveys one open data file."""

    def __init__(self, fd: int, txn_id: int | None) -> None:
        self._fd = fd
        self._txn_id = txn_id
        self._is_safe = True
        self._problems: dict[StoreProblem, None] = {}
        self._left_out = 0

    def survey(self) -> StoreSurvey:
        """Read every reachable page and every record."""
        file = DataFile(self._fd, self._add_page_problem, self._txn_id)
        tables = [self._table(file, table) for table in file.tables()]
        if file.has_root and not any(table.name == "meta" for table in tables):
            self._add_page_problem("meta", "the table is not there")
        docs = next((table for table in tables if table.name == "docs"), None)
        lost = () if docs and docs.is_whole else tuple(islice(self._lost_docs(), _LISTED_MAX))
        status = os.fstat(self._fd)
        return StoreSurvey(
            sound=not self._problems,
            is_safe=self._is_safe,
            has_root=file.has_root,
            format=self._format(),
            device=status.st_dev,
            inode=status.st_ino,
            problems=tuple(self._problems),
            problems_left_out=self._left_out,
            tables=tuple(tables),
            lost_docs=lost,
            docs_lost=max(0, docs.records - docs.readable) if docs else None,
        )

    def _table(self, file: DataFile, table: Table) -> TableSurvey:
        readable = 0
        for record in file.records(table):
            problem = _problem_of(table.name, record)
            readable += problem is None
            if problem is not None:
                self._add_problem(f"{table.name}/{record.key.hex()[:16]}", problem)
        return TableSurvey(name=table.name, records=table.entries, readable=readable)

    def _lost_docs(self) -> Iterator[LostDoc]:
        """Docs without a readable record that other records name."""
        known_ids = {key.decode() for key, _ in self._readable("docs")}
        refs = (records.LSIDS.decode(*pair) for pair in self._readable("lsids"))
        places: dict[int, str] = {ref.source_no: ref.lsid for ref in refs}
        for key, value in self._readable("source_docs"):
            doc_id = records.SOURCE_DOCS.decode(key, value).doc_id
            if doc_id not in known_ids:
                known_ids.add(doc_id)
                yield LostDoc(doc_id=doc_id, place=places.get(from_u64(key[:8]), ""))
        for key, value in self._readable("versions"):
            doc_id = records.VERSIONS.decode(key, value).doc_id
            if doc_id not in known_ids:
                yield LostDoc(doc_id=doc_id, place=places.get(from_u64(key), ""))

    def _format(self) -> str:
        value = dict(self._readable("meta")).get(_FORMAT_KEY)
        return records.META.decode(_FORMAT_KEY, value).text if value is not None else ""

    def _readable(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        # A new `DataFile`, as each one may read a table only once: it detects pages used twice.
        file = DataFile(self._fd, lambda *_: None, self._txn_id)
        for table in file.tables():
            if table.name == name:
                yield from _readable(file, table)

    def _add_page_problem(self, place: str, problem: str) -> None:
        self._is_safe = False
        self._add_problem(place, problem)

    def _add_problem(self, place: str, problem: str) -> None:
        if len(self._problems) < _LISTED_MAX:
            self._problems[StoreProblem(place=place, problem=problem)] = None
        else:
            self._left_out += 1


def _problem_of(table: str, record: Record) -> str | None:
    """Why a record is damaged; None if it is intact."""
    if table in _UNSEALED:
        return None if record.in_sound_page else "it may not be what was written"
    try:
        typed = _TYPED.get(table)
        if typed is not None:
            typed.decode(record.key, record.value)
        else:
            unseal(table, record.key, record.value)
    except StoreDamaged as error:
        return str(error.fields["detail"])
    return None


def _readable(file: DataFile, table: Table) -> Iterator[tuple[bytes, bytes]]:
    for record in file.records(table):
        if _problem_of(table.name, record) is None:
            yield record.key, record.value


def _salvage(fd: int, txn_id: int | None, to: Path) -> None:
    """Copy every readable record into a new store in `to`."""
    from kb.store.lmdb_env import LmdbEnvironment

    file = DataFile(fd, lambda *_: None, txn_id)
    env = LmdbEnvironment(to)
    try:
        for table in file.tables():
            rows = _readable(file, table) if table.name in TABLES else iter(())
            while page := list(islice(rows, _RECORDS_PER_TXN)):
                with env.write() as txn:
                    for key, value in page:
                        txn.put(table.name, key, value)
        with env.write() as txn:
            if not get_word(txn, "format"):
                set_word(txn, "format", FORMAT)
    finally:
        env.close()


@contextmanager
def _pin(folder: Path, fd: int) -> Iterator[int | None]:
    """Hold a read transaction whose root is still in the file; yields its number, or None."""
    from kb.store.lmdb_env import pin_snapshot

    with ExitStack() as stack:
        for _ in range(_PINS_MAX):
            txn_id = stack.enter_context(pin_snapshot(folder))
            # Each root is overwritten by the second commit after it.
            if txn_id is None or DataFile(fd, lambda *_: None, txn_id).txn_id == txn_id:
                break
            stack.close()
        yield txn_id


def main(folder: Path, *, pin: bool, to: Path | None) -> StoreSurvey:
    """Survey the store and salvage it into `to`. Raises StoreDamaged, and KbError for `to`."""
    try:
        # O_NONBLOCK, so that a pipe or device does not block.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(folder / "data.mdb", flags)
    except OSError as error:
        detail = f"cannot be read ({error.strerror})"
        raise StoreDamaged(detail, place=folder / "data.mdb") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise StoreDamaged("not a regular file", place=folder / "data.mdb")
    with ExitStack() as stack:
        txn_id = stack.enter_context(_pin(folder, fd)) if pin else None
        survey = _Surveyor(fd, txn_id).survey()
        if to is not None and survey.has_root:
            _salvage(fd, txn_id, to)
    return survey


def _write_answer(write: Callable[[bytes], object]) -> None:
    folder, mode, to = sys.argv[1:]
    answer: StoreSurvey | StoreProblem
    try:
        answer = main(Path(folder), pin=mode == "pinned", to=Path(to) if to else None)
    except KbError as error:
        place = str(error.fields.get("place", folder))
        problem = str(error.fields["detail"]) or str(error)
        answer = StoreProblem(place=place, problem=problem, is_room=isinstance(error, StoreFull))
    write(msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    with open(_ANSWER_FD, "wb", closefd=False) as answers:
        _write_answer(answers.write)
