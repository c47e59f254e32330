"""A home in a PostgreSQL database: the commands, on machines that share it, and what goes wrong."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import HASHING, KB, loaded, run
from nodes import Node
from postgres_server import PostgresServer, running_server

from kb.store.content.database import database_address

TEXTS = {
    "cats.md": "# Cats\n\nCats sleep on warm roofs. #animals\n",
    "dogs.md": "# Dogs\n\nDogs bark at night and sleep by day.\n",
    "long.md": "# Long\n\n" + "A line about nothing much that repeats itself. \n" * 12_000,
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def node(postgres: PostgresServer, tmp_path: Path) -> Node:
    return Node(tmp_path / "one", postgres.home())


@pytest.fixture
def other(node: Node, tmp_path: Path) -> Node:
    """Another machine with the same home."""
    return Node(tmp_path / "two", node.home)


def test_a_day_with_a_shared_home(node: Node, other: Node, notes: Path) -> None:
    """Two machines add, find, show and remove, and each sees what the other did."""
    added = node.run("add", notes, "--json")
    assert (added.code, added.json["added"]) == (0, 3), added.err
    assert next(hit["title"] for hit in other.hits("warm roofs")) == "Cats"
    assert next(hit["title"] for hit in node.hits("warm roofs")) == "Cats"
    again = other.run("add", notes, "--json").json
    assert (again["unchanged"], again["added"]) == (3, 0)
    rows = other.run("ls", "--json").json["docs"]
    ids = {Path(row["source"]).name: row["doc_id"] for row in rows}
    assert sorted(ids) == sorted(TEXTS)
    shown = node.run("show", ids["dogs.md"], "--json").json
    assert shown["doc"]["title"] == "Dogs"
    assert other.run("rm", ids["cats.md"], "--yes").code == 0
    assert "Cats" not in [hit["title"] for hit in node.hits("warm roofs")]
    for machine in (node, other):
        stats = machine.run("stats", "--json").json
        assert (stats["docs"], stats["home"]) == ({"active": 2, "tombstoned": 1}, node.home)
        checked = machine.run("check", "--json")
        assert (checked.code, checked.json["sound"]) == (0, True), checked.out
    assert sorted(path.name for path in node.local.iterdir()) == [
        *("home-id", "index", "store.uri", "tmp"),
    ]


def test_a_search_answers_as_in_a_folder(node: Node, notes: Path, tmp_path: Path) -> None:
    """The same docs give the same hits, scores and bytes, whatever engine has them."""
    folder = Node(tmp_path / "folder", str(tmp_path / "home"))
    for home in (node, folder):
        assert home.run("add", notes).code == 0
    for query in ("sleep", "warm roofs", "#animals", "nothing", '"bark at night"', "tag:animals x"):
        answers = [home.run("search", query, "--json", "-k", 5).out for home in (node, folder)]
        assert answers[0] == answers[1], query


def test_bytes_lie_in_the_database(node: Node, other: Node, notes: Path) -> None:
    """They are had on a machine that never saw the file, also those of many parts."""
    data = os.urandom(900_000).hex().encode()
    (notes / "big.txt").write_bytes(data)
    assert node.run("add", notes).code == 0
    for path in notes.iterdir():
        path.unlink()
    rows = other.run("ls", "--json").json["docs"]
    ids = {Path(row["source"]).name: row["doc_id"] for row in rows}
    out = other.folder / "out.txt"
    assert other.run("export", ids["big.txt"], "--raw", "--to", out).code == 0
    assert out.read_bytes() == data
    assert other.run("export", ids["long.md"]).out.count("about nothing much") == 12_000


def test_work_left_by_one_machine_is_done_by_another(node: Node, other: Node, notes: Path) -> None:
    """One only takes in; the other's worker does what is to do, without the files."""
    assert node.run("add", notes, "--no-wait").code == 0
    assert node.run("stats", "--json").json["jobs"]["ready"] == 3
    for path in notes.iterdir():
        path.unlink()
    assert other.run("worker", "--drain").code == 0
    stats = node.run("stats", "--json").json
    assert stats["jobs"] == {"ready": 0, "running": 0, "failed": 0}
    assert stats["ledger"] == {"indexing_complete": 3}


def test_a_mistyped_home_is_not_made(node: Node) -> None:
    """Commands on what is there say that nothing is; `kb stats` does, too. `kb add` makes it."""
    commands = {("sync-all",): 0, ("worker", "--drain"): 0, ("worker",): 2, ("stats",): 0}
    for command, code in (*commands.items(), *commands.items()):
        ran = node.run(*command)
        assert ran.code == code, ran.err
        assert ran.err.startswith(f"kb: there is no home at {node.home} yet\n"), command
    assert node.run("init").out.splitlines()[0] == f"{node.home}: made"
    assert "no home" not in node.run("worker", "--drain").err


