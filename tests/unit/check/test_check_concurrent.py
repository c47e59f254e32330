"""Whether a home is sound after others were at work on it at the same time."""

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from homes import SmallHome

from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.ingest.changes import tombstone
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store.records import DOCS


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def test_rename_while_embedding_leaves_no_gap(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passages cut anew while the doc's embed job is at work get their vectors, too."""
    home.put("tea.md", "# Tea\n\nGreen tea.")
    home.work("chunk")
    whole = HashingEmbedder.embed_documents
    interruptions: list[Callable[[], object]] = [
        lambda: home.work("chunk"),
        lambda: home.put("tea.md", "# Tea\n\nGreen tea.", title="Chai"),
    ]

    def embed(embedder: HashingEmbedder, texts: Sequence[str]) -> Any:
        while interruptions:
            interruptions.pop()()
        return whole(embedder, texts)

    monkeypatch.setattr(HashingEmbedder, "embed_documents", embed)
    home.work("embed")
    assert home.check().findings == ()
    assert home.check().checked.dense_rows == 1


class CallExecutor:
    """Threads that each repeat one thing on a home until told to stop, and what went wrong."""

    def __init__(self, home: SmallHome) -> None:
        self.home = home
        self.done = threading.Event()
        self.errors: list[BaseException] = []

    def start(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guarded, args=(work,))
        thread.start()
        return thread

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)

    def add(self) -> None:
        """Add, edit and delete under names that are this thread's own."""
        name = threading.get_ident()
        for turn in range(4):
            for number in range(6):
                doc = self.home.put(f"{name}-{number}.md", f"# N\n\nNote {number} says {turn}.")
                if number == turn:
                    tombstone(self.home.store, [doc.doc_id])

    def work(self) -> None:
        while not self.done.is_set():
            self.home.work()

    def compact(self) -> None:
        """Compact with caches of its own, as another process would."""
        other = copy.copy(self.home)
        other.lexical = LexicalIndexes(other.paths.index / "lexical")
        other.dense = DenseIndex(other.paths.index / "dense", other.embedder.fingerprint, 64)
        while not self.done.is_set():
            other.compact(grace_min=0, tombstone_days=0)


def test_adders_workers_and_compactors_at_once(home: SmallHome) -> None:
    """Adds, edits, deletions, jobs and compaction without grace, all at once: the home is sound."""
    crew = CallExecutor(home)
    adders = [crew.start(crew.add) for _ in range(2)]
    others = [crew.start(job) for job in (crew.compact, crew.compact, crew.work, crew.work)]
    for thread in adders:
        thread.join()
    crew.done.set()
    for thread in others:
        thread.join()
    assert crew.errors == []
    home.work()
    assert home.check().findings == ()
    home.compact(grace_min=0)
    home.compact(grace_min=0)
    assert home.check().findings == ()
    with home.store.read() as txn:
        named = {path for _, doc in DOCS.scan(txn) for path in (doc.raw_path, doc.md_path)}
    assert home.files() == named
