"""Notes to measure with: made up, the same on every run, with words as unevenly used as in life."""

import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from kb.home.app import App
from kb.intake.embed.onnx import OnnxEmbedder, builtin_model_dir
from kb.intake.embed.protocol import Embedder, Span
from kb.intake.sync.add import AddOptions
from kb.intake.worker.pool import PoolModels, WorkerPool
from kb.intake.worker.settings import WorkerSettings
from kb.model.config import load
from kb.model.ids import sha256_hex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# As the command and the server set it, and before anybody imports numpy: the algebra's other
# threads wait by spinning, which would count as processor time of whatever runs meanwhile.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_SYLLABLES = (
    "ba",
    "re",
    "mi",
    "to",
    "lan",
    "ver",
    "sin",
    "kor",
    "del",
    "pa",
    "nu",
    "gri",
    "sta",
    "hem",
)
_COMMON = (
    *("the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be"),
    *("by", "on", "not", "he", "his", "but", "at", "this", "have", "from", "or", "had", "an"),
    *("they", "which", "one", "you", "were", "her", "all", "she", "there", "would", "their"),
    *("water", "house", "garden", "meeting", "project", "energy", "market", "school", "river"),
)


_BOOKS = 7
"""Each seed has a vocabulary of its own."""


class Words:
    """A vocabulary of `size` words, drawn with a frequency that falls with the rank."""

    def __init__(self, seed: int, size: int = 20_000) -> None:
        self._random = random.Random(seed)
        made = {
            "".join(self._random.choices(_SYLLABLES, k=self._random.randint(2, 4)))
            for _ in range(size)
        }
        self.words = [*_COMMON, *sorted(made)]
        self._weights = list(accumulate(1 / (rank + 2) for rank in range(len(self.words))))

    def sentence(self) -> str:
        """Eight to twenty words and a full stop."""
        count = self._random.randint(8, 20)
        words = self._random.choices(self.words, cum_weights=self._weights, k=count)
        return f"{' '.join(words).capitalize()}."

    def paragraphs(self, count: int) -> str:
        """Paragraphs of five sentences, about 200 tokens each."""
        return "\n\n".join(" ".join(self.sentence() for _ in range(5)) for _ in range(count))

    def query(self) -> str:
        """Two to five words, none of the commonest."""
        return " ".join(self._random.sample(self.words[40:4_000], self._random.randint(2, 5)))


_NEAR = 12
"""From so many sentences a paragraph of five is drawn."""


class EditedSentences(Words):
    """Sentences of real texts, those of a paragraph from one place; one word in ten is another."""

    def __init__(self, seed: int, texts: Sequence[str]) -> None:
        super().__init__(_BOOKS)
        self._random.seed(seed)
        self._sentences = [
            sentence
            for text in texts
            for sentence in re.split(r"(?<=[.!?。])\s+", text)
            if 20 <= len(sentence) <= 400
        ]
        self._place = 0

    def paragraphs(self, count: int) -> str:
        """As those that are made up, of sentences that lie near each other."""
        self._place = self._random.randrange(len(self._sentences))
        return super().paragraphs(count)

    def sentence(self) -> str:
        """A sentence of one of the texts, edited."""
        near = (self._place + self._random.randrange(_NEAR)) % len(self._sentences)
        words = self._sentences[near].split()
        edits = len(words) // 10 + (self._random.random() < len(words) % 10 / 10)
        others = self._random.choices(self.words, cum_weights=self._weights, k=edits)
        for other in others:
            words[self._random.randrange(len(words))] = other
        return " ".join(words)


def real_texts(data: Path) -> list[str]:
    """The passages of the sets in BEIR layout below a folder."""
    return [
        json.loads(line)["text"]
        for path in sorted(data.glob("*/corpus.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def write_notes(folder: Path, count: int, seed: int = 1) -> None:
    """`count` markdown notes of about 1 KB, a title and two paragraphs each."""
    words = Words(seed)
    for number in range(count):
        sub = folder / f"{number // 500:03d}"
        sub.mkdir(parents=True, exist_ok=True)
        title = words.sentence().rstrip(".")[:60]
        body = words.paragraphs(2)
        (sub / f"note-{number:05d}.md").write_text(f"# {title}\n\n{body}\n", encoding="utf-8")


class InstantEmbedder(OnnxEmbedder):
    """The built-in model's tokenizer and name, with vectors that cost nothing to make.

    What it leaves in a home is searched by the real model at the real speed; only how well the
    hits fit is not to be measured on it.
    """

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Random unit vectors, the same for the same text."""
        import numpy as np

        seeds = [int(sha256_hex(text)[:15], 16) for text in texts]
        rows = np.stack([np.random.default_rng(seed).standard_normal(self.dim) for seed in seeds])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """As the model's own."""
        return super().token_spans_batch(texts)


def take_in(
    home: Path, folder: Path, embedder: Embedder | None = None, *, index: bool = True
) -> None:
    """Add a folder to a home and work every job off, embedding aside, as `kb add` does."""
    with App.open(home, load([], [])) as app:
        with app.parser() as parser:
            app.adder(parser, AddOptions(recursive=True)).add([str(folder)])
        drain(app, embedder)
        if index:
            app.catch_up()


def drain(app: App, embedder: Embedder | None = None) -> None:
    """Work every job off with an embedder, the instant one if none is given."""
    embedder = embedder or InstantEmbedder(builtin_model_dir())
    pool = WorkerPool(app.store, app.content, PoolModels(active=lambda: embedder), WorkerSettings())
    pool.start()
    try:
        pool.drain()
    finally:
        pool.shutdown()


def make_home(home: Path, scratch: Path, passages: int) -> None:
    """A home of about so many passages, in docs of about twenty."""
    write_books(scratch, passages)
    take_in(home, scratch)


def write_books(folder: Path, passages: int, seed: int = _BOOKS, texts: Sequence[str] = ()) -> None:
    """Markdown docs of about twenty passages each, of sentences of these texts if there are any."""
    words = EditedSentences(seed, texts) if texts else Words(seed)
    folder.mkdir(parents=True)
    for number in range(passages // 20):
        sections = (f"## {words.sentence()[:40]}\n\n{words.paragraphs(1)}" for _ in range(20))
        text = f"# Book {number}\n\n" + "\n\n".join(sections)
        (folder / f"book-{number:05d}.md").write_text(text, encoding="utf-8")


def queries(count: int) -> Iterator[str]:
    """Queries whose words occur in the books."""
    words = Words(_BOOKS)
    return (words.query() for _ in range(count))
