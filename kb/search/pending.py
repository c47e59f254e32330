"""Pending work: docs that a search cannot find yet, as far as the scope may know of them."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal

from kb.model.clock import Clock
from kb.model.doc import Doc, Scope
from kb.model.job import JobKind
from kb.model.search import SearchMode
from kb.search.index.log_follower import CatchUpReport
from kb.store import chunks, docs, log
from kb.store.jobs import queue
from kb.store.kv import ReadTxn

_COUNT_MAX: Final = 1_000

LegName = Literal["lexical", "dense"]


def expect_pending(txn: ReadTxn) -> None:
    """Say that `pending_warnings` is asked next."""
    queue.expect_pending(txn, "chunk", "embed")


def pending_warnings(txn: ReadTxn, clock: Clock, mode: SearchMode, scope: Scope) -> Iterator[str]:
    """A warning for the docs that wait for chunking, and one for those that wait for embedding."""
    expect_pending(txn)
    unchunked = _count_waiting(txn, "chunk", scope)
    if unchunked:
        are = "1 doc is" if unchunked == 1 else f"{_shown(unchunked)} docs are"
        yield f"{are} not searchable yet; {what_next(txn, clock, scope)}"
    unembedded = 0 if mode == "lexical" else _count_waiting(txn, "embed", scope)
    if unembedded:
        have = "1 doc has" if unembedded == 1 else f"{_shown(unembedded)} docs have"
        alone = "is found by words alone" if unembedded == 1 else "are found by words alone"
        yield f"{have} no vectors yet and {alone}; {what_next(txn, clock, scope)}"


def _shown(count: int) -> str:
    return f"{count:,}" if count <= _COUNT_MAX else f"over {_COUNT_MAX:,}"


def what_next(txn: ReadTxn, clock: Clock, scope: Scope) -> str:
    """What to do about pending work: nothing while a worker has some of it in hand.

    Between two jobs a worker has none, and nobody can tell it from one that is not there.
    A scope that does not see everything is told of a worker only by the docs that it may see.
    """
    # Imported late: mostly nothing is pending.
    from kb.store.jobs.holder import is_gone

    now_ms = clock.lease_ms()
    for job in queue.running(txn):
        is_live = job.deadline_ms > now_ms and not is_gone(job.holder)
        if is_live and (scope.operator or _is_visible(txn, job.doc_id, scope)):
            return "a worker is at work on it"
    return "run `kb worker --drain` if no worker is at work"


def _count_waiting(txn: ReadTxn, kind: JobKind, scope: Scope) -> int:
    """How many docs wait: each once, in its newest version alone; at most one over the limit.

    There is no limit on the jobs read: a count cut off by it would tell how many are hidden.
    """
    waiting = (job.doc_id for job in queue.pending(txn, kind))
    count = 0
    while count <= _COUNT_MAX and (batch := set(islice(waiting, _COUNT_MAX))):
        docs.expect_with_latest(txn, batch)
        newest = (docs.if_latest(txn, doc_id) for doc_id in batch)
        count += sum(doc is not None and _is_shown(doc, scope) for doc in newest)
    return min(count, _COUNT_MAX + 1)


def _is_shown(doc: Doc, scope: Scope) -> bool:
    return doc.status == "active" and doc.visible_to(scope)


def _is_visible(txn: ReadTxn, doc_id: str, scope: Scope) -> bool:
    doc: Doc | None = docs.get(txn, doc_id)
    newest = docs.latest(txn, doc.source_no) if doc else None
    return newest is not None and _is_shown(newest, scope)


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
