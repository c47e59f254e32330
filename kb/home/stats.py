"""How much is there? Docs, chunks, jobs and bytes of one open home, counted."""

import itertools
import math
import os
import stat
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from kb.errors import NotebookUnfit
from kb.home.app import App
from kb.knowledge.notebook import PushReport
from kb.model.node import NodeCaches, WorkerRow
from kb.model.source import is_picture
from kb.search.index import hnsw
from kb.store import chunks, docs
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.nodes import caches_of_nodes, live_workers
from kb.store.records import LEDGER

_LETTERS_MAX: Final = 100
_WAITING_DOCS_MAX: Final = 5_000
_DOCS_AT_ONCE: Final = 500


class DeadLetter(Struct, frozen=True, kw_only=True):
    """A job that failed for good, and why."""

    job_id: str
    kind: str
    doc_id: str
    attempts: int
    reason: str


class NodeWork(Struct, frozen=True, kw_only=True):
    """What the workers of one machine embed."""

    node: str
    workers: int
    """How many processes."""
    texts: int
    """How many texts they have embedded since they last had nothing to do."""
    texts_per_s: float


class Stats(Struct, frozen=True, kw_only=True):
    """Counts; sizes in bytes."""

    home: str
    docs: dict[str, int]
    ledger: dict[str, int]
    passages: int
    vectors: int
    entities: int
    jobs: dict[str, int]
    to_reread: int
    """Docs that an upgrade reads otherwise; their old text serves until a worker has read them."""
    to_recognize: int
    """Docs with pictures that wait for OCR."""
    dead_letters: list[DeadLetter]
    model: str
    pages_without_text: int
    store_bytes: int
    disk_bytes: int
    push: PushReport | None
    """How far the notebook's remote has come; None where nothing was pushed yet."""
    by_name: int = 0
    """Active docs that words of their names find, and no text: pictures, sounds, archives."""
    nodes: list[NodeWork] = []
    """The machines that worked in the last two minutes, where machines share the home."""
    texts_waiting: int = 0
    """How many texts are still to be embedded; counted while such machines work."""
    seconds_left: int | None = None
    """How long that takes at their rate; None if nobody works, or docs are not yet cut."""
    caches: tuple[NodeCaches, ...] = ()
    """How far the caches of each machine had read the log when it last said so, and what is wrong
    with them, where machines share the home."""
    no_graph: str | None = None
    """What is lost without the extra `hnsw`, and how to get it; None where nothing is lost."""


def counted(app: App) -> Stats:
    """Count what a home has. Reads every doc and looks at every file."""
    statuses: Counter[str] = Counter()
    without_text = by_name = 0
    with app.store.read() as txn:
        for doc in docs.all_docs(txn):
            statuses[doc.status] += 1
            by_name += doc.by_name and doc.status == "active"
            if doc.coverage is not None and doc.status == "active" and not is_picture(doc.mime):
                without_text += doc.coverage.pages - doc.coverage.pages_with_text
        ledger = Counter(str(entry.state) for _, entry in LEDGER.scan(txn))
        counts = queue.counts(txn)
        letters = [
            DeadLetter(
                job_id=job.job_id,
                kind=job.kind,
                doc_id=job.doc_id,
                attempts=job.attempts,
                reason=job.last_error or "",
            )
            for job, _ in zip(queue.failed(txn), range(_LETTERS_MAX), strict=False)
        ]
        nodes = nodes_at_work(txn, app.store.clock.now_ms())
        model = app.models.in_use().active.fingerprint
        waiting = texts_to_embed(txn, model) if nodes else 0
        uncut = queue.count_of_kind(txn, "chunk") if nodes else 0
        caches = caches_of_nodes(txn, app.store.clock.now_ms()) if app.store.node else ()
        return Stats(
            nodes=nodes,
            caches=tuple(caches),
            texts_waiting=waiting,
            seconds_left=None if uncut else _seconds_left(nodes, waiting),
            home=app.paths.shown,
            docs=dict(statuses),
            ledger=dict(ledger),
            passages=txn.count("chunks"),
            vectors=txn.count("vectors"),
            entities=txn.count("entities"),
            jobs={"ready": counts.ready, "running": counts.running, "failed": counts.failed},
            to_reread=queue.count_of_kind(txn, "reread"),
            to_recognize=queue.count_of_kind(txn, "ocr"),
            dead_letters=letters,
            model=model,
            pages_without_text=without_text,
            store_bytes=app.store.size_bytes(),
            disk_bytes=_disk_bytes(app.paths.root),
            push=_pushed(app),
            by_name=by_name,
            no_graph=_no_graph(app, txn.count("chunks")),
        )


