"""`kb migrate`: a home goes into a database and back, with all that it holds."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import KB, Ran, run
from nodes import Node
from postgres_server import PostgresServer

from kb.store.content.database import database_address
from kb.store.content.layout import HomePaths
from kb.store.kv import TABLES, ReadTxn
from kb.store.store import Store

DOCS = 300
QUERIES = ("engine 17", "warm roofs", "#tag3", '"row 5"', "tag:tag7 engine", "nothing of it")
# What lies in files of a folder, and in records of a database.
IN_FILES = frozenset(("content", "home_files", "home_file_parts"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """A home with hundreds of docs, versions, jobs, entries, settings and a pack of old docs."""
    folder = tmp_path_factory.mktemp("filled")
    books = folder / "books"
    books.mkdir()
    for number in range(DOCS):
        text = f"# Book {number}\n\nThe engine {number} on warm roofs, row {number % 9}.\n"
        (books / f"b{number}.md").write_text(f"{text}\n#tag{number % 11} mail@example.org\n")
    home = Node(folder, str(folder / "home"))
    root = folder / "home"
    assert home.run("add", "-r", books).code == 0
    (books / "b1.md").write_text("# Book one anew\n\nAnother engine 17 altogether.\n")
    (books / "big.txt").write_text(os.urandom(400_000).hex())
    assert home.run("add", "-r", books).code == 0
    rows = home.run("ls", "--json", "--limit", "0").json["docs"]
    gone = next(row["doc_id"] for row in rows if row["source"].endswith("/b2.md"))
    assert home.run("rm", gone, "--yes").code == 0
    assert home.run("init").code == 0
    entry = "---\nzettel_id: how-to-start\ntitle: How to start\nsummary: s\n---\n\n# Start\n\nTurn it.\n"
    (root / "knowledge").mkdir(exist_ok=True)
    (root / "knowledge" / "start.md").write_text(entry)
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert home.run("note", "add", "--wait", "# Remember\n\nThe warm roofs.").code == 0
    (root / "kb.toml").write_text("[search]\nrrf_k = 60\n")
    (root / "kb.toml").chmod(0o600)
    (root / "a-link").symlink_to("kb.toml")
    (books / "late.md").write_text("# Late\n\nStill to be embedded.\n")
    assert home.run("add", "--no-wait", books / "late.md").code == 0
    return home


@pytest.fixture
def node(filled: Node, postgres: PostgresServer) -> Iterator[Node]:
    """The same machine, with a home in a database."""
    address = postgres.home()
    yield Node(filled.folder, address)
    postgres.drop(database_address(address).schema)


def migrated(node: Node, source: object, target: object, *more: str) -> Ran:
    argv = [KB, "migrate", "--from", source, "--to", target, *more]
    return run(argv, env=dict(node.env))


def records(txn: ReadTxn) -> dict[str, list[tuple[bytes, bytes]]]:
    return {name: list(txn.scan(name)) for name in TABLES if name not in IN_FILES}


def records_of_folder(root: Path) -> dict[str, list[tuple[bytes, bytes]]]:
    with Store.open(root / "store", create=False, read_only=True) as store, store.read() as txn:
        return records(txn)


def records_of_database(address: str) -> dict[str, list[tuple[bytes, bytes]]]:
    with (
        Store.open_database(database_address(address), create=False) as store,
        store.read() as txn,
    ):
        return records(txn)


def files_of(root: Path) -> dict[str, bytes | str]:
    """Every file of a home but store and caches, and every link."""
    left_out = {"store", "index", "tmp", "run", "backups", "compact.lock", "push.lock"}
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] in left_out:
            continue
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def test_there_and_back(filled: Node, node: Node, tmp_path: Path) -> None:
    """Every record, file and answer is what it was, on both ways; nothing is embedded anew."""
    before = records_of_folder(Path(filled.home))
    there = migrated(node, Path(filled.home), node.home, "--json")
    assert there.code == 0, there.err
    report = there.json
    assert (report["commits_missed"], report["went_on"]) == (0, False)
    assert report["copied"]["records"] == sum(map(len, before.values()))
    assert records_of_database(node.home) == before
    back = tmp_path / "back"
    assert migrated(node, node.home, back).code == 0
    assert records_of_folder(back) == before
    assert files_of(back) == files_of(Path(filled.home))
    # Counts of words are those of a new index: an old one also counts docs that are gone.
    shutil.rmtree(Path(filled.home) / "index")
    returned = Node(filled.folder, str(back))
    for query in QUERIES:
        command = ("search", query, "--json", "-k", "9")
        answers = {filled.run(*command).out, returned.run(*command).out, node.run(*command).out}
        assert len(answers) == 1, query
    assert returned.run("check").code == 0
    assert node.run("check").code == 0
    assert node.run("worker", "--drain").code == 0
    assert [hit["title"] for hit in node.hits("Late")][:1] == ["Late"]
