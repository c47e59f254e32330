"""An archive of a pack, taken into a fresh home: nothing is embedded on the way.

    python tests/bench/bench_packs.py [PASSAGES]

`import_packs` is also a part of tests/bench/run.py.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus

from kb.home.app import App
from kb.intake.sync.sync_all import SyncOptions
from kb.knowledge.packs.export import ArchiveSelection, export
from kb.model.config import load
from kb.store import docs
from kb.store.jobs import queue

ROUNDS = 5


def import_packs(scratch: Path, passages: int) -> Iterator[dict[str, Any]]:
    """Rows for one archive: to be whole in the store, and besides in both caches.

    The best of several, each in a home of its own, for other work disturbs what writes so much.
    """
    archive = _exported(scratch, passages)
    taken, found = zip(
        *(_imported(scratch / f"to-{n}", archive) for n in range(ROUNDS)), strict=True
    )
    mb = archive.stat().st_size / 1e6
    yield {"name": f"import {passages} passages", "seconds": min(taken), "archive_mb": mb}
    yield {"name": "import, caches level", "seconds": min(found)}


def _exported(scratch: Path, passages: int) -> Path:
    corpus.write_books(scratch / "books", passages)
    with App.open(scratch / "from", load([], [])) as app:
        app.pool()
    corpus.take_in(scratch / "from", scratch / "books")
    with App.open(scratch / "from", load([], [])) as app:
        with app.store.read() as txn:
            found = tuple(docs.all_latest(txn))
        wanted = ArchiveSelection(pack_id="books", title="", version="1", docs=found)
        export(app.store, app.content, wanted, scratch / "books.tar")
    return scratch / "books.tar"


def _imported(home: Path, archive: Path) -> tuple[float, float]:
    """Seconds until the store has it, and until the caches do."""
    started = time.perf_counter()
    with App.open(home, load([], [])) as app, app.parser() as parser:
        placed = app.packs.place(app.packs.read(str(archive)))
        asked = SyncOptions(only=placed.origin_id)
        report = app.syncer(parser, asked, ready=placed.ready).run()
        taken = time.perf_counter() - started
        with app.store.read() as txn:
            counts = queue.counts(txn)
        assert report.added == len(placed.pack.manifest.docs)
        assert (counts.ready, counts.running, counts.failed) == (0, 0, 0)
        assert app.catch_up() == []
        return taken, time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    passages = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    with tempfile.TemporaryDirectory() as temporary:
        for row in import_packs(Path(temporary), passages):
            print(row, flush=True)


if __name__ == "__main__":
    main()