def test_caches_are_of_one_home(node: Node, postgres: PostgresServer, notes: Path) -> None:
    """A home that is gone is not taken for an empty one, nor its caches for those of a new one."""
    assert node.run("add", notes).code == 0
    assert node.hits("sleep")
    postgres.drop(database_address(node.home).schema)
    for command in (("search", "sleep"), ("add", notes)):
        gone = node.run(*command)
        assert gone.code == 5
        assert f"its caches lie in {node.local}" in gone.err
    (notes / "long.md").unlink()
    (notes / "cats.md").unlink()
    fresh = Node(node.folder.parent / "fresh", node.home)
    assert fresh.run("add", notes).code == 0
    assert [hit["title"] for hit in node.hits("sleep")] == ["Dogs"]
    assert node.run("check").code == 0


def test_many_use_it_first_at_once(node: Node, notes: Path) -> None:
    """Processes that begin at one moment on a new machine do not get into each other's way."""
    added = [
        subprocess.Popen(node.argv("add", path), env=dict(node.env), stderr=subprocess.PIPE)
        for path in (*notes.iterdir(), *notes.iterdir())
    ]
    for process in added:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert len(node.run("ls", "--json").json["docs"]) == 3
    assert node.run("check").code == 0


def test_nothing_is_made_by_reading(node: Node, postgres: PostgresServer) -> None:
    """A search of a home that nobody made finds nothing, and makes nothing in the database."""
    assert node.run("search", "x").code == 0
    schema = database_address(node.home).schema
    found = postgres.run_sql(
        "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", schema
    )
    assert found == []


def test_python_opens_it(node: Node, notes: Path) -> None:
    """`kb.open` takes the address, too."""
    code = (
        "import json, sys, kb\n"
        "with kb.open(sys.argv[1], settings={'embed.kind': 'hashing'}) as home:\n"
        "    home.add(sys.argv[2])\n"
        "    print(home.search('warm roofs').hits[0].title)\n"
    )
    done = run([sys.executable, "-c", code, node.home, str(notes)], env=dict(node.env))
    assert (done.code, done.out) == (0, "Cats\n"), done.err


def test_what_would_lie_in_a_folder_is_refused(node: Node) -> None:
    """Nothing that has no other copy is written into a folder of caches."""
    refused = node.run("new", "An entry")
    assert refused.code == 2, refused.out
    assert len(refused.err.strip().splitlines()) == 1
    assert {path.name for path in node.local.iterdir()} <= {
        *("home-id", "index", "store.uri", "tmp"),
    }


def test_a_home_is_made(node: Node, other: Node) -> None:
    """Once for all machines, without entries, which the guide has of its own."""
    for machine, what in (
        (node, "made"),
        (node, "was there already"),
        (other, "was there already"),
    ):
        done = machine.run("init")
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines()[0] == f"{node.home}: {what}"
        assert not (machine.local / "knowledge").exists()
    assert node.run("ls", "--json").json["total"] == 0
    assert "backup" in node.run("guide", "how is a home backed up?").out


def test_an_archive_of_a_pack_is_taken_in(node: Node, other: Node, notes: Path) -> None:
    """Its files lie beside the user's own home, on the machine that took it in; others find it."""
    path = notes.parent / "animals.tar"
    folder = Node(node.folder, str(notes.parent / "folder"))
    assert (
        folder.run("add", notes / "cats.md", notes / "dogs.md", "--visibility", "public").code == 0
    )
    exported = ("pack", "export", "--query", "sleep", "--to", path, "--id", "animals")
    for version in (1, 2):
        done = folder.run(*exported, "--version", version, "--title", f"V{version}", "--force")
        assert done.code == 0, done.err
        added = node.run("pack", "add", path, "--json")
        assert (added.code, added.json["title"]) == (0, f"V{version}"), added.err
    packs = node.folder / "data" / "kb-homes" / node.local.name / "packs"
    assert len(list(packs.iterdir())) == 3
    assert node.run("compact", "--json").json["packs_removed"] == 1
    for machine in (node, other):
        assert next(hit["title"] for hit in machine.hits("warm roofs")) == "Cats"
        assert machine.run("sync-all", "--interval-min", 0).code in (0, 3)
        assert machine.run("ls", "--json").json["total"] == 2
    assert node.run("pack", "search", "animals", "cats", "--json").json["hits"]
    shutil.rmtree(node.folder / "cache")
    assert node.run("pack", "ls", "--json").json["packs"][0]["version"] == "2"
    assert "warm roofs" in node.run("pack", "read", "animals", "cats").out
    assert node.run("check").code == 0
    assert node.run("pack", "rm", "animals", "--json").json["docs"] == 2
    assert node.run("compact", "--json").json["packs_removed"] == 2


def test_what_a_home_in_a_database_keeps_is_no_part_of_ones_own(node: Node, notes: Path) -> None:
    """A backup of it lies beside the user's home, which is not taken for one without its store."""
    assert node.run("add", notes / "cats.md").code == 0
    assert node.run("backup", "create").code == 0
    own = run([KB, *HASHING, "add", str(notes / "dogs.md")], env=dict(node.env))
    assert own.code == 0, own.err
    assert run([KB, "backup", "list", "--json"], env=dict(node.env)).json["backups"] == []


