"""Random lives of a home, and its answers compared with those of caches that are made anew."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from fakes import FakeClock
from msgspec import Struct

from kb.home.app import App
from kb.intake.ingest.changes import set_visibility, tombstone
from kb.intake.sync.add import AddOptions
from kb.intake.sync.sync_all import SyncOptions
from kb.model.config import Settings
from kb.model.config.sections import EmbedSettings, IndexSettings, SearchSettings, WorkSettings
from kb.model.doc import OPERATOR, Doc, Scope
from kb.model.search import Hit, SearchRequest
from kb.search.backends import DenseBackend, SearchBackends
from kb.search.engine import Searcher
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import docs

TOP: Final = 10
# Scores are equal to four decimals.
NEAR: Final = 5e-5
SCOPES: Final = (OPERATOR, OPERATOR, Scope(user="bob"), Scope(user=None))
_MODES: Final = ("hybrid", "hybrid", "lexical", "lexical", "dense")
_VOCABULARY: Final = 600
_HAN: Final = ("我们研究生命起源", "命运的生产", "伊利牛奶", "研究生院")
_TAGS: Final = ("#tea", "#harbour", "@ann")
_MINUTE_MS: Final = 60_000


class Tally(Struct):
    """What histories came to."""

    histories: int = 0
    steps: int = 0
    level: int = 0
    """Questions asked while no row was dead: ids, order and scores are those of caches anew."""
    between: int = 0
    """Questions asked while some were, and that found something."""
    overlap: float = 0.0
    """Summed over the questions between: how much of the best ten is the same."""

    @property
    def overlap_mean(self) -> float:
        """Of the best ten, how much is the same on average while some rows are dead."""
        return self.overlap / self.between if self.between else 1.0

    def line(self) -> str:
        return (
            f"{self.histories} histories of {self.steps} steps: {self.level} questions without "
            f"dead rows are answered as by caches anew; of {self.between} others the best "
            f"{TOP} overlap by {self.overlap_mean:.4f} on average"
        )


class History:
    """One home, its folder of files, and what happens to them, drawn from a seed."""

    def __init__(self, root: Path, seed: int, kind: str = "hashing") -> None:
        self.random = random.Random(seed)
        self.root = root
        self.folder = root / "src"
        self.folder.mkdir(parents=True)
        self.clock = FakeClock()
        self.settings = Settings(
            embed=EmbedSettings(kind=kind),
            work=WorkSettings(threads=1, idle_ms=10),
            search=SearchSettings(candidates=self.random.choice((12, 40, 200))),
            index=IndexSettings(dense_mode=self.random.choice(("auto", "auto", "hnsw"))),
        )
        self.app = App.open(root / "home", self.settings, clock=self.clock)
        self.parser = self.app.parser()
        self.pool = self.app.pool()
        self.pool.start()
        self.names = 0
        self.sections = self.random.choice((1, 3, 8))
        # A few rows may only be dead where there are many.
        for _ in range(self.random.choice((3, 12, 40, 160))):
            self._write(self._new())
        self._add()

    def close(self) -> None:
        self.pool.shutdown()
        self.parser.close()
        self.app.close()

    def step(self) -> None:
        """One thing that people do, with all that the commands do after it."""
        steps = (
            *((self._added, 3), (self._edited, 6), (self._lost, 2), (self._renamed, 2)),
            *((self._copied, 1), (self._removed, 1), (self._shown, 3), (self._compacted, 1)),
        )
        (chosen,) = self.random.choices([s for s, _ in steps], [w for _, w in steps])
        chosen()

    def words(self, count: int) -> str:
        """Words of which few are common and most are rare, as in any language."""
        drawn = (int(self.random.paretovariate(0.7)) % _VOCABULARY for _ in range(count))
        return " ".join(f"w{number}x" for number in drawn)

    def questions(self, count: int) -> Iterator[tuple[SearchRequest, Scope]]:
        for _ in range(count):
            query = self.words(self.random.randint(1, 5))
            extra = self.random.random()
            if extra < 0.15:
                query = f'"{self.words(2)}" {query}'
            elif extra < 0.3:
                query = self.random.choice(_HAN)[: self.random.randint(1, 4)]
            elif extra < 0.4:
                query += f" {self.random.choice(_TAGS)}"
            mode = self.random.choice(_MODES)
            yield SearchRequest(query=query, k=TOP, mode=mode), self.random.choice(SCOPES)

    # What happens.

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.md"))

    def _new(self) -> Path:
        self.names += 1
        return self.folder / f"n{self.names}.md"

    def _write(self, path: Path) -> None:
        path.write_text("\n\n".join([f"# {self.words(3)}", *self._parts()]), encoding="utf-8")

    def _parts(self) -> list[str]:
        count = self.random.randint(1, self.sections)
        return [self._part() for _ in range(count)]

    def _part(self) -> str:
        extra = self.random.choice((*_HAN, *_TAGS, *[""] * 12))
        body = self.words(self.random.randint(5, 60))
        return f"## {self.words(2)}\n\n{body} {extra}"

    def _some(self) -> list[Path]:
        files = self._files()
        few = self.random.choice((1, 1, 1, 2, 5, len(files)))
        return self.random.sample(files, min(few, len(files)))

    def _added(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            self._write(self._new())
        self._sync()

    def _edited(self) -> None:
        for path in self._some():
            text = path.read_text(encoding="utf-8")
            if self.random.random() < 0.5:
                path.write_text(f"{text}\n\n{self._part()}", encoding="utf-8")
            else:
                self._write(path)
        self._sync()

    def _lost(self) -> None:
        for path in self._some()[: len(self._files()) - 1]:
            path.unlink()
        self._sync()

    def _renamed(self) -> None:
        for path in self._some():
            path.rename(self._new())
        self._sync()

    def _copied(self) -> None:
        for path in self._some():
            shutil.copy(path, self._new())
        self._sync()

    def _removed(self) -> None:
        found = self._docs()
        if len(found) > 1:
            tombstone(self.app.store, [self.random.choice(found).doc_id])
        assert self.app.catch_up() == []

    def _shown(self) -> None:
        for doc in self.random.sample(self._docs(), min(2, len(self._docs()))):
            shown = self.random.choice(("private", "shared", "public"))
            set_visibility(self.app.store, doc.doc_id, shown)
        assert self.app.catch_up() == []

    def _compacted(self) -> None:
        self.clock.advance(self.random.choice((1, 61, 40 * 24 * 60)) * _MINUTE_MS)
        assert self.app.compactor.run(grace_min=0).problems == ()

    def _docs(self) -> list[Doc]:
        with self.app.store.read() as txn:
            return [doc for doc in docs.all_latest(txn) if doc.status == "active"]

    def _add(self) -> None:
        options = AddOptions(recursive=True, home=self.app.paths.root)
        self.app.adder(self.parser, options).add([str(self.folder)])
        self._work()

    def _sync(self) -> None:
        self.clock.advance(_MINUTE_MS)
        options = SyncOptions(interval_min=0, accept_deletions=True, home=self.app.paths.root)
        report = self.app.syncer(self.parser, options).run()
        assert [line.outcome for line in report.sources] == ["synced"]
        self._work()

    def _work(self) -> None:
        self.pool.drain()
        assert self.app.catch_up() == []


def compare(history: History, questions: int, tally: Tally) -> None:
    """Ask the caches as they are, then caches made anew from the same store."""
    app, folder = history.app, history.root / "anew"
    active = app.models.active()
    model = active.embedder
    lexical = LexicalIndexes(folder / "lexical")
    mode = history.settings.index.dense_mode
    dense = DenseIndex(folder / "dense", model.fingerprint, model.dim, mode=mode)
    sources = SearchBackends(
        lexical=lambda: lexical, dense=lambda _: DenseBackend(embedder=model, index=dense)
    )
    anew = Searcher(app.store, app.content, sources, app.settings.search, 5.0)
    for request, scope in history.questions(questions):
        was = app.searcher.search(request, scope).hits
        fresh = anew.search(request, scope).hits
        if not app.lexical.stats().dead_rows:
            tally.level += 1
            assert_equal(was, fresh)
        elif was or fresh:
            tally.between += 1
            tally.overlap += overlap(was, fresh)
    lexical.close()
    dense.close()
    shutil.rmtree(folder)


def overlap(one: tuple[Hit, ...], other: tuple[Hit, ...]) -> float:
    """How much of two lists of hits is the same, 0 to 1; one of them has some."""
    a, b = {hit.chunk_id for hit in one}, {hit.chunk_id for hit in other}
    return len(a & b) / max(len(a), len(b))


def assert_equal(one: tuple[Hit, ...], other: tuple[Hit, ...]) -> None:
    """The same ids in the same order, and scores that are equal to four decimals."""
    assert [hit.chunk_id for hit in one] == [hit.chunk_id for hit in other]
    for a, b in zip(one, other, strict=True):
        assert abs(a.score - b.score) < NEAR
        plain = msgspec.structs.replace
        assert plain(a, score=0.0) == plain(b, score=0.0)


def run(root: Path, seed: int, tally: Tally, kind: str = "hashing") -> None:
    """One history from its first file to its last step, asked on the way."""
    history = History(root, seed, kind)
    try:
        for _ in range(history.random.randint(6, 14)):
            history.step()
            tally.steps += 1
            if history.random.random() < 0.4:
                compare(history, 10, tally)
        compare(history, 10, tally)
        tally.histories += 1
    finally:
        history.close()
        shutil.rmtree(root)
