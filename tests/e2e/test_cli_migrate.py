"""`kb migrate`: a home goes into a database and back, with all that it holds."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import KB, TIMEOUT_S, Ran, run
from nodes import Node
from postgres_server import PostgresServer

from kb.errors import HomeUnfinished
from kb.store.content.database import database_address
from kb.store.kv import TABLES, ReadTxn
from kb.store.meta import FORMAT_UNFINISHED, MACHINE, get_word, set_word
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
    entry = "---\nzettel_id: how-to-start\ntitle: How to start\n---\n\n# Start\n\nTurn it.\n"
    (root / "knowledge").mkdir(exist_ok=True)
    (root / "knowledge" / "start.md").write_text(entry)
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert home.run("note", "add", "--wait", "# Remember\n\nThe warm roofs.").code == 0
    (root / "kb.toml").write_text("[search]\nquery_chars_max = 8000\n")
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


def migrated(node: Node, source: object, target: object, *more: str, fails: str = "") -> Ran:
    argv = [KB, "migrate", "--from", source, "--to", target, *more]
    return run(argv, env={**node.env, "KB_FAILPOINTS": fails})


def without_freshness(ran: Ran) -> str:
    """A search's answer, but for how notes and entries compare with files."""
    hits = [
        {**hit, "freshness": ""} if hit["kind"] in ("notebook", "entry") else hit
        for hit in ran.json["hits"]
    ]
    return json.dumps({**ran.json, "hits": hits})


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline


def records(txn: ReadTxn) -> dict[str, list[tuple[bytes, bytes]]]:
    rows = {name: list(txn.scan(name)) for name in TABLES if name not in IN_FILES}
    # Only a home in a database says whose files it names.
    rows["meta"] = [row for row in rows["meta"] if row[0] != b"word:machine"]
    return rows


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
        answers = {filled.run(*command).out, returned.run(*command).out}
        assert len(answers) == 1, query
        # Notes and entries are in no file there.
        answers = {without_freshness(home.run(*command)) for home in (filled, node)}
        assert len(answers) == 1, query
    assert returned.run("check").code == 0
    assert node.run("check").code == 0
    assert node.run("worker", "--drain").code == 0
    assert [hit["title"] for hit in node.hits("Late")][:1] == ["Late"]


def test_a_killed_copy_goes_on(filled: Node, node: Node, tmp_path: Path) -> None:
    """What a kill leaves of a copy is no home, and the next one ends it; the source stays."""
    before, files = records_of_folder(Path(filled.home)), files_of(Path(filled.home))
    for hit in (2, 9, 14):
        killed = migrated(node, filled.home, node.home, fails=f"store.before_commit=kill@{hit}")
        assert killed.code == -signal.SIGKILL
        unread = node.run("ls")
        assert (unread.code, "kb migrate" in unread.err) == (5, True), unread.err
    tidied = Path(filled.home) / "knowledge" / "start.md"
    tidied.rename(tidied.with_name("moved.md"))
    ended = migrated(node, filled.home, node.home, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["went_on"]
    assert records_of_database(node.home) == before
    killed = migrated(node, node.home, tmp_path / "to", fails="store.before_commit=kill@5")
    assert (killed.code, (tmp_path / "to").exists()) == (-signal.SIGKILL, False)
    assert migrated(node, node.home, tmp_path / "to").code == 0
    moved = files_of(tmp_path / "to")
    assert moved["knowledge/moved.md"] == files["knowledge/start.md"]
    assert "knowledge/start.md" not in moved
    assert [path.name for path in tmp_path.iterdir()] == ["to"]
    tidied.with_name("moved.md").rename(tidied)


def test_what_is_refused(filled: Node, node: Node, tmp_path: Path) -> None:
    """A target that is not empty, a source that is none, itself, its inside: nothing is made."""
    source = Path(filled.home)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    for target in (tmp_path / "full", source, source / "inner", ""):
        assert migrated(node, source, target).code == 2, target
    assert migrated(node, tmp_path / "no", node.home).code == 2
    assert not (source / "inner").exists()
    dry = migrated(node, source, node.home, "--dry-run", "--json")
    assert (dry.code, dry.json["copied"]["docs"] > DOCS) == (0, True), dry.err
    assert node.run("ls", "--json").json["docs"] == []
    assert node.run("add", tmp_path / "full" / "x", "--no-wait").code in (0, 3)
    (tmp_path / "y.md").write_text("# Y\n")
    assert node.run("add", tmp_path / "y.md", "--no-wait").code == 0
    for more in ((), ("--dry-run",)):
        refused = migrated(node, source, node.home, *more)
        assert (refused.code, "not empty" in refused.err) == (2, True), refused.err
    assert [row["title"] for row in node.run("ls", "--json").json["docs"]] == ["Y"]


def test_what_the_source_lacks_is_told(node: Node, tmp_path: Path) -> None:
    """A missing file is a finding, and the rest is copied; so it is on the way back."""
    source = Node(node.folder, str(tmp_path / "source"))
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"Words of {name}.\n")
        assert source.run("add", tmp_path / f"{name}.txt").code == 0
    markdown = next((tmp_path / "source" / "md").rglob("a--*.md"))
    markdown.unlink()
    there = migrated(node, source.home, node.home, "--json")
    assert (there.code, len(there.json["copied"]["problems"])) == (3, 1), there.err
    assert markdown.name in there.json["copied"]["problems"][0]
    back = migrated(node, node.home, tmp_path / "back")
    assert (back.code, markdown.name in back.err) == (3, True)
    assert records_of_folder(tmp_path / "back") == records_of_folder(tmp_path / "source")


