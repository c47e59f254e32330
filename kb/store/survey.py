"""Is a store whole? Told by a child process, so that no file can end the process that asks.

For stores that may be damaged, and for those that somebody else made: they are to be surveyed
before anything here opens them.
"""

import subprocess
from pathlib import Path
from signal import Signals
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import StoreDamaged, StoreFull
from kb.model.children import module_argv, module_env

WALL_S_MAX: Final = 1_800.0
_SUMMARY_PROBLEMS_MAX: Final = 3
# What nothing else says: without these records a doc is lost.
IRREPLACEABLE: Final = frozenset(("docs", "lsids", "versions", "source_docs"))
_ENV_KEPT: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "VIRTUAL_ENV")


class SurveyUnavailable(StoreDamaged):
    """The process that looks cannot be started; nothing is known of the store."""


class StoreProblem(Struct, frozen=True, kw_only=True, tag="problem"):
    """One thing in a data file that is not as it should be."""

    place: str
    """A table, or the part of the file."""
    problem: str
    is_room: bool = False
    """There was no room to salvage to."""


class TableSurvey(Struct, frozen=True, kw_only=True):
    """How much of one table can be read."""

    name: str
    records: int
    """As many as it should have."""
    readable: int

    @property
    def is_whole(self) -> bool:
        """Whether each record can be read."""
        return self.readable == self.records


class LostDoc(Struct, frozen=True, kw_only=True):
    """A doc whose record cannot be read, as other records name it."""

    doc_id: str
    place: str = ""
    """The logical source id, where that can be read."""


class StoreSurvey(Struct, frozen=True, kw_only=True, tag="survey"):
    """What a look at every page and record of a data file found."""

    sound: bool
    """Every page that the newest root leads to, and every record, is as it should be."""
    is_safe: bool
    """LMDB may be let at the file: no page of it can end the process. Records may be damaged."""
    has_root: bool = False
    """Whether anything in it can be reached."""
    format: str = ""
    """How its tables are laid out, as it says itself; empty where that cannot be read."""
    unread: bool = False
    """The child failed: nothing is known of the file."""
    device: int = 0
    inode: int = 0
    """Of the file that was looked at."""
    problems: tuple[StoreProblem, ...] = ()
    problems_left_out: int = 0
    """Problems past the first thousand."""
    tables: tuple[TableSurvey, ...] = ()
    """Those that could be named."""
    lost_docs: tuple[LostDoc, ...] = ()
    """The first thousand."""
    docs_lost: int | None = 0
    """How many records of docs cannot be read; None where it cannot be told how many there were."""

    @property
    def needs_salvage(self) -> bool:
        """Whether it takes a new store to mend it, not a record written again."""
        damaged = (table.name for table in self.tables if not table.is_whole)
        return not self.is_safe or not IRREPLACEABLE.isdisjoint(damaged)

    @property
    def lost_unnamed(self) -> int | None:
        """How many lost docs nothing names; None where it cannot be told how many are lost."""
        if self.docs_lost is None:
            return None
        return max(0, self.docs_lost - len(self.lost_docs))

    @property
    def summary(self) -> str:
        """The first few problems, in one line."""
        return "; ".join(
            f"{one.place}: {one.problem}" for one in self.problems[:_SUMMARY_PROBLEMS_MAX]
        )

    @property
    def may_lack_docs(self) -> bool:
        """Whether there may have been docs that it does not name."""
        return self.docs_lost != 0 or any(one.place == "root" for one in self.problems)


def survey_store(
    folder: Path,
    *,
    beside_writers: bool = False,
    salvage_to: Path | None = None,
    wall_s_max: float = WALL_S_MAX,
) -> StoreSurvey:
    """Look at the data file of the store in `folder`, in a child process that only reads it.

    With `beside_writers` others may write to it meanwhile: the child then holds a read transaction,
    by LMDB, which writes to the lock file beside it; without, no line of LMDB sees the file. With
    `salvage_to`, an empty folder, every record that can be read becomes a new store there. A file
    that is no regular file, or makes the child fail, is not sound. Raises StoreDamaged where there
    is no file, or the child cannot be started; with `salvage_to`, where it fails, and StoreFull.
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
        answer: StoreSurvey | StoreProblem = msgspec.msgpack.decode(
            child.stdout, type=StoreSurvey | StoreProblem
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