def test_a_home_in_a_folder_loads_no_driver(notes: Path, tmp_path: Path) -> None:
    """The embedded default pays nothing for databases."""
    args = ("--home", str(tmp_path / "home"), *HASHING)
    assert "psycopg" not in loaded(*args, "add", str(notes))
    assert "psycopg" not in loaded(*args, "search", "sleep")


def one_line(err: str) -> str:
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    return lines[0]


@pytest.fixture(scope="module")
def stopped() -> Iterator[PostgresServer]:
    """A server that is down."""
    with running_server() as server:
        server.stop()
        yield server


def test_no_server(stopped: PostgresServer, tmp_path: Path, notes: Path) -> None:
    """One line and exit code 1, by socket and by port."""
    for home in (stopped.home("kb"), stopped.home_by_port("kb")):
        node = Node(tmp_path / "node", home, PGPASSWORD="some-secret")
        for command in (("search", "x"), ("add", notes), ("stats",), ("worker", "--drain")):
            failed = node.run(*command)
            assert failed.code == 1, (command, failed.err)
            assert "try again" in one_line(failed.err)
            assert "secret" not in failed.err


def test_passwords(postgres: PostgresServer, tmp_path: Path) -> None:
    """A wrong one is one line; one in the address is refused; none is told or written anywhere."""
    role = f"pw_{os.getpid()}"
    postgres.run_sql(f"CREATE ROLE {role} LOGIN PASSWORD 'right-secret'")
    postgres.run_sql(f"GRANT CREATE ON DATABASE postgres TO {role}")
    wrong = Node(tmp_path / "a", postgres.home_by_port(role, role), PGPASSWORD="wrong-secret")
    denied = wrong.run("search", "x", "--json")
    assert denied.code == 1
    assert "password authentication failed" in one_line(denied.err)
    told = Node(tmp_path / "b", wrong.home.replace(f"{role}@", f"{role}:right-secret@"))
    refused = told.run("stats")
    assert refused.code == 2
    assert "PGPASSWORD" in one_line(refused.err)
    right = Node(tmp_path / "c", wrong.home, PGPASSWORD="right-secret")
    assert (
        right.run(
            "add",
            "-",
            stdin="text",
        ).code
        == 0
    )
    outputs = [right.run(*words) for words in (("config",), ("stats",), ("-v", "search", "x"))]
    for ran in (denied, refused, *outputs):
        assert "secret" not in ran.out + ran.err
    for folder in ("a", "b", "c"):
        for path in (tmp_path / folder).rglob("*"):
            assert not path.is_file() or b"secret" not in path.read_bytes()


def test_a_user_who_only_reads(
    node: Node, postgres: PostgresServer, notes: Path, tmp_path: Path
) -> None:
    """Finds and lists; adding is refused in one line, until they may write the tables."""
    assert node.run("add", notes, "--visibility", "shared").code == 0
    role, schema = f"ro_{os.getpid()}", database_address(node.home).schema
    postgres.run_sql(f"CREATE ROLE {role} LOGIN")
    postgres.run_sql(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    postgres.run_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    reader = Node(tmp_path / "reader", postgres.home(schema, role))
    assert next(hit["title"] for hit in reader.hits("warm roofs")) == "Cats"
    assert len(reader.run("ls", "--json").json["docs"]) == 3
    (notes / "new.md").write_text("# New\n")
    refused = reader.run("add", notes)
    assert refused.code == 1
    assert "cannot be written" in one_line(refused.err)
    postgres.run_sql(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    assert reader.run("rm", "--tag", "animals", "--yes").code == 4
    assert reader.run("add", notes).code == 0
    assert len(node.run("ls", "--json").json["docs"]) == 7
    assert reader.run("rm", "--tag", "animals", "--yes").code == 0
    assert len(node.run("ls", "--json").json["docs"]) == 6
    assert node.run("check").code == 0


def test_a_schema_of_a_later_kb(node: Node, postgres: PostgresServer, notes: Path) -> None:
    """It is not touched, and the line says to update kb."""
    assert node.run("add", notes).code == 0
    schema = database_address(node.home).schema
    postgres.run_sql(f"UPDATE {schema}.counter SET format = 99")
    for command in (("search", "x"), ("add", notes), ("check",)):
        refused = node.run(*command)
        assert refused.code == 5
        assert "update kb" in one_line(refused.err)


def test_the_driver_is_not_installed(node: Node) -> None:
    """The line says what to install."""
    code = "import sys; sys.modules['psycopg'] = None; from kb_cli.main import main; main()"
    argv = [sys.executable, "-c", code, *node.argv("search", "x")[1:]]
    refused = run(argv, env=dict(node.env))
    assert refused.code == 2
    assert "pip install 'kb-search[postgres]'" in one_line(refused.err)


def test_kb_home_names_a_database(node: Node, notes: Path) -> None:
    """As --home does; JSON stays one document."""
    assert node.run("add", notes).code == 0
    ran = run([KB, *HASHING, "search", "roofs", "--json"], env=dict(node.env, KB_HOME=node.home))
    assert json.loads(ran.out)["hits"][0]["title"] == "Cats"
