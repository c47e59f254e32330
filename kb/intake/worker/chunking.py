"""The chunk job: a doc's markdown becomes chunks that can be found by words."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct, structs

from kb.errors import KbError, StaleToken
from kb.intake.chunker.blocks import parse_blocks
from kb.intake.chunker.chunking import BlocksOf, chunk_many
from kb.intake.chunker.definitions import code_blocks
from kb.intake.chunker.rules import ENTRY_SECTION_LEVEL, OVERLAP_TOKENS, TOKENS_MAX
from kb.intake.chunks import (
    ChunkedDoc,
    build_chunks,
    expect_writes,
    set_ledger,
    write_chunks,
)
from kb.intake.embed.protocol import Embedder
from kb.model.code import is_code
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.ids import JobId
from kb.model.job import Claim
from kb.model.text import ChunkDraft
from kb.store import docs
from kb.store.content.files import ContentStore
from kb.store.jobs import queue
from kb.store.kv import WriteTxn
from kb.store.store import Store

# Of a file whose text comes along with those of others.
_EXPECTED_BYTES_MAX: Final = 64 << 10


class ChunkHandler:
    """Handles chunk jobs for one home."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        embedder: Callable[[], Embedder],
        tokens_max: int,
        overlap_tokens: int,
        *,
        entry_tokens_max: int = TOKENS_MAX,
        entry_overlap_tokens: int = OVERLAP_TOKENS,
    ) -> None:
        self._store = store
        self._content = content
        self._embedder = embedder
        self._tokens_max = tokens_max
        self._overlap_tokens = overlap_tokens
        self._entry_tokens_max = entry_tokens_max
        self._entry_overlap_tokens = entry_overlap_tokens

    def work(self, claims: list[Claim]) -> None:
        """Do a batch: cut outside any transaction, then write chunks and finish jobs in one.

        A doc that cannot be cut fails alone. Running a batch twice gives the same chunks.
        """
        loaded: list[tuple[Claim, Doc, str]] = []
        failures: list[tuple[Claim, str]] = []
        for claim, doc in self._docs(claims):
            try:
                if doc is not None:
                    markdown = self._content.read(doc.md_path, doc.md_sha256).decode()
                    loaded.append((claim, doc, markdown))
            except (KbError, UnicodeDecodeError) as error:
                failures.append((claim, str(error)))
        embedder = self._embedder()
        cuts = self._cut(embedder, loaded)
        failpoint("worker.after_chunk")
        with self._store.write() as txn:
            queue.expect_claims(txn, claims)
            docs.expect_latest(txn, (doc.source_no for _, doc, _ in loaded))
            expect_writes(txn, list(cuts.values()), embedder.fingerprint)
            failed = {claim.job.job_id: reason for claim, reason in failures}
            for claim in claims:
                cut, failure = cuts.get(claim.job.job_id), failed.get(claim.job.job_id)
                self._commit_one(txn, claim, cut, failure, embedder.fingerprint)
            failpoint("worker.before_finish")
        failpoint("worker.after_finish")

    def _docs(self, claims: list[Claim]) -> list[tuple[Claim, Doc | None]]:
        """The doc of each claim that is to be cut; None if a newer version has replaced it."""
        with self._store.read() as txn:
            docs.expect_with_latest(txn, (claim.job.doc_id for claim in claims))
            pairs = [(claim, docs.if_latest(txn, claim.job.doc_id)) for claim in claims]
            due = [doc for _, doc in pairs if doc is not None]
            small = [doc.md_path for doc in due if doc.raw_bytes <= _EXPECTED_BYTES_MAX]
            self._content.expect(txn, small)
        return pairs

    def _cut(
        self, embedder: Embedder, loaded: list[tuple[Claim, Doc, str]]
    ) -> dict[JobId, ChunkedDoc]:
        entries = [item for item in loaded if item[1].entry is not None]
        others = [item for item in loaded if item[1].entry is None]
        return {
            **self._cut_alike(embedder, others, self._tokens_max, self._overlap_tokens, None),
            **self._cut_alike(
                embedder,
                entries,
                self._entry_tokens_max,
                self._entry_overlap_tokens,
                ENTRY_SECTION_LEVEL,
            ),
        }

    def _cut_alike(
        self,
        embedder: Embedder,
        loaded: list[tuple[Claim, Doc, str]],
        tokens_max: int,
        overlap_tokens: int,
        section_level: int | None,
    ) -> dict[JobId, ChunkedDoc]:
        parts = [(claim, doc, part) for claim, doc, text in loaded for part in _parts(doc, text)]
        chunk_lists = chunk_many(
            [part.text for _, _, part in parts],
            titles=[doc.label for _, doc, _ in parts],
            spans_of=embedder.token_spans_batch,
            tokens_max=tokens_max,
            overlap_tokens=overlap_tokens,
            section_level=section_level,
            blocks_of=[_blocks_of(doc) for _, doc, _ in parts],
        )
        cuts: dict[JobId, list[ChunkDraft]] = {claim.job.job_id: [] for claim, _, _ in loaded}
        for (claim, _, part), drafts in zip(parts, chunk_lists, strict=True):
            cuts[claim.job.job_id] += [_moved(draft, part.start) for draft in drafts]
        return {
            claim.job.job_id: build_chunks(doc, markdown, cuts[claim.job.job_id])
            for claim, doc, markdown in loaded
        }

    def _commit_one(
        self,
        txn: WriteTxn,
        claim: Claim,
        cut: ChunkedDoc | None,
        failure: str | None,
        model: str,
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
        if newest.label != cut.doc.label:
            # The doc was renamed since it was cut, so it is cut again under the new title.
            key = queue.dedupe_key("chunk", newest.doc_id)
            queue.enqueue(txn, self._store.clock, "chunk", newest.doc_id, key=key)
            return
        write_chunks(txn, self._store, cut, model)


class _CutAlone(Struct, frozen=True):
    """A part of a markdown that is cut as if it were all."""

    start: int
    text: str


def _parts(doc: Doc, markdown: str) -> list[_CutAlone]:
    """The whole; of a mail its own text, and each earlier mail that it repeats.

    So no chunk of its own says what others wrote, and an earlier mail is cut alike in all answers.
    """
    starts = [0, *(doc.mail.earlier if doc.mail else ()), len(markdown)]
    return [_CutAlone(start, markdown[start:end]) for start, end in itertools.pairwise(starts)]


def _moved(draft: ChunkDraft, by: int) -> ChunkDraft:
    return structs.replace(draft, start=draft.start + by, end=draft.end + by) if by else draft


def _blocks_of(doc: Doc) -> BlocksOf:
    return partial(code_blocks, definitions=doc.definitions) if is_code(doc.mime) else parse_blocks
