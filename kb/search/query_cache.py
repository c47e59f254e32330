"""A cache of search results: an equal request to an unchanged store is not computed again."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from kb.model.doc import Scope
from kb.model.search import SearchRequest, SearchResult
from kb.search.engine import Searcher
from kb.search.freshness import FileState, compared_file, file_state, freshness_by_state
from kb.store import docs
from kb.store.kv import ReadTxn
from kb.store.store import Store

_RESULTS_MAX: Final = 1_024
_CHARS_MAX: Final = 8 << 20
# What a hit takes beside its text, roughly.
_HIT_CHARS: Final = 1_024
# The largest share of the cache for one result, so that no request evicts all others.
_SHARE_MAX: Final = 1 / 16

_CacheKey = tuple[SearchRequest, Scope]
_FileStates = tuple[tuple[str, FileState], ...]


class _CachedResult(Struct, frozen=True, kw_only=True):
    last_txn: int
    manifests: "_FileStates"
    """Of the lexical indexes: a rebuilt index may order otherwise, even in an unchanged store."""
    result: SearchResult
    hit_files: "_FileStates | None" = None
    """The files of the hits, as they were at the first reuse; None before it."""

    @property
    def chars(self) -> int:
        """Its approximate size."""
        texts = sum(len(hit.text) + _HIT_CHARS for hit in self.result.hits)
        return len(self.result.query) + texts


class CachingSearcher(Searcher):
    """A searcher that keeps results by request and scope until the store or an index changes.

    The cache is bounded and evicts the least recently used result. No store tells of changes to
    the files of the hits, so each lookup checks these files: where one has changed, or only its
    bytes could tell, the result is computed again. Results with warnings are not kept, because the
    cause of a warning may pass without a change of the store.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._results: OrderedDict[_CacheKey, _CachedResult] = OrderedDict()
        self._chars = 0
        self._lock = threading.Lock()

    def search(self, request: SearchRequest, scope: Scope) -> SearchResult:
        """As `Searcher.search`, byte for byte."""
        key = (request, scope)
        cached = self._get(key)
        if (
            cached is not None
            and cached.last_txn == self._store.last_txn()
            and self._is_valid(key, cached)
        ):
            return cached.result
        result, commit = self._searched(request, scope)
        if not result.warnings and commit is not None:
            manifests = _file_states(self._backends.lexical().manifests())
            self._put(key, _CachedResult(last_txn=commit, manifests=manifests, result=result))
        return result

    def _get(self, key: _CacheKey) -> _CachedResult | None:
        with self._lock:
            cached = self._results.get(key)
            if cached is not None:
                self._results.move_to_end(key)
            return cached

    def _is_valid(self, key: _CacheKey, cached: _CachedResult) -> bool:
        """Whether the lexical indexes are unchanged, and the file of each hit is as fresh."""
        if not _are_unchanged(cached.manifests):
            return False
        if cached.hit_files is not None:
            return _are_unchanged(cached.hit_files)
        with self._store.read() as txn:
            docs.expect(txn, (hit.doc_id for hit in cached.result.hits))
            if txn.last_txn() != cached.last_txn:
                return False
            hit_files = _hit_file_states(txn, cached.result, self._store)
        if hit_files is not None:
            self._put(key, msgspec.structs.replace(cached, hit_files=hit_files))
        return hit_files is not None

    def _put(self, key: _CacheKey, cached: _CachedResult) -> None:
        if cached.chars > _CHARS_MAX * _SHARE_MAX:
            return
        with self._lock:
            replaced = self._results.pop(key, None)
            self._results[key] = cached
            self._chars += cached.chars - (replaced.chars if replaced else 0)
            while len(self._results) > _RESULTS_MAX or self._chars > _CHARS_MAX:
                _, oldest = self._results.popitem(last=False)
                self._chars -= oldest.chars


def _file_states(names: Iterable[str]) -> _FileStates:
    return tuple((name, file_state(name)) for name in names)


def _are_unchanged(states: _FileStates) -> bool:
    return all(file_state(name) == state for name, state in states)


def _hit_file_states(txn: ReadTxn, result: SearchResult, store: Store) -> _FileStates | None:
    """The states of the hits' files; None where a state alone does not tell a hit's freshness."""
    states: dict[str, FileState] = {}
    for hit in result.hits:
        doc = docs.get(txn, hit.doc_id)
        name = compared_file(doc, store) if doc else None
        if doc is None or name is None:
            # The freshness of a web page comes from the store.
            continue
        states[name] = file_state(name)
        if freshness_by_state(txn, doc, states[name]) != hit.freshness:
            return None
    return tuple(states.items())
