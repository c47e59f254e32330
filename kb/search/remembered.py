"""Answers that still hold: the same question to an unchanged store is not worked out again."""

import threading
from collections import OrderedDict
from typing import Any, Final

from msgspec import Struct

from kb.model.doc import Scope
from kb.model.search import SearchRequest, SearchResult
from kb.search.engine import Searcher
from kb.search.freshness import Stamp, file_of, stamp_of, told_by
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
    files: tuple[tuple[str, Stamp], ...]
    """Those that the hits are compared with, as they were then."""
    chars: int


class RememberingSearcher(Searcher):
    """A searcher that keeps its answers, by request and scope, until the store changes.

    What is kept is bounded, and the oldest goes first. Each hit's file is looked at each time, for
    no store tells of that; where one has moved on, or its bytes had to be read, the answer is
    worked out. Answers with warnings are not kept: what they warn of may pass without a change of
    the store.
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
        if known is not None and all(stamp_of(name) == stamp for name, stamp in known.files):
            return known.result
        result = super().search(request, scope)
        if not result.warnings:
            with self._store.read() as txn:
                files = _files(txn, result)
                if files is not None and txn.last_txn() == last_txn:
                    self._keep((request, scope), result, files, last_txn)
        return result

    def _known(self, request: SearchRequest, scope: Scope, last_txn: int) -> _Answer | None:
        with self._lock:
            answer = self._answers.get((request, scope))
            if answer is None or answer.last_txn != last_txn:
                return None
            self._answers.move_to_end((request, scope))
            return answer

    def _keep(
        self,
        asked: tuple[SearchRequest, Scope],
        result: SearchResult,
        files: tuple[tuple[str, Stamp], ...],
        last_txn: int,
    ) -> None:
        chars = len(result.query) + sum(len(hit.text) + _HIT_CHARS for hit in result.hits)
        if chars > _CHARS_MAX * _SHARE_MAX:
            return
        with self._lock:
            before = self._answers.pop(asked, None)
            self._answers[asked] = _Answer(
                last_txn=last_txn, result=result, files=files, chars=chars
            )
            self._chars += chars - (before.chars if before else 0)
            while len(self._answers) > _ANSWERS_MAX or self._chars > _CHARS_MAX:
                _, oldest = self._answers.popitem(last=False)
                self._chars -= oldest.chars


def _files(txn: ReadTxn, result: SearchResult) -> tuple[tuple[str, Stamp], ...] | None:
    """The hits' files as they are; None where this alone does not tell how fresh a hit is."""
    files: dict[str, Stamp] = {}
    for hit in result.hits:
        doc = docs.get(txn, hit.doc_id)
        name = file_of(doc) if doc else None
        if doc is None or name is None:
            # A page is what the store says of it.
            continue
        files[name] = stamp_of(name)
        if told_by(txn, doc, files[name]) != hit.freshness:
            return None
    return tuple(files.items())
