"""Answers that still hold: the same question to an unchanged store is not worked out again."""

import threading
from collections import OrderedDict
from typing import Any, Final

import msgspec
from msgspec import Struct

from kb.model.doc import Scope
from kb.model.search import Hit, SearchRequest, SearchResult
from kb.search.engine import Searcher
from kb.search.freshness import freshness_of
from kb.store import docs
from kb.store.kv import ReadTxn

_ANSWERS_MAX: Final = 1_024
_CHARS_MAX: Final = 8 << 20
# What a hit takes beside its text, roughly.
_HIT_CHARS: Final = 1_024
# One answer may take this share of the room, so that no question drives out all others.
_SHARE_MAX: Final = 1 / 16


class _Answer(Struct, frozen=True, kw_only=True):
    last_txn: int
    result: SearchResult
    chars: int


class RememberingSearcher(Searcher):
    """A searcher that keeps its answers, by request and scope, until the store changes.

    What is kept is bounded, and the oldest goes first. Whether a hit's file is still what was taken
    in is looked at each time, for no store tells of that. Answers with warnings are not kept: what
    they warn of may pass without a change of the store.
    """

    def __init__(self, *args: Any, **said: Any) -> None:
        super().__init__(*args, **said)
        self._answers: OrderedDict[tuple[SearchRequest, Scope], _Answer] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def search(self, request: SearchRequest, scope: Scope) -> SearchResult:
        """As `Searcher.search`, byte for byte."""
        last_txn = self._store.last_txn()
        known = self._known(request, scope, last_txn)
        if known is not None:
            with self._store.read() as txn:
                hits = tuple(_as_it_is(txn, hit) for hit in known.hits)
            if self._store.last_txn() == last_txn:
                return msgspec.structs.replace(known, hits=hits)
        result = super().search(request, scope)
        if not result.warnings and self._store.last_txn() == last_txn:
            self._keep((request, scope), result, last_txn)
        return result

    def _known(self, request: SearchRequest, scope: Scope, last_txn: int) -> SearchResult | None:
        with self._lock:
            answer = self._answers.get((request, scope))
            if answer is None or answer.last_txn != last_txn:
                return None
            self._answers.move_to_end((request, scope))
            return answer.result

    def _keep(
        self, asked: tuple[SearchRequest, Scope], result: SearchResult, last_txn: int
    ) -> None:
        chars = len(result.query) + sum(len(hit.text) + _HIT_CHARS for hit in result.hits)
        if chars > _CHARS_MAX * _SHARE_MAX:
            return
        with self._lock:
            before = self._answers.pop(asked, None)
            self._answers[asked] = _Answer(last_txn=last_txn, result=result, chars=chars)
            self._chars += chars - (before.chars if before else 0)
            while len(self._answers) > _ANSWERS_MAX or self._chars > _CHARS_MAX:
                _, oldest = self._answers.popitem(last=False)
                self._chars -= oldest.chars


def _as_it_is(txn: ReadTxn, hit: Hit) -> Hit:
    doc = docs.get(txn, hit.doc_id)
    now = freshness_of(txn, doc) if doc else hit.freshness
    return hit if now == hit.freshness else msgspec.structs.replace(hit, freshness=now)
