"""Surveys a store in a child process, so that a damaged file cannot crash the caller.

Stores that may be damaged, or that somebody else made, are surveyed before LMDB opens them.
"""

import subprocess
from pathlib import Path
from signal import Signals
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import StoreDamaged, StoreFull
from kb.model.children import module_argv, module_env
from kb.model.decoding import msgpack_decoder

WALL_S_MAX: Final = 1_800.0
_SUMMARY_PROBLEMS_MAX: Final = 3
# Tables that cannot be derived from others: without their records a doc is lost.
IRREPLACEABLE: Final = frozenset(("docs", "lsids", "versions", "source_docs"))
_ENV_KEPT: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "VIRTUAL_ENV")


class SurveyUnavailable(StoreDamaged):
    """The child process cannot be started; the state of the store is unknown."""


class StoreProblem(Struct, frozen=True, kw_only=True, tag="problem"):
    """One defect of a data file, or the reason why a survey failed."""

    place: str
    """A table, or the part of the file."""
    problem: str
    is_room: bool = False
    """Whether the disk had no room for the salvaged store."""


class TableSurvey(Struct, frozen=True, kw_only=True):
    """How many records of a table are readable."""

    name: str
    records: int
    """How many it should have."""
    readable: int

    @property
    def is_whole(self) -> bool:
        """Whether every record is readable."""
        return self.readable == self.records


class LostDoc(Struct, frozen=True, kw_only=True):
    """A doc whose record is unreadable, as other records name it."""

    doc_id: str
    place: str = ""
    """The logical source id; empty if unknown."""


class StoreSurvey(Struct, frozen=True, kw_only=True, tag="survey"):
    """The result of reading every page and record of a data file."""

    sound: bool
    """Every page that the newest root leads to, and every record, is intact."""
    is_safe: bool
    """LMDB may open the file: no page of it crashes the process. Records may be damaged."""
    has_root: bool = False
    """Whether anything in it is readable."""
    format: str = ""
    """The version of its table layout; empty if unreadable."""
    unread: bool = False
    """The child process failed: nothing is known of the file."""
    device: int = 0
    inode: int = 0
    """Device and inode of the surveyed file."""
    problems: tuple[StoreProblem, ...] = ()
    problems_left_out: int = 0
    """Problems past the first thousand."""
    tables: tuple[TableSurvey, ...] = ()
    """The tables whose names are readable."""
    lost_docs: tuple[LostDoc, ...] = ()
    """The first thousand."""
    docs_lost: int | None = 0
    """How many records of docs are unreadable; None if it is unknown how many there were."""

    @property
    def needs_salvage(self) -> bool:
        """Whether a repair needs a new store, instead of single records written again."""
        damaged = (table.name for table in self.tables if not table.is_whole)
        return not self.is_safe or not IRREPLACEABLE.isdisjoint(damaged)

    @property
    def lost_unnamed(self) -> int | None:
        """How many lost docs no record names; None if unknown."""
        if self.docs_lost is None:
            return None
        return max(0, self.docs_lost - len(self.lost_docs))

    @property
    def summary(self) -> str:
        """The first few problems, in one line."""
        return "; ".join(
            f"{problem.place}: {problem.problem}"
            for problem in self.problems[:_SUMMARY_PROBLEMS_MAX]
        )

    @property
    def may_lack_docs(self) -> bool:
        """Whether the store may have had docs that no record names."""
        return self.docs_lost != 0 or any(problem.place == "root" for problem in self.problems)


def survey_store(
    folder: Path,
    *,
    beside_writers: bool = False,
    salvage_to: Path | None = None,
    wall_s_max: float = WALL_S_MAX,
) -> StoreSurvey:
    """Survey the store in `folder` in a child process, which only reads the data file.

    With `beside_writers` others may write to the store: the child then holds an LMDB read
    transaction, which writes to the lock file. Without it LMDB does not touch the file. With
    `salvage_to`, an empty folder, every readable record is copied into a new store there. A file
    that makes the child fail is not sound. Raises StoreDamaged if there is no regular file or the
    child cannot be started; with `salvage_to` also if the child fails, and StoreFull.
    """
    words = [str(folder), "pinned" if beside_writers else "alone", str(salvage_to or "")]
    try:
        child = subprocess.run(
            module_argv("kb.store.surveyor", *words),
            env=module_env(_ENV_KEPT, PYTHONUTF8="1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=wall_s_max,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        detail = f"it takes longer than {wall_s_max:g} s to read"
        return _failed_survey(detail, folder, must_write=salvage_to is not None)
    except OSError as error:
        raise SurveyUnavailable(f"cannot be looked at ({error.strerror})", place=folder) from error
    try:
        answer: StoreSurvey | StoreProblem = msgpack_decoder(StoreSurvey | StoreProblem).decode(
            child.stdout
        )
    except msgspec.DecodeError:
        return _failed_survey(
            _exit_reason(child.returncode), folder, must_write=salvage_to is not None
        )
    if isinstance(answer, StoreProblem):
        error_type = StoreFull if answer.is_room else StoreDamaged
        raise error_type(answer.problem, place=answer.place)
    return answer


def _exit_reason(status: int) -> str:
    if status >= 0:
        return f"its reader ended with status {status}"
    return f"its reader crashed ({Signals(-status).name})"


def _failed_survey(problem: str, folder: Path, *, must_write: bool) -> StoreSurvey:
    if must_write:
        raise StoreDamaged(problem, place=folder)
    store_problem = StoreProblem(place="store", problem=problem)
    return StoreSurvey(
        sound=False, is_safe=False, unread=True, problems=(store_problem,), docs_lost=None
    )
