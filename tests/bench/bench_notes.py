"""How many notes a second are placed by rule, against taking the same texts in as files.

    python tests/bench/bench_notes.py [COUNT]

Both end with everything found by words and by a model that costs next to nothing.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import corpus

from kb.home.app import App
from kb.intake.sync.add import AddOptions
from kb.model.config import Settings, load

FOLDERS = 20


def place_notes(scratch: Path, count: int) -> dict[str, Any]:
    """One row: notes of about 1 KB, tagged, each with its own commit."""
    settings = load([], ["embed.kind=hashing"])
    corpus.write_notes(scratch / "texts", count)
    started = time.perf_counter()
    _place(scratch / "notes-home", scratch / "texts", settings)
    middle = time.perf_counter()
    _add(scratch / "files-home", scratch / "texts", settings)
    reference = time.perf_counter() - middle
    seconds = middle - started
    return {
        "name": f"place {count} notes by rule",
        "seconds": seconds,
        "reference_seconds": reference,
        "ratio": seconds / reference,
        "notes_a_second": count / seconds,
    }


def _place(home: Path, texts: Path, settings: Settings) -> None:
    with App.open(home, settings) as app:
        for number, path in enumerate(sorted(texts.rglob("*.md"))):
            app.notebook.hand_in(path.read_bytes(), None, [f"topic {number % FOLDERS}"])
        _work(app)


def _add(home: Path, texts: Path, settings: Settings) -> None:
    with App.open(home, settings) as app:
        with app.parser() as parser:
            app.adder(parser, AddOptions(recursive=True)).add([str(texts)])
        _work(app)


def _work(app: App) -> None:
    pool = app.pool()
    pool.start()
    pool.drain()
    pool.shutdown()
    app.catch_up()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(place_notes(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else 1_000))