def test_the_notebook_goes_on(filled: Node, node: Node, tmp_path: Path) -> None:
    """Notes are placed in the database as before in the folder, and all are in a folder again."""
    assert migrated(node, filled.home, node.home).code == 0
    assert node.run("note", "add", "--wait", "# Later\n\nPlaced in the database.\n").code == 0
    hits = [hit for word in ("Later", "Remember") for hit in node.hits(word)[:1]]
    assert [(hit["title"], hit["freshness"]) for hit in hits] == [
        *(("Later", "unknown"), ("Remember", "unknown")),
    ]
    for hit in hits:
        opened = node.run("open", hit["doc_id"])
        assert (opened.code, "kept in the database" in opened.err) == (4, True), opened.err
    back = Node(node.folder, str(tmp_path / "back"))
    assert migrated(node, node.home, back.home).code == 0
    folder = Path(back.home) / "notebook"
    titles = {path.read_text("utf-8").splitlines()[0] for path in folder.rglob("*.md")}
    assert {"# Remember", "# Later"} <= titles
    status = run(["git", "-C", str(folder), "status", "--porcelain"])
    assert (status.code, status.out) == (0, ""), status.err
    before = {row["title"] for row in node.run("ls", "--json", "--limit", "0").json["docs"]}
    assert back.run("note", "add", "--wait", "# Last\n\nPlaced in a folder again.\n").code == 0
    rows = back.run("ls", "--json", "--limit", "0").json["docs"]
    assert len(rows) == len(before) + 1
    assert {row["title"] for row in rows} == {*before, "Last"}
    assert back.run("check").code == 0


def test_a_source_that_is_written_to(node: Node, tmp_path: Path) -> None:
    """The copy is of one moment, and what came later is told, not half copied."""
    source = Node(node.folder, str(tmp_path / "source"))
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"# Doc {name}\n")
    assert source.run("add", tmp_path / "a.md").code == 0
    before = records_of_folder(Path(source.home))
    argv = [KB, "migrate", "--from", source.home, "--to", node.home, "--json"]
    env = {**node.env, "KB_FAILPOINTS": "store.before_commit=pause@2"}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) as copying:
        wait_for(lambda: node.run("ls").code == 5)
        assert source.run("add", tmp_path / "b.md").code == 0
        report = json.loads(copying.communicate()[0])
    assert report["commits_missed"] > 0
    assert report["copied"]["docs"] == 1
    assert records_of_database(node.home) == before


def test_who_comes_as_a_copy_begins_writes_nothing(node: Node) -> None:
    """They find a schema without a home, and then one that is being filled."""
    address = database_address(node.home)
    assert address is not None
    with (
        Store.open_database(address, fills=True) as filler,
        Store.open_database(address, create=False) as reader,
    ):
        reader.is_used_on("nobody-000000")
        with filler.write() as txn:
            set_word(txn, "format", FORMAT_UNFINISHED)
            number = txn.last_txn()
        late = Store.open_database(address, create=False, fills=True)
        with late, pytest.raises(HomeUnfinished):
            late.is_used_on("late-000000")
        with filler.read() as txn:
            assert (get_word(txn, MACHINE), txn.last_txn()) == ("", number)


def test_backups_of_a_home_in_a_database(filled: Node, node: Node, tmp_path: Path) -> None:
    """They are made, listed, read and restored, into a folder and into another database."""
    before, files = records_of_folder(Path(filled.home)), files_of(Path(filled.home))
    assert migrated(node, filled.home, node.home).code == 0
    made = node.run("backup", "create", "--reason", "before it goes", "--json")
    assert made.code == 0, made.err
    backup = made.json["backup"]
    # The local folder of the home is a cache, which may be deleted with all that is in it.
    assert Path(backup["path"]).is_relative_to(node.folder / "data")
    listed = node.run("backup", "list", "--json").json["backups"]
    assert [entry["name"] for entry in listed] == [backup["name"]]
    assert node.run("backup", "verify").out == f"{backup['name']}: whole\n"
    folder, other = tmp_path / "restored", Node(node.folder, node.home.replace("?", "_2?"))
    for target in (folder, other.home):
        restored = node.run("backup", "restore", backup["name"], "--to", target)
        assert restored.code == 0, restored.err
    assert records_of_folder(folder) == records_of_database(other.home) == before
    assert files_of(folder) == files
    assert Node(node.folder, str(folder)).run("check").code == other.run("check").code == 0
    again = node.run("backup", "restore", backup["name"], "--to", other.home)
    assert (again.code, "not empty" in again.err) == (2, True)
    next(Path(backup["path"]).rglob("book-7--*.md")).write_bytes(b"other")
    broken = node.run("backup", "restore", backup["name"], "--to", other.home.replace("_2?", "_3?"))
    assert broken.code == 5
