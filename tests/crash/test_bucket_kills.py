"""A kill at every step around an object: no doc is lost, and no object stays that nobody names."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3_server
from nodes import Node
from postgres_server import PostgresServer
from s3_server import S3Server

from kb.model import failpoints
from kb.store.bucket_content import LARGE_BYTES
from kb.store.content.database import database_address

KILLED = -signal.SIGKILL
OWN = [name for name in failpoints.NAMES if name.startswith("bucket.")]
# Of the commands below: at which point they are killed.
ADD = ("bucket.before_put", "bucket.after_put", "ingest.before_commit")
COMPACT = ("compact.after_delete", "bucket.before_delete")
FILLING = "<!-- nothing to read here -->\n" * (LARGE_BYTES // 20)


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.serving() as server:
        yield server


@pytest.fixture
def node(server: S3Server, postgres: PostgresServer, tmp_path: Path) -> Iterator[Node]:
    (tmp_path / "node").mkdir()
    node = Node(tmp_path / "node", postgres.home(), **s3_server.ENVIRONMENT)
    assert node.run("config", "set", "content.endpoint", server.endpoint).code == 0
    assert node.run("config", "set", "content.bucket", f"s3://{s3_server.BUCKET}").code == 0
    yield node
    postgres.drop(database_address(node.home).schema)


def killed(node: Node, point: str, *command: object) -> int:
    armed = Node(node.folder, node.home, **s3_server.ENVIRONMENT, KB_FAILPOINTS=f"{point}=kill")
    return armed.run(*command).code


def page(folder: Path, word: str) -> Path:
    file = folder / f"{word}.html"
    file.write_text(f"<html><body><p>{word} mats</p>{FILLING}</body></html>")
    return file


def compact(node: Node) -> None:
    ran = node.run("--cfg", "compact.tombstone_days=0", "compact", "--grace-min", "0")
    assert ran.code == 0, ran.err


def whole(node: Node, server: S3Server, words: set[str]) -> None:
    """These docs are there and sound, and after some compactions nothing else is."""
    found = {Path(row["source"]).stem for row in node.run("ls", "--json").json["docs"]}
    assert found == words
    assert node.run("check", "--json").json["sound"]
    for _ in range(3):
        compact(node)
    assert len(server.objects) == len(words)
    assert node.run("check", "--json").json["sound"]


def test_every_point_is_armed() -> None:
    """No step around an object is without a kill."""
    assert set(OWN) <= {*ADD, *COMPACT}


@pytest.mark.parametrize("point", ADD)
def test_an_add_that_is_killed(node: Node, server: S3Server, tmp_path: Path, point: str) -> None:
    """The same command, run again, adds the doc; what the killed one left goes."""
    assert node.run("add", page(tmp_path, "coir")).code == 0
    file = page(tmp_path, "sisal")
    assert killed(node, point, "add", file) == KILLED
    assert node.run("add", file).code == 0
    whole(node, server, {"coir", "sisal"})


@pytest.mark.parametrize("point", COMPACT)
def test_a_compaction_that_is_killed(
    node: Node, server: S3Server, tmp_path: Path, point: str
) -> None:
    """The next ones remove what it did not, and nothing of what stays."""
    for word in ("coir", "sisal"):
        assert node.run("add", page(tmp_path, word)).code == 0
    assert node.run("rm", node.id_of("sisal.html"), "--yes").code == 0
    command = ("--cfg", "compact.tombstone_days=0", "compact", "--grace-min", "0")
    codes = [killed(node, point, *command) for _ in range(3)]
    assert KILLED in codes
    whole(node, server, {"coir"})
