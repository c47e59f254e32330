"""How often a home in a database waits for its server, counted on the wire."""

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from counting_proxy import CountingProxy
from postgres_server import PostgresServer

from kb.home.app import App
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.intake.sync.add import AddOptions
from kb.intake.worker.pool import WorkerPool
from kb.model.config import Settings, load
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest
from kb.operations.search import SEARCH, ShownSearch, run
from kb.store.content.database import local_folder
from kb.store.postgres import reads
from kb.store.postgres.schema import Commit

SEARCH_MAX = 15
DOC_MAX = 30
DOCS_MAX = 500
CATCH_UP_MAX = 20
PASSAGES = 20
DOCS = 50
WORDS = ("river", "garden", "market", "energy", "school", "winter", "copper", "meadow", "signal")


def settings() -> Settings:
    made = load([], [])
    return msgspec.structs.replace(
        made, embed=msgspec.structs.replace(made.embed, kind="hashing", model="64")
    )


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CountingProxy]:
    made = CountingProxy(str(postgres.folder / f".s.PGSQL.{postgres.port}"))
    yield made
    made.close()


@pytest.fixture
def app(
    postgres: PostgresServer,
    proxy: CountingProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[App]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    schema = postgres.new_address().schema
    home = f"postgresql://kb@127.0.0.1:{proxy.port}/postgres/{schema}?sslmode=disable"
    with App.open(local_folder(home), settings()) as made:
        yield made


def write(folder: Path, names: range) -> None:
    """Docs of PASSAGES passages each."""
    folder.mkdir(exist_ok=True)
    words = itertools.cycle(WORDS)
    for name in names:
        sections = (
            f"## Part {part} of {name}\n\n" + " ".join(next(words) for _ in range(150))
            for part in range(PASSAGES)
        )
        (folder / f"{name}.md").write_text(f"# Book {name}\n\n" + "\n\n".join(sections))


def add(app: App, folder: Path) -> None:
    with app.parser() as parser:
        app.adder(parser, AddOptions(recursive=True)).add([str(folder)])


def work(pool: WorkerPool) -> None:
    """Do all jobs on this one thread."""
    while pool._work_once():
        pass


def counted(proxy: CountingProxy, do: Callable[[], object]) -> int:
    before = proxy.round_trips
    do()
    return proxy.round_trips - before


def forget(_: reads.Reads, commit: Commit, changes: object) -> reads.Reads:
    """Nothing is known of the next commit."""
    return reads.Reads(commit, 1 << 23)


def test_few_round_trips(
    app: App, proxy: CountingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search, a doc that is worked off, and an index that catches up ask for many rows at once.

    Also a search after others have written, when nothing that was read before is true for sure.
    """
    pool = app.pool()
    write(tmp_path / "one", range(1))
    add(app, tmp_path / "one")
    work(pool)
    app.catch_up()
    write(tmp_path / "two", range(1, 2))
    add(app, tmp_path / "two")
    assert counted(proxy, lambda: work(pool)) <= DOC_MAX
    write(tmp_path / "many", range(2, 2 + DOCS))
    add(app, tmp_path / "many")
    work(pool)
    assert counted(proxy, app.catch_up) <= CATCH_UP_MAX

    def search(query: str) -> None:
        assert app.searcher.search(SearchRequest(query=query), OPERATOR).hits

    for query in (*WORDS, "part 7 of 11"):
        assert counted(proxy, lambda query=query: search(query)) <= SEARCH_MAX  # type: ignore[misc]
    served = SEARCH.addresses[0]
    spaces = Spaces([app.opened()])
    for query in ("part 3 of 12", "copper winter"):
        request = ShownSearch(query=query)
        answer = functools.partial(served.run, spaces, request, OPERATOR)
        assert counted(proxy, answer) <= SEARCH_MAX
    (tmp_path / "two" / "new.md").write_text("# New\n\nSomething else entirely.\n")
    add(app, tmp_path / "two")
    for query in ("garden river", "copper"):
        assert counted(proxy, lambda query=query: search(query)) <= SEARCH_MAX  # type: ignore[misc]
    write(tmp_path / "more", range(2 + DOCS, 2 + 2 * DOCS))
    add(app, tmp_path / "more")
    # As another process works, which has not written the chunks that it embeds.
    monkeypatch.setattr(reads.Reads, "after", forget)
    assert counted(proxy, lambda: work(pool)) <= DOCS_MAX


def test_caches_that_are_level_say_so(app: App, tmp_path: Path) -> None:
    """Both are heard of again after a while in which nobody has written."""
    write(tmp_path / "one", range(1))
    add(app, tmp_path / "one")
    work(app.pool())
    app.catch_up()
    stamps = sorted(tmp_path.rglob("cache/**/registered"))
    assert len(stamps) == 2
    for stamp in stamps:
        stamp.unlink()
    app.catch_up()
    assert sorted(tmp_path.rglob("cache/**/registered")) == stamps


def test_a_search_beside_another_home_asks_as_seldom(
    app: App, proxy: CountingProxy, tmp_path: Path
) -> None:
    """Ranked with the docs of a project; also where the project has half of the docs, too."""
    write(tmp_path / "shared", range(DOCS))
    write(tmp_path / "both", range(DOCS, 2 * DOCS))
    homes = [SpaceHome(name="project", home=tmp_path / ".kb")]
    homes.append(SpaceHome(name="user", home=app.paths.root))
    for name in ("shared", "both"):
        add(app, tmp_path / name)
    work(app.pool())
    with App.open(homes[0].home, settings()) as project:
        add(project, tmp_path / "both")
        work(project.pool())
    with Spaces.open(homes, lambda _: settings()) as spaces:
        seen: set[str | None] = set()

        def search(query: str) -> None:
            found = run(spaces, ShownSearch(query=query), OPERATOR)
            assert found.warnings == ()
            seen.update(hit.source_space for hit in found.hits)

        # The caches are made.
        search("anything")
        for query in (*WORDS, "part 7 of 11", "book 73", "part 7 of 48"):
            assert counted(proxy, lambda query=query: search(query)) <= SEARCH_MAX  # type: ignore[misc]
        assert seen == {"project", "user"}
