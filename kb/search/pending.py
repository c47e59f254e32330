"""Pending work: docs that a search cannot find yet, as far as the scope may know of them."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal

from kb.model.doc import Doc, Scope
from kb.model.job import JobKind
from kb.model.search import SearchMode
from kb.search.index.log_follower import CatchUpReport
from kb.store import chunks, docs, log
from kb.store.jobs import queue
from kb.store.kv import ReadTxn

_COUNT_MAX: Final = 10_000

LegName = Literal["lexical", "dense"]


def pending_warnings(txn: ReadTxn, mode: SearchMode, scope: Scope) -> Iterator[str]:
    """A warning for the docs that wait for chunking, and one for those that wait for embedding."""
    unchunked = _count_waiting(txn, "chunk", scope)
    if unchunked:
        yield f"{unchunked} doc(s) are not searchable yet; run `kb worker --drain`"
    unembedded = 0 if mode == "lexical" else _count_waiting(txn, "embed", scope)
    if unembedded:
        yield (
            f"{unembedded} doc(s) have no vectors yet and are found by words alone; "
            "run `kb worker --drain`"
        )


def _count_waiting(txn: ReadTxn, kind: JobKind, scope: Scope) -> int:
    if scope.operator:
        return queue.pending_of_kind(txn, kind, _COUNT_MAX)
    # No limit on the jobs read: a count cut off by it would tell how many hidden jobs there are.
    visible = (1 for job in queue.pending(txn, kind) if _is_visible(txn, job.doc_id, scope))
    return sum(islice(visible, _COUNT_MAX))


def _is_visible(txn: ReadTxn, doc_id: str, scope: Scope) -> bool:
    doc: Doc | None = docs.get(txn, doc_id)
    newest = docs.latest(txn, doc.source_no) if doc else None
    return newest is not None and newest.status == "active" and newest.visible_to(scope)


def index_lag(txn: ReadTxn, state: CatchUpReport, leg: LegName, scope: Scope) -> str | None:
    """A warning that an index is behind the store; None where it is up to date.

    A scope that does not see everything is told neither cause nor number, and is warned only where
    the index lacks something that it may see: the docs of others keep indexes behind, too.
    """
    if scope.operator:
        if not state.behind:
            return state.problem
        detail = f" ({state.problem})" if state.problem else ""
        return f"the index is {state.behind} change(s) behind{detail}"
    if state.behind and _misses_visible(txn, max(state.watermark, 0), leg, scope):
        return "the index is still behind the newest changes"
    return None


def _misses_visible(txn: ReadTxn, watermark: int, leg: LegName, scope: Scope) -> bool:
    if watermark + 1 < log.first_seq(txn):
        return any(scope.reads(audience) for audience in docs.audiences(txn))
    for _, entry in log.since(txn, watermark):
        if not (entry.words if leg == "lexical" else entry.vectors):
            continue
        live = (chunks.get_active(txn, no) for no in entry.nos)
        if any(pair is not None and pair[1].visible_to(scope) for pair in live):
            return True
    return False
