"""The questions of which somebody has said what answers them, for `kb eval`."""

from collections.abc import Iterator
from typing import Final

from kb.errors import UsageError
from kb.model.ids import Lsid
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import QUESTIONS, AnsweredQuestion

QUESTIONS_MAX: Final = 10_000


def keep(txn: WriteTxn, query: str, place: Lsid, now_ms: int) -> None:
    """Note that a source answers a question. Raises UsageError where there are QUESTIONS_MAX."""
    key = lsid_key(f"{query}\0{place}")
    if QUESTIONS.get(txn, key) is not None:
        return
    if txn.count("questions") >= QUESTIONS_MAX:
        raise UsageError(f"there are {QUESTIONS_MAX:,} questions; that is enough to measure by")
    QUESTIONS.put(txn, key, AnsweredQuestion(query=query, place=place, added_ms=now_ms))


def kept(txn: ReadTxn) -> Iterator[AnsweredQuestion]:
    """All of them, in no order."""
    return (question for _, question in QUESTIONS.scan(txn))
