"""Answers that still hold: the same question to an unchanged store is not worked out again."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import msgspec
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

_Asked = tuple[SearchRequest, Scope]
_Stamps = tuple[tuple[str, Stamp], ...]


class _Answer(Struct, frozen=True, kw_only=True):
    last_txn: int
    words: "_Stamps"
    """Of the indexes of words: one that is written anew orders otherwise, in an unchanged store."""
    result: SearchResult
    files: "_Stamps | None" = None
    """Those that the hits are compared with, as they were; None until it is asked for again."""

    @property
    def chars(self) -> int:
        """About how much room it takes."""
        texts = sum(len(hit.text) + _HIT_CHARS for hit in self.result.hits)
        return len(self.result.query) + texts


class RememberingSearcher(Searcher):
    """A searcher that keeps its answers, by request and scope, until the store or an index changes.

    What is kept is bounded, and the oldest goes first. Each hit's file is looked at each time, for
    no store tells of that; where one has moved on, or its bytes had to be read, the answer is
    worked out. Answers with warnings are not kept: what they warn of may pass without a change of
    the store.
    """

    def __init__(self, *args: Any, **said: Any) -> None:
        super().__init__(*args, **said)
        self._answers: OrderedDict[_Asked, _Answer] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def search(self, request: SearchRequest, scope: Scope) -> SearchResult:
        """As `Searcher.search`, byte for byte."""
        asked = (request, scope)
        last_txn = self._store.last_txn()
        known = self._known(asked)
        if known is not None and known.last_txn == last_txn and self._holds(asked, known):
            return known.result
        result = super().search(request, scope)
        if not result.warnings and self._store.last_txn() == last_txn:
            words = _stamps(self._sources.lexical().manifests())
            self._keep(asked, _Answer(last_txn=last_txn, words=words, result=result))
        return result

    def _known(self, asked: _Asked) -> _Answer | None:
        with self._lock:
            answer = self._answers.get(asked)
            if answer is not None:
                self._answers.move_to_end(asked)
            return answer

    def _holds(self, asked: _Asked, known: _Answer) -> bool:
        """Whether the indexes of words are as they were, and each hit's file as fresh."""
        if not _are_now(known.words):
            return False
        if known.files is not None:
            return _are_now(known.files)
        with self._store.read() as txn:
            if txn.last_txn() != known.last_txn:
                return False
            files = _files(txn, known.result)
        if files is not None:
            self._keep(asked, msgspec.structs.replace(known, files=files))
        return files is not None

    def _keep(self, asked: _Asked, answer: _Answer) -> None:
        if answer.chars > _CHARS_MAX * _SHARE_MAX:
            return
        with self._lock:
            before = self._answers.pop(asked, None)
            self._answers[asked] = answer
            self._chars += answer.chars - (before.chars if before else 0)
            while len(self._answers) > _ANSWERS_MAX or self._chars > _CHARS_MAX:
                _, oldest = self._answers.popitem(last=False)
                self._chars -= oldest.chars


def _stamps(names: Iterable[str]) -> _Stamps:
    return tuple((name, stamp_of(name)) for name in names)


def _are_now(stamps: _Stamps) -> bool:
    return all(stamp_of(name) == stamp for name, stamp in stamps)


def _files(txn: ReadTxn, result: SearchResult) -> _Stamps | None:
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