def without_names(stats: Stats) -> Stats:
    """The counts, without what names docs, and where notes are pushed to."""
    letters = [structs.replace(letter, doc_id="", reason="") for letter in stats.dead_letters]
    return structs.replace(stats, push=None, dead_letters=letters)


def nodes_at_work(txn: ReadTxn, now_ms: int) -> list[NodeWork]:
    """What workers do, by machine; what they embedded before they had nothing to do is past."""
    rows_of: dict[str, list[WorkerRow]] = {}
    for row in live_workers(txn, now_ms):
        rows_of.setdefault(row.node, []).append(row)
    return [
        NodeWork(
            node=node,
            workers=len(rows),
            texts=sum(row.texts for row in rows),
            texts_per_s=round(sum(_rate(row) for row in rows), 1),
        )
        for node, rows in rows_of.items()
    ]


def texts_to_embed(txn: ReadTxn, model: str) -> int:
    """How many texts the docs that wait for vectors of a model still lack, equal ones counted once.

    Looks at 5,000 of those docs; the others are taken to be like them.
    """
    jobs = list(itertools.islice(queue.pending(txn, "embed"), _WAITING_DOCS_MAX))
    lacking: set[str] = set()
    for first in range(0, len(jobs), _DOCS_AT_ONCE):
        ids = [job.doc_id for job in jobs[first : first + _DOCS_AT_ONCE]]
        docs.expect_with_latest(txn, ids)
        found = [doc for ident in ids if (doc := docs.if_latest(txn, ident)) and not doc.by_name]
        chunks.expect_of_sources(txn, (doc.source_no for doc in found))
        texts = {row.text_hash for doc in found for row in chunks.of_source(txn, doc.source_no)}
        texts -= lacking
        chunks.expect_vectors(txn, model, texts)
        lacking |= {text for text in texts if not chunks.has_vector(txn, model, text)}
    if len(jobs) < _WAITING_DOCS_MAX:
        return len(lacking)
    return len(lacking) * queue.count_of_kind(txn, "embed") // len(jobs)


def _rate(row: WorkerRow) -> float:
    spent_ms = row.seen_ms - row.since_ms
    return row.texts * 1000 / spent_ms if spent_ms > 0 else 0.0


def _seconds_left(nodes: list[NodeWork], waiting: int) -> int | None:
    rate = sum(node.texts_per_s for node in nodes)
    return math.ceil(waiting / rate) if rate else None


def _no_graph(app: App, passages: int) -> str | None:
    lack = hnsw.lack(app.settings.index, passages)
    return f"{lack}: {hnsw.how_to_get()}" if lack else None


def _pushed(app: App) -> PushReport | None:
    """None also of a notebook that cannot be read; whoever works with it says so."""
    with suppress(NotebookUnfit):
        return app.notebook.push_report()
    return None


def _disk_bytes(root: Path) -> int:
    """Blocks in use: the store's file is sparse, and backups share files with the home."""
    blocks: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            # Whoever writes meanwhile removes what is unfinished.
            with suppress(FileNotFoundError):
                status = os.lstat(os.path.join(folder, name))
                if stat.S_ISREG(status.st_mode):
                    blocks[status.st_dev, status.st_ino] = status.st_blocks
    return sum(blocks.values()) * 512
