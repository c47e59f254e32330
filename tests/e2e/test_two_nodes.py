"""Two nodes of one home answer with the bytes that a home in a folder answers with."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from postgres_server import PostgresServer

from kb.home.app import App
from kb.intake.sync.add import AddOptions
from kb.model.config import EmbedSettings, Settings
from kb.model.config.sections import IndexSettings
from kb.model.doc import OPERATOR
from kb.model.search import SearchMode, SearchRequest
from kb.store.content.database import local_folder

QUERIES = 300
DOCS = 60
SETTINGS = Settings(
    embed=EmbedSettings(kind="hashing", model="64"), index=IndexSettings(dense_mode="exact")
)
MODES: tuple[SearchMode, ...] = ("hybrid", "lexical", "dense")
WORDS = [
    one + two
    for one in ("ba", "mi", "lan", "ver", "kor", "gri")
    for two in ("to", "sta", "nu", "del")
]


def add(app: App, folder: Path) -> None:
    with app.parser() as parser:
        app.adder(parser, AddOptions(recursive=True)).add([str(folder)])


def work(app: App) -> None:
    pool = app.pool()
    pool.start()
    pool.drain()
    assert pool.shutdown()


@pytest.fixture
def homes(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[App]]:
    """One in a folder, and two nodes of one in a database."""
    address = postgres.home()
    with ExitStack() as stack:
        apps = [stack.enter_context(App.open(tmp_path / "home", SETTINGS))]
        for node in ("one", "two"):
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / node))
            apps.append(stack.enter_context(App.open(local_folder(address), SETTINGS)))
        yield apps


def test_equal_bytes(homes: list[App], tmp_path: Path) -> None:
    """Every query in every mode, by nodes that took docs in and worked in turn."""
    rng = random.Random(5)
    folder_home, one, two = homes
    for batch in range(3):
        folder = tmp_path / f"notes-{batch}"
        folder.mkdir()
        for number in range(DOCS // 3):
            parts = (" ".join(rng.choices(WORDS, k=40)) for _ in range(4))
            text = "\n\n".join(f"## {rng.choice(WORDS)}\n\n{part}" for part in parts)
            (folder / f"{number}.md").write_text(f"# Note {batch} {number}\n\n{text}\n")
        adding, working = (one, two) if batch % 2 else (two, one)
        for app in (folder_home, adding):
            add(app, folder)
        for app in (folder_home, working):
            work(app)
    for number in range(QUERIES):
        query = " ".join(rng.sample(WORDS, rng.randint(1, 4)))
        request = SearchRequest(query=query, mode=MODES[number % 3], k=rng.choice((3, 10)))
        expected, *answers = (
            msgspec.json.encode(app.searcher.search(request, OPERATOR)) for app in homes
        )
        assert b'"rank":1,' in expected
        assert answers == [expected, expected], query
