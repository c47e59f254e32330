"""The embed job: makes the missing vectors of a doc's chunks under one model."""

import threading
from collections.abc import Callable
from typing import Final

from kb.errors import KbError, StaleToken
from kb.intake.chunks import has_current_title, set_ledger
from kb.intake.embed.protocol import Embedder, FloatVector, checked
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.ids import DocId, JobId
from kb.model.job import Claim
from kb.model.text import Chunk, indexed_text
from kb.store import chunks, docs, log
from kb.store.jobs import queue
from kb.store.kv import WriteTxn
from kb.store.nodes import WorkerReport
from kb.store.store import Store

# The number of texts embedded between two commits: the work that a crash can lose.
TEXTS_PER_COMMIT: Final = 256
# The number of texts embedded between two checks whether to stop: what Ctrl-C waits for.
TEXTS_PER_LOOK: Final = 64


class EmbedHandler:
    """Handles embed jobs for one home, one batch at a time, however many threads there are.

    `embedder` returns the model for the next batch, or None if its change was stopped. `is_next`
    says that searches do not use these vectors yet: no index takes them up, and no doc waits for
    them.
    """

    def __init__(
        self,
        store: Store,
        embedder: Callable[[], Embedder | None],
        stop: threading.Event,
        *,
        is_next: bool = False,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._stop = stop
        self._is_next = is_next
        self._report = WorkerReport(store)
        self._one_at_a_time = threading.Lock()
        self._in_hand: dict[int, int] = {}
        """By thread: the texts that are embedded, while their jobs are not done."""
        self._uncommitted: dict[tuple[str, str], FloatVector] = {}
        """By model and text hash: vectors that a thread has made and not stored yet."""

    @property
    def texts_in_hand(self) -> int:
        """How many texts are embedded whose jobs are not done yet."""
        return sum(tuple(self._in_hand.values()))

    def work(self, claims: list[Claim]) -> None:
        """Do a batch across docs: each text once, the longest first.

        A vector is committed together with the jobs that it completes. On shutdown the vectors made
        so far are stored, and the jobs go back to the queue.
        """
        self._report.begin()
        try:
            self._work(claims)
        finally:
            self._in_hand.pop(threading.get_ident(), None)

    def _work(self, claims: list[Claim]) -> None:
        try:
            embedder = self._embedder()
        except KbError as error:
            self._fail_all(claims, str(error))
            return
        if embedder is None:
            self._finish_all(claims)
            return
        chunks_of_job = self._chunks(claims)
        held, surplus = _fitting(claims, chunks_of_job)
        if surplus:
            with self._store.write() as txn:
                for claim in surplus:
                    _quietly_release(txn, claim)
        doc_chunks = [chunk for claim in held for chunk in chunks_of_job[claim.job.job_id]]
        texts = self._missing(embedder.fingerprint, doc_chunks)
        hashes = list(texts)
        blocks = [hashes[i : i + TEXTS_PER_COMMIT] for i in range(0, len(hashes), TEXTS_PER_COMMIT)]
        for block in blocks[:-1]:
            self._embed(embedder, block, texts, held, chunks_of_job, finish=False)
        self._embed(embedder, blocks[-1] if blocks else [], texts, held, chunks_of_job, finish=True)

    def _chunks(self, claims: list[Claim]) -> dict[JobId, list[tuple[Doc, Chunk]]]:
        """The chunks of each job's doc that are to have vectors."""
        with self._store.read() as txn:
            docs.expect_with_latest(txn, (claim.job.doc_id for claim in claims))
            found = [docs.get(txn, claim.job.doc_id) for claim in claims]
            newest = [docs.latest(txn, doc.source_no) if doc else None for doc in found]
            wanted = [None if doc is None or doc.by_name else doc for doc in newest]
            chunks.expect_of_sources(txn, (doc.source_no for doc in wanted if doc is not None))
            return {
                claim.job.job_id: [(doc, row) for row in chunks.of_source(txn, doc.source_no)]
                if doc is not None
                else []
                for claim, doc in zip(claims, wanted, strict=True)
            }

    def _missing(self, model: str, doc_chunks: list[tuple[Doc, Chunk]]) -> dict[str, str]:
        """The texts without a vector, by their hash."""
        texts: dict[str, str] = {}
        with self._store.read() as txn:
            chunks.expect_vectors(txn, model, (chunk.text_hash for _, chunk in doc_chunks))
            for doc, chunk in doc_chunks:
                # A doc that was just renamed is cut again by its own job. Its texts then have other
                # hashes, and a vector of the new text must not be stored under the old hash.
                if not has_current_title(doc, chunk) or chunk.text_hash in texts:
                    continue
                if not chunks.has_vector(txn, model, chunk.text_hash):
                    texts[chunk.text_hash] = indexed_text(doc.label, chunk.heading, chunk.text)
        return texts

    def _embed(
        self,
        embedder: Embedder,
        block: list[str],
        texts: dict[str, str],
        held: list[Claim],
        chunks_of_job: dict[JobId, list[tuple[Doc, Chunk]]],
        *,
        finish: bool,
    ) -> None:
        model = embedder.fingerprint
        with self._one_at_a_time:
            ready, block = self._made_meanwhile(model, block)
            try:
                made = self._vectors(embedder, block, texts)
            except KbError as error:
                self._fail_all(held, str(error))
                return
            self._uncommitted |= {(model, digest): vector for digest, vector in made.items()}
        stopped = len(made) < len(block)
        failpoint("worker.after_embed")
        try:
            with self._store.write() as txn:
                self._commit(
                    txn,
                    model,
                    ready | made,
                    held,
                    chunks_of_job,
                    finish=finish and not stopped,
                    release=finish and stopped,
                )
                self._report.add(txn, model, len(made))
                failpoint("worker.before_finish")
        finally:
            for digest in made:
                self._uncommitted.pop((model, digest), None)
        failpoint("worker.after_finish")

    def _made_meanwhile(
        self, model: str, block: list[str]
    ) -> "tuple[dict[str, FloatVector], list[str]]":
        """The vectors that another thread is about to store, and the texts still to embed.

        While this thread waited for its turn, others embedded texts that their docs have, too.
        """
        ready: dict[str, FloatVector] = {}
        missing: list[str] = []
        # Looked at before the store: what leaves it meanwhile has been stored.
        uncommitted = dict(self._uncommitted)
        with self._store.read() as txn:
            for digest in block:
                vector = uncommitted.get((model, digest))
                if vector is not None:
                    ready[digest] = vector
                elif not chunks.has_vector(txn, model, digest):
                    missing.append(digest)
        return ready, missing

    def _vectors(
        self, embedder: Embedder, block: list[str], texts: dict[str, str]
    ) -> "dict[str, FloatVector]":
        """Vectors by hash, the longest texts first; some are missing if the pool is stopping."""
        vectors: dict[str, FloatVector] = {}
        longest_first = sorted(block, key=lambda digest: -len(texts[digest]))
        for first in range(0, len(block), TEXTS_PER_LOOK):
            if self._stop.is_set():
                break
            some = longest_first[first : first + TEXTS_PER_LOOK]
            rows = embedder.embed_documents([texts[digest] for digest in some])
            vectors |= zip(some, checked(rows, len(some), embedder.dim), strict=True)
            thread = threading.get_ident()
            self._in_hand[thread] = self._in_hand.get(thread, 0) + len(some)
        return vectors

    def _commit(
        self,
        txn: WriteTxn,
        model: str,
        vectors: "dict[str, FloatVector]",
        held: list[Claim],
        chunks_of_job: dict[JobId, list[tuple[Doc, Chunk]]],
        *,
        finish: bool,
        release: bool,
    ) -> None:
        """Store vectors, and finish the jobs or release them.

        A job that another worker has taken meanwhile gets nothing.
        """
        queue.expect_claims(txn, held)
        queue.expect_keys(txn, (queue.dedupe_key("chunk", claim.job.doc_id) for claim in held))
        docs.expect_with_latest(txn, (claim.job.doc_id for claim in held))
        txn.expect("ledger", (claim.job.doc_id.encode() for claim in held))
        rows = [row for of_job in chunks_of_job.values() for _, row in of_job]
        chunks.expect_of_sources(txn, dict.fromkeys(row.source_no for row in rows))
        chunks.expect_vectors(
            txn, model, (row.text_hash for row in rows if row.text_hash not in vectors)
        )
        log.expect_end(txn, 0)
        live = [claim for claim in held if queue.is_held(txn, claim)]
        hashes = {chunk.text_hash for claim in live for _, chunk in chunks_of_job[claim.job.job_id]}
        new = hashes & vectors.keys()
        for digest in sorted(new):
            chunks.put_vector(txn, model, digest, vectors[digest])
        for claim in live:
            job_chunks = [chunk for _, chunk in chunks_of_job[claim.job.job_id]]
            # At the end, log all chunks: a vector may have come from another doc's job after this
            # doc was cut, and then the dense index does not know of this chunk.
            logged = (
                job_chunks if finish else [chunk for chunk in job_chunks if chunk.text_hash in new]
            )
            if not self._is_next:
                log.append(txn, [chunk.no for chunk in logged], vectors=True)
            if release:
                queue.release(txn, claim)
            elif finish:
                queue.finish(txn, claim)
                if not self._is_next:
                    self._settle(txn, model, claim.job.doc_id)

    def _settle(self, txn: WriteTxn, model: str, doc_id: DocId) -> None:
        """Mark a doc as indexed, unless its chunks wait to be cut or were cut meanwhile.

        Chunks that were cut during this job saw the job as active, and added no other.
        """
        if queue.by_key(txn, queue.dedupe_key("chunk", doc_id)) is not None:
            return
        doc = docs.get(txn, doc_id)
        newest = docs.latest(txn, doc.source_no) if doc else None
        # A newer version has an embed job of its own.
        is_newest = newest is not None and newest.doc_id == doc_id and not newest.by_name
        for chunk in chunks.of_source(txn, newest.source_no) if newest and is_newest else ():
            if has_current_title(newest, chunk) and not chunks.has_vector(
                txn, model, chunk.text_hash
            ):
                key = queue.dedupe_key("embed", doc_id, model)
                queue.enqueue(txn, self._store.clock, "embed", doc_id, key=key)
                return
        set_ledger(txn, self._store, doc_id, "indexing_complete")

    def _finish_all(self, held: list[Claim]) -> None:
        with self._store.write() as txn:
            for claim in held:
                try:
                    queue.finish(txn, claim)
                except StaleToken:
                    continue

    def _fail_all(self, held: list[Claim], reason: str) -> None:
        with self._store.write() as txn:
            for claim in held:
                try:
                    queue.fail(txn, self._store.clock, claim, reason)
                except StaleToken:
                    continue


def _fitting(
    claims: list[Claim], chunks_of_job: dict[JobId, list[tuple[Doc, Chunk]]]
) -> tuple[list[Claim], list[Claim]]:
    """Splits claims: as many as one commit holds, at least one, and the rest."""
    total = 0
    for place, claim in enumerate(claims):
        total += len(chunks_of_job[claim.job.job_id])
        if total > TEXTS_PER_COMMIT and place:
            return claims[:place], claims[place:]
    return claims, []


def _quietly_release(txn: WriteTxn, claim: Claim) -> None:
    try:
        queue.release(txn, claim)
    except StaleToken:
        return
