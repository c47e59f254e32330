"""Does the model read more than it must? Prints one JSON document; `make bench-embedding`.

    python tests/bench/bench_embedding.py

Counts the tokens that the built-in model is run on while notes are taken in, of which many are
copies or end with the same boilerplate, against the tokens of the distinct texts among them. Then
measures the processor time of a token by the length of its text: what packing short texts into one
run, or padding them to one length, could gain or cost.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import corpus

from kb.home.app import App
from kb.intake.embed.onnx import OnnxEmbedder, builtin_model_dir
from kb.model.config import load
from kb.model.text import indexed_text
from kb.store import chunks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOTES: Final = 1_500
BOILERPLATES: Final = 100
LENGTHS: Final = (8, 16, 32, 64, 128, 254)
ROUNDS: Final = 9


class CountingEmbedder(corpus.InstantEmbedder):
    """Counts the tokens that the model would be run on."""

    tokens_run = 0

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """As the instant embedder's."""
        self.tokens_run += sum(map(len, self._token_rows(texts, "")))
        # As long as a quick model takes, so that batches meet.
        time.sleep(0.001 * len(texts))
        return super().embed_documents(texts)

    def tokens_of(self, texts: Sequence[str]) -> int:
        """How many tokens the model reads of these."""
        return sum(map(len, self._token_rows(texts, "")))


def write_notes(folder: Path) -> None:
    """Every second note is one of a hundred licences; the others end with a boilerplate."""
    words = corpus.Words(3)
    same = [words.paragraphs(2) for _ in range(BOILERPLATES)]
    folder.mkdir()
    for number in range(NOTES):
        shared = same[number // 2 % BOILERPLATES]
        text = f"# Licence\n\n{shared}\n"
        if number % 2:
            text = f"# Note {number}\n\n{words.paragraphs(1)}\n\n## Terms\n\n{shared}\n"
        (folder / f"{number}.md").write_text(text)


def tokens(scratch: Path) -> dict[str, Any]:
    """What is read of all that is taken in."""
    write_notes(scratch / "notes")
    embedder = CountingEmbedder(builtin_model_dir())
    corpus.take_in(scratch / "home", scratch / "notes", embedder)
    with (
        App.open(scratch / "home", load([], []), create=False) as app,
        app.store.read() as txn,
    ):
        found = [chunks.get_active(txn, no) for no in chunks.all_numbers(txn)]
        rows = [row for row in found if row is not None]
        texts = [indexed_text(doc.label, chunk.heading, chunk.text) for chunk, doc in rows]
        bodies = {chunk.text: text for (chunk, _), text in zip(rows, texts, strict=True)}
    return {
        "passages": len(texts),
        "distinct": len(set(texts)),
        "tokens_of_all": embedder.tokens_of(texts),
        "tokens_needed": embedder.tokens_of(sorted(set(texts))),
        "tokens_run": embedder.tokens_run,
        "tokens_if_titles_did_not_count": embedder.tokens_of(sorted(bodies.values())),
    }


def by_length() -> dict[str, float]:
    """Microseconds of one core for a token, by the tokens of its text; medians."""
    import numpy as np

    embedder = OnnxEmbedder(builtin_model_dir(), threads=1)
    session = embedder._loaded_session()
    took: dict[str, float] = {}
    for length in LENGTHS:
        row = np.random.default_rng(length).integers(1_000, 20_000, length)
        rounds = []
        for _ in range(ROUNDS):
            started = time.thread_time()
            session.run(None, {"input_ids": row})
            rounds.append((time.thread_time() - started) / length)
        took[str(length)] = round(statistics.median(rounds) * 1e6, 1)
    return took


def main() -> None:
    """Count, measure, and print."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counted = tokens(Path(folder))
    print(json.dumps({**counted, "us_a_token_by_length": by_length()}, indent=2))


if __name__ == "__main__":
    main()
