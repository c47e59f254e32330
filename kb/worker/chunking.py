"""The chunk job: a doc's markdown becomes passages that can be found by words."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from kb.chunker import chunk_many
from kb.content.files import ContentStore
from kb.embed.protocol import Embedder
from kb.entities import extract
from kb.errors import KbError, StaleToken
from kb.failpoints import failpoint
from kb.jobs import queue
from kb.model.doc import Doc, LedgerState
from kb.model.ids import ChunkId, ChunkNo, DocId, chunk_id, sha256_hex
from kb.model.job import Claim
from kb.model.text import Chunk, Mention, Passage, indexed_text
from kb.store import chunks, docs, embedders, log
from kb.store.kv import WriteTxn
from kb.store.meta import next_number
from kb.store.records import CHUNK_IDS, LEDGER
from kb.store.store import Store

TEXT_HASH_HEX: Final = 32


class Cut(Struct, frozen=True):
    """A doc's passages as they will be stored; numbers are given in the transaction."""

    claim: Claim
    doc: Doc
    passages: list[Passage]
    mentions: list[list[Mention]]
    lines: list[int]
    text_hashes: list[str]
    ids: list[ChunkId]


class Chunking:
    """Handles chunk jobs for one home."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        embedder: Callable[[], Embedder],
        tokens_max: int,
        overlap_tokens: int,
    ) -> None:
        self._store = store
        self._content = content
        self._embedder = embedder
        self._tokens_max = tokens_max
        self._overlap_tokens = overlap_tokens

    def work(self, claims: list[Claim]) -> None:
        """Do a batch: cut outside any transaction, then write passages and finish jobs in one.

        A doc that cannot be cut fails alone. Running it twice gives the same passages.
        """
        loaded: list[tuple[Claim, Doc, str]] = []
        failures: list[tuple[Claim, str]] = []
        for claim in claims:
            try:
                doc = self._load(claim)
                if doc is not None:
                    markdown = self._content.read(doc.md_path, doc.md_sha256).decode()
                    loaded.append((claim, doc, markdown))
            except (KbError, UnicodeDecodeError) as error:
                failures.append((claim, str(error)))
        cuts = self._cut(loaded)
        failpoint("worker.after_chunk")
        with self._store.write() as txn:
            done = {cut.claim.job.job_id: cut for cut in cuts}
            failed = {claim.job.job_id: reason for claim, reason in failures}
            for claim in claims:
                self._commit_one(
                    txn, claim, done.get(claim.job.job_id), failed.get(claim.job.job_id)
                )
            failpoint("worker.before_finish")
        failpoint("worker.after_finish")

    def _load(self, claim: Claim) -> Doc | None:
        """The doc to cut; None where a newer version has taken its place."""
        with self._store.read() as txn:
            doc = docs.get(txn, claim.job.doc_id)
            newest = docs.latest(txn, doc.source_no) if doc else None
        return doc if newest is not None and newest.doc_id == claim.job.doc_id else None

    def _cut(self, loaded: list[tuple[Claim, Doc, str]]) -> list[Cut]:
        passages = chunk_many(
            [markdown for _, _, markdown in loaded],
            titles=[doc.title for _, doc, _ in loaded],
            spans_of=self._embedder().token_spans_batch,
            tokens_max=self._tokens_max,
            overlap_tokens=self._overlap_tokens,
        )
        return [
            _described(claim, doc, markdown, cut)
            for (claim, doc, markdown), cut in zip(loaded, passages, strict=True)
        ]

    def _commit_one(
        self, txn: WriteTxn, claim: Claim, cut: Cut | None, failure: str | None
    ) -> None:
        try:
            if failure is not None:
                queue.fail(txn, self._store.clock, claim, failure)
                return
            queue.finish(txn, claim)
        except StaleToken:
            return
        newest = docs.latest(txn, cut.doc.source_no) if cut else None
        if cut is None or newest is None or newest.doc_id != cut.doc.doc_id:
            set_ledger(txn, self._store, claim.job.doc_id, "indexing_complete")
            return
        if newest.title != cut.doc.title:
            # Renamed since it was cut: cut again under the new title.
            key = queue.dedupe_key("chunk", newest.doc_id)
            queue.enqueue(txn, self._store.clock, "chunk", newest.doc_id, key=key)
            return
        self._write_cut(txn, cut)

    def _write_cut(self, txn: WriteTxn, cut: Cut) -> None:
        rows = [self._row(txn, cut, ordinal) for ordinal in range(len(cut.passages))]
        touched = [row.no for row in rows if _hash_of(txn, row.no) != row.text_hash]
        mentions = dict(zip((row.no for row in rows), cut.mentions, strict=True))
        gone = chunks.replace_all(txn, cut.doc.source_no, rows, mentions)
        log.append(txn, [*touched, *(chunk.no for chunk in gone)], words=True, vectors=True)
        doc_id, hashes = cut.doc.doc_id, [row.text_hash for row in rows]
        known = embedders.in_use(txn)
        model = known.active.fingerprint if known else self._embedder().fingerprint
        if _lacks(txn, model, hashes):
            key = queue.dedupe_key("embed", doc_id, model)
            queue.enqueue(txn, self._store.clock, "embed", doc_id, key=key)
        else:
            set_ledger(txn, self._store, doc_id, "indexing_complete")
        if known and known.next and _lacks(txn, known.next.fingerprint, hashes):
            key = queue.dedupe_key("reembed", doc_id)
            queue.enqueue(txn, self._store.clock, "reembed", doc_id, key=key)

    def _row(self, txn: WriteTxn, cut: Cut, ordinal: int) -> Chunk:
        passage, ident = cut.passages[ordinal], cut.ids[ordinal]
        known = CHUNK_IDS.get(txn, ident.encode())
        return Chunk(
            chunk_id=ident,
            no=known.no if known else ChunkNo(next_number(txn, "chunk")),
            doc_id=cut.doc.doc_id,
            lsid=cut.doc.lsid,
            source_no=cut.doc.source_no,
            ordinal=ordinal,
            text=passage.text,
            start=passage.start,
            end=passage.end,
            heading=passage.heading,
            page=passage.page,
            line=cut.lines[ordinal],
            text_hash=cut.text_hashes[ordinal],
            tokens=passage.tokens,
            entities=tuple(mention.key for mention in cut.mentions[ordinal]),
        )


def _described(claim: Claim, doc: Doc, markdown: str, passages: list[Passage]) -> Cut:
    occurrences: Counter[str] = Counter()
    ids: list[ChunkId] = []
    for passage in passages:
        ids.append(chunk_id(doc.lsid, passage.text, occurrences[passage.text]))
        occurrences[passage.text] += 1
    return Cut(
        claim,
        doc,
        passages,
        [extract(passage.text) for passage in passages],
        line_numbers(markdown, [passage.start for passage in passages]),
        [text_hash(doc.title, passage.heading, passage.text) for passage in passages],
        ids,
    )


def line_numbers(markdown: str, offsets: list[int]) -> list[int]:
    """The 1-based line of each offset; offsets ascend, and the text is read once."""
    numbers: list[int] = []
    line, last = 1, 0
    for offset in offsets:
        line += (
            markdown.count("\n", last, offset)
            if offset >= last
            else -markdown.count("\n", offset, last)
        )
        last = offset
        numbers.append(line)
    return numbers


def text_hash(title: str, heading: tuple[str, ...], text: str) -> str:
    """The key under which a passage's vector is kept: 32 hex digits of its indexed text."""
    return sha256_hex(indexed_text(title, heading, text))[:TEXT_HASH_HEX]


def _lacks(txn: WriteTxn, model: str, hashes: list[str]) -> bool:
    return not all(chunks.has_vector(txn, model, digest) for digest in hashes)


def _hash_of(txn: WriteTxn, no: ChunkNo) -> str | None:
    old = chunks.get(txn, no)
    return old.text_hash if old else None


def set_ledger(txn: WriteTxn, store: Store, doc_id: DocId, state: LedgerState) -> None:
    """Move a doc's ledger entry on, if it has one."""
    entry = LEDGER.get(txn, doc_id.encode())
    if entry is not None and entry.state != state:
        moved = msgspec.structs.replace(entry, state=state, updated_ms=store.clock.now_ms())
        LEDGER.put(txn, doc_id.encode(), moved)
