"""How much is there? Docs, chunks, jobs and bytes of one open home, counted."""

import os
import stat
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import NotebookUnfit
from kb.home.app import App
from kb.knowledge.notebook import PushReport
from kb.model.source import is_picture
from kb.store import docs
from kb.store.jobs import queue
from kb.store.records import LEDGER

_LETTERS_MAX: Final = 100


class DeadLetter(Struct, frozen=True, kw_only=True):
    """A job that failed for good, and why."""

    job_id: str
    kind: str
    doc_id: str
    attempts: int
    reason: str


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


def counted(app: App) -> Stats:
    """Count what a home has. Reads every doc and looks at every file."""
    statuses: Counter[str] = Counter()
    without_text = 0
    with app.store.read() as txn:
        for doc in docs.all_docs(txn):
            statuses[doc.status] += 1
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
        return Stats(
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
            model=app.models.in_use().active.fingerprint,
            pages_without_text=without_text,
            store_bytes=app.store.size_bytes(),
            disk_bytes=_disk_bytes(app.paths.root),
            push=_pushed(app),
        )


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
