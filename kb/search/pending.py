"""What is there and cannot be found yet? As far as the caller may know of it."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, Literal

from kb.model.doc import Doc, Scope
from kb.model.job import JobKind
from kb.model.search import SearchMode
from kb.search.index.follow import CatchUp
from kb.store import chunks, docs, log
from kb.store.jobs import queue
from kb.store.kv import ReadTxn

_COUNTED_MAX: Final = 10_000

Leg = Literal["lexical", "dense"]


def unfinished(txn: ReadTxn, mode: SearchMode, scope: Scope) -> Iterator[str]:
    """A line for the docs that wait to be cut, and one for those that wait to be embedded."""
    uncut = _waiting(txn, "chunk", scope)
    if uncut:
        yield f"{uncut} doc(s) are not searchable yet; run `kb worker --drain`"
    unembedded = 0 if mode == "lexical" else _waiting(txn, "embed", scope)
    if unembedded:
        yield (
            f"{unembedded} doc(s) have no vectors yet and are found by words alone; "
            "run `kb worker --drain`"
        )


def _waiting(txn: ReadTxn, kind: JobKind, scope: Scope) -> int:
    if scope.operator:
        return queue.pending_of_kind(txn, kind, _COUNTED_MAX)
    # Every job is looked at: where counting stopped would tell how many others there are.
    seen = (1 for job in queue.pending(txn, kind) if _is_visible(txn, job.doc_id, scope))
    return sum(islice(seen, _COUNTED_MAX))


def _is_visible(txn: ReadTxn, doc_id: str, scope: Scope) -> bool:
    doc: Doc | None = docs.get(txn, doc_id)
    newest = docs.latest(txn, doc.source_no) if doc else None
    return newest is not None and newest.status == "active" and newest.visible_to(scope)


def lag(txn: ReadTxn, state: CatchUp, leg: Leg, scope: Scope) -> str | None:
    """What keeps a cache behind the store, in words; None where it is level.

    Who may not see all is told of no cause and no number, and only where something that they may
    see is not in the cache: what others do keeps caches busy, too.
    """
    if scope.operator:
        if not state.behind:
            return state.problem
        detail = f" ({state.problem})" if state.problem else ""
        return f"the index is {state.behind} change(s) behind{detail}"
    if state.behind and _misses_visible(txn, max(state.watermark, 0), leg, scope):
        return "the index is still behind the newest changes"
    return None


def _misses_visible(txn: ReadTxn, watermark: int, leg: Leg, scope: Scope) -> bool:
    if watermark + 1 < log.first_seq(txn):
        return any(scope.reads(audience) for audience in docs.audiences(txn))
    for _, entry in log.since(txn, watermark):
        if not (entry.words if leg == "lexical" else entry.vectors):
            continue
        alive = (chunks.get_active(txn, no) for no in entry.nos)
        if any(found is not None and found[1].visible_to(scope) for found in alive):
            return True
    return False
