"""Do the caches hold what the store holds?"""

from typing import Final

from msgspec import Struct

from kb.check.mends import ByHand, Rebuild
from kb.check.notes import Notes
from kb.errors import StoreBusy, StoreDamaged
from kb.index import DenseIndex, LexicalIndex, file_lock
from kb.store import chunks, docs, log
from kb.store.codec import from_u64
from kb.store.kv import ReadTxn
from kb.store.store import Store

WAIT_S: Final = 30.0
_TRIES: Final = 3
_MANIFEST: Final = "manifest.json"


def _check_files(store: Store, notes: Notes, cache: LexicalIndex | DenseIndex) -> bool:
    """Whether a cache's files are as written. One that was never made is made now."""
    if (cache.folder / _MANIFEST).exists():
        try:
            # Its writer replaces files while it catches up, and that is no damage.
            with file_lock(cache.lock_path, WAIT_S):
                problems = cache.verify()
        except StoreBusy as busy:
            notes.add(cache.name, str(busy), ByHand("run `kb check` again"))
            return False
        except OSError:
            # A home that cannot be written has no writer.
            problems = cache.verify()
    else:
        problem = cache.catch_up(store, wait_s=WAIT_S).problem
        problems = [problem] if problem else []
    for problem in problems:
        notes.add(cache.name, problem, Rebuild("lexical" if cache.name == "lexical" else "dense"))
    return not problems


class _Live(Struct, frozen=True, kw_only=True):
    """What the caches should hold, and as of which log entry."""

    seq: int
    passages: int
    vectors: int


def check_caches(store: Store, notes: Notes, lexical: LexicalIndex, dense: DenseIndex) -> None:
    """Read each cache's files whole, let it catch up, and compare its rows with the store's."""
    sound = [_check_files(store, notes, lexical), _check_files(store, notes, dense)]
    if not all(sound):
        # Catching up would rebuild it, and that is for a repair to do.
        return
    for _ in range(_TRIES):
        states = [cache.catch_up(store, wait_s=WAIT_S) for cache in (lexical, dense)]
        with store.read() as txn:
            live = _live(txn, dense.fingerprint)
        # Else others commit meanwhile, and there is nothing to compare.
        if all(state.watermark == live.seq for state in states):
            _compare(notes, live, lexical, dense)
            return


def _live(txn: ReadTxn, fingerprint: str) -> _Live:
    passages = vectors = 0
    active: tuple[int, bool] = (0, False)
    for key, _ in txn.scan("chunks"):
        try:
            chunk = chunks.get(txn, from_u64(key))
            if chunk is not None and chunk.source_no != active[0]:
                doc = docs.latest(txn, chunk.source_no)
                active = (chunk.source_no, doc is not None and doc.status == "active")
        except StoreDamaged:
            continue
        if chunk is not None and active[1]:
            passages += 1
            vectors += chunks.has_vector(txn, fingerprint, chunk.text_hash)
    return _Live(seq=log.last_seq(txn), passages=passages, vectors=vectors)


def _compare(notes: Notes, live: _Live, lexical: LexicalIndex, dense: DenseIndex) -> None:
    words, vectors = lexical.stats().rows, dense.stats().rows
    notes.count("lexical_rows", words)
    notes.count("dense_rows", vectors)
    if words != live.passages:
        problem = f"lexical: {words} passages, but {live.passages} are live"
        notes.add("lexical", problem, Rebuild("lexical"))
    if vectors != live.vectors:
        problem = f"dense: {vectors} vectors, but {live.vectors} are live"
        notes.add("dense", problem, Rebuild("dense"))
