"""What several stores found becomes one answer, in which nothing stands twice."""

import contextlib
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from kb.home.spaces.asked import FAILURES, FailedSpace, OpenSpace, warnings_of
from kb.home.spaces.merge import SpaceHits, merged_alignments, merged_hits, merged_warnings
from kb.model.doc import Scope
from kb.model.ids import Lsid
from kb.model.search import Filters, Hit, SearchResult
from kb.operations.budget import hits_fitting
from kb.operations.fields import NO_BUDGET
from kb.operations.similar import tokens_of
from kb.search.filters import may_appear
from kb.store import chunks, docs
from kb.store.kv import ReadTxn


class Limits(Struct, frozen=True, kw_only=True):
    """How much is answered of what was found, and to whom."""

    k: int
    tokens_max: int
    scope: Scope
    min_score: float = 0.0
    docs: Filters | None
    """Which docs may be answered; None where they were named one by one."""


Given = Sequence[tuple[OpenSpace, SearchResult]]


def together(given: Given, failed: Sequence[FailedSpace], limits: Limits) -> SearchResult:
    """One answer, `given` being in the order of precedence; that of one space stays as it is."""
    space, first = given[0]
    left_out = warnings_of(failed, limits.scope)
    if len(given) == 1:
        hits = tuple(msgspec.structs.replace(hit, source_space=space.name) for hit in first.hits)
        return msgspec.structs.replace(first, hits=hits, warnings=(*left_out, *first.warnings))
    lists = [
        SpaceHits(name=space.name, hits=result.hits, held=_held(given, place, limits))
        for place, (space, result) in enumerate(given)
    ]
    merged = merged_hits(lists, limits.k)
    kept = tuple(hit for hit in merged if hit.score >= limits.min_score)
    hits, cut = _fitting(given, kept, limits.tokens_max)
    cuts = merged_warnings([(one.name, filter(None, [each.truncated])) for one, each in given])
    said = merged_warnings([(one.name, each.warnings) for one, each in given])
    return SearchResult(
        query=first.query,
        mode=first.mode,
        hits=hits,
        entity_alignment=merged_alignments([each.entity_alignment for _, each in given], hits),
        warnings=(*left_out, *said),
        truncated="; ".join(filter(None, (*cuts, cut))) or None,
    )


def _held(given: Given, place: int, limits: Limits) -> frozenset[str]:
    """The docs found in one space whose source an earlier space has, and may answer, too."""
    if limits.docs is None:
        return frozenset()
    space, result = given[place]
    held: set[str] = set()
    for earlier, _ in given[:place]:
        # Where it cannot be told, the passage is shown.
        with (
            contextlib.suppress(*FAILURES),
            space.app.store.read() as mine,
            earlier.app.store.read() as txn,
        ):
            for doc_id in {hit.doc_id for hit in result.hits}:
                doc = docs.get(mine, doc_id)
                if doc is not None and _answers(txn, doc.place, limits.docs, limits.scope):
                    held.add(doc_id)
    return frozenset(held)


def _answers(txn: ReadTxn, place: Lsid, limits: Filters, scope: Scope) -> bool:
    """Whether a source is here, may be answered, and has passages: before that none can be."""
    doc = docs.latest_of(txn, place)
    if doc is None or not may_appear(doc, limits, scope):
        return False
    return bool(chunks.numbers_of(txn, doc.source_no))


def _fitting(
    given: Given, hits: tuple[Hit, ...], tokens_max: int
) -> tuple[tuple[Hit, ...], str | None]:
    """The first hits that fit the budget together: each store has filled one of its own."""
    if tokens_max >= NO_BUDGET:
        return hits, None
    counts: dict[int, int] = {}
    for space, _ in given:
        with space.app.store.read() as txn:
            mine = (hit for hit in hits if hit.source_space == space.name)
            counts |= {hit.rank: tokens_of(txn, hit) for hit in mine}
    return hits_fitting(hits, [counts[hit.rank] for hit in hits], tokens_max)
