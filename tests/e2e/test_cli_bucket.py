"""A home in a database whose large originals lie in a bucket, by the real command."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3_server
from commands import HASHING, KB, Ran, run
from nodes import Node
from postgres_server import PostgresServer
from s3_server import SECRET, S3Server

from kb.store.bucket_content import LARGE_BYTES
from kb.store.content.database import database_address

URL = f"s3://{s3_server.BUCKET}/kb"
FILLING = "<!-- nothing to read here -->\n"
PAGE = (
    "<html><title>Sisal</title><body><p>Sisal mats last for years.</p>\n"
    f"{FILLING * (LARGE_BYTES // len(FILLING) + 1)}</body></html>\n"
)


class BucketNode(Node):
    """A machine with a key for the bucket; its commands never say the key."""

    def __init__(self, folder: Path, home: str, **variables: str) -> None:
        folder.mkdir(exist_ok=True)
        keys = {**s3_server.ENVIRONMENT, "HOME": str(folder), "AWS_SESSION_TOKEN": ""}
        super().__init__(folder, home, **{**keys, **variables})

    def run(self, *args: object, **options: object) -> Ran:
        ran = super().run(*args, **options)
        assert SECRET not in ran.out + ran.err
        return ran

    def setting(self, name: str, value: str) -> Ran:
        return self.run("config", "set", f"content.{name}", value)

    def sound(self) -> bool:
        return bool(self.run("check", "--json").json["sound"])


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.serving() as server:
        yield server


@pytest.fixture
def node(server: S3Server, postgres: PostgresServer, tmp_path: Path) -> Iterator[BucketNode]:
    """A machine, and a home that has the bucket."""
    node = BucketNode(tmp_path / "one", postgres.home())
    assert node.setting("endpoint", server.endpoint).code == 0
    assert node.setting("bucket", URL).code == 0
    yield node
    postgres.drop(database_address(node.home).schema)


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """A small file, and one whose bytes are many."""
    books = tmp_path / "books"
    books.mkdir()
    (books / "small.md").write_text("# Hemp\n\nHemp rope.\n")
    (books / "large.html").write_text(PAGE)
    return books


def has(node: Node, query: str, name: str) -> bool:
    return any(hit["source"].endswith(name) for hit in node.hits(query))


def test_large_originals_lie_in_the_bucket(
    node: BucketNode, server: S3Server, books: Path, postgres: PostgresServer
) -> None:
    """What is large goes there once; searches ask it nothing; the key is kept nowhere."""
    assert node.run("add", "-r", books).code == 0
    (name,) = server.objects
    assert server.objects[name] == PAGE.encode()
    server.requests.clear()
    assert has(node, "sisal mats", "large.html")
    assert "Sisal mats" in node.run("export", books / "large.html").out
    (books / "large.html").touch()
    assert node.run("add", "-r", books).code == 0
    assert server.requests == []
    assert node.run("export", "--raw", books / "large.html").out == PAGE
    assert [request.method for request in server.requests] == ["GET"]
    assert node.sound()
    assert "bucket" not in {row["place"] for row in node.run("doctor", "--json").json["findings"]}
    schema = database_address(node.home).schema
    rows = postgres.run_sql(f"SELECT k, v FROM {schema}.records")
    assert not any(SECRET.encode() in bytes(cell) for row in rows for cell in row)  # type: ignore[call-overload]
    files = [file for file in node.folder.rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


def test_the_setting_is_the_homes(
    node: BucketNode, server: S3Server, books: Path, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Another machine needs no setting, and no machine has one of its own."""
    assert node.run("add", books / "large.html").code == 0
    other = BucketNode(tmp_path / "two", node.home)
    row = other.run("config", "get", "content.bucket", "--json").json
    assert (row["value"], row["layer"], row["place"]) == (URL, "home", node.home)
    assert other.run("export", "--raw", books / "large.html").out == PAGE
    (books / "more.html").write_text(PAGE.replace("Sisal", "Coir"))
    assert other.run("add", books / "more.html").code == 0
    assert len(server.objects) == 2
    refused = other.run("--cfg", "content.bucket=s3://other", "ls")
    assert (refused.code, "has these settings itself" in refused.err) == (2, True)
    (tmp_path / "two/config/kb").mkdir(parents=True, exist_ok=True)
    (tmp_path / "two/config/kb/config.toml").write_text('[content]\nbucket = "s3://other"\n')
    assert other.run("ls").code == 2
    folder = BucketNode(tmp_path / "three", str(tmp_path / "home"))
    refused = folder.setting("bucket", URL)
    assert (refused.code, "is for homes in a database" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "value", "variables", "code", "words"),
    [
        ("bucket", "s3://other/kb", {}, 1, "there is no such bucket"),
        ("bucket", "docs", {}, 2, "a bucket is s3://NAME"),
        ("endpoint", "http://127.0.0.1:9", {}, 1, "its server cannot be reached"),
        ("endpoint", "https://key:secret@minio.example", {}, 2, "content.endpoint"),
        ("region", "Mars!", {}, 2, "content.region"),
        ("bucket", f"{URL}2", {"AWS_SECRET_ACCESS_KEY": "wrong"}, 1, "refuses the key (403 Sig"),
        ("bucket", f"{URL}2", {"AWS_ACCESS_KEY_ID": "wrong"}, 1, "refuses the key (403 Inv"),
        ("bucket", f"{URL}2", {"AWS_ACCESS_KEY_ID": ""}, 1, "AWS_ACCESS_KEY_ID is not set"),
    ],
)
def test_what_does_not_work_is_not_set(
    node: BucketNode,
    tmp_path: Path,
    name: str,
    value: str,
    variables: dict[str, str],
    code: int,
    words: str,
) -> None:
    """A bucket that cannot be used is found out when it is set, in one line."""
    before = node.run("config", "get", f"content.{name}").out
    asking = BucketNode(tmp_path / "asking", node.home, **variables)
    ran = asking.setting(name, value)
    assert (ran.code, words in ran.err, ran.err.count("\n")) == (code, True, 1)
    assert node.run("config", "get", f"content.{name}").out == before


def test_without_the_bucket(node: BucketNode, server: S3Server, books: Path) -> None:
    """What needs no original works while its server fails; the rest says so and loses nothing."""
    assert node.run("add", "-r", books).code == 0
    (books / "more.html").write_text(PAGE.replace("Sisal", "Coir"))
    (books / "note.md").write_text("# Flax\n\nFlax twine.\n")
    server.faults.append(lambda _: s3_server.refusal(503, "SlowDown"))
    assert has(node, "sisal mats", "large.html")
    assert node.run("ls").code == 0
    assert node.run("add", books / "note.md").code == 0
    assert has(node, "flax twine", "note.md")
    for command in (
        ("add", books / "more.html"),
        ("check",),
        ("export", "--raw", books / "large.html"),
    ):
        ran = node.run(*command)
        assert (ran.code, ran.err.count("\n")) == (1, 1)
        assert f"{URL}: its server is busy or fails (503 SlowDown)" in ran.err
    compacted = node.run("compact")
    assert (compacted.code, "what lies there is left for the next run" in compacted.err) == (
        0,
        True,
    )
    findings = node.run("doctor", "--json").json["findings"]
    assert "503 SlowDown" in {row["place"]: row["problem"] for row in findings}["bucket"]
    server.faults.clear()
    assert len(node.run("ls", "--json").json["docs"]) == 3
    assert node.run("add", books / "more.html").code == 0
    assert has(node, "coir mats", "more.html")
    assert node.sound()


def test_a_lost_object_is_found_and_mended(node: BucketNode, server: S3Server, books: Path) -> None:
    """`kb check` reads every object, and `--repair` takes it from its source."""
    assert node.run("add", "-r", books).code == 0
    (name,) = server.objects
    del server.objects[name]
    assert node.run("export", "--raw", books / "large.html").code == 5
    ran = node.run("check")
    assert (ran.code, "raw/" in ran.out) == (5, True)
    assert node.run("check", "--repair").code == 0
    assert node.sound()
    assert PAGE.encode() in server.objects.values()


def test_what_goes_leaves_nothing_and_takes_nothing_of_others(
    node: BucketNode, server: S3Server, books: Path, postgres: PostgresServer, tmp_path: Path
) -> None:
    """A compaction removes objects of removed docs, and none of a home beside it in the bucket."""
    other = BucketNode(tmp_path / "two", postgres.home())
    assert other.setting("endpoint", server.endpoint).code == 0
    assert other.setting("bucket", URL).code == 0
    for home in (node, other):
        assert home.run("add", "-r", books).code == 0
    assert len(server.objects) == 2
    assert node.run("rm", node.id_of("large.html"), "--yes").code == 0
    for _ in range(3):
        ran = node.run("--cfg", "compact.tombstone_days=0", "compact", "--grace-min", "0")
        assert ran.code == 0
    assert len(server.objects) == 1
    assert other.sound()
    assert node.sound()


def test_the_bucket_moves_with_its_objects(node: BucketNode, server: S3Server, books: Path) -> None:
    """Another place is taken once all originals are there; none is left behind by a setting."""
    assert node.run("add", "-r", books).code == 0
    unset = node.run("config", "unset", "content.bucket")
    assert (unset.code, "`kb migrate` the home" in unset.err) == (2, True)
    early = node.setting("bucket", f"s3://{s3_server.BUCKET}/new")
    assert (early.code, "1 originals of this home are in" in early.err) == (2, True)
    for name in list(server.objects):
        server.objects[name.replace("kb/", "new/", 1)] = server.objects.pop(name)
    assert node.setting("bucket", f"s3://{s3_server.BUCKET}/new").code == 0
    assert node.sound()


def test_bytes_come_along(
    node: BucketNode, server: S3Server, books: Path, postgres: PostgresServer, tmp_path: Path
) -> None:
    """A home moves with its originals: out of a bucket and into one, by copies and by backups."""
    assert node.run("add", "-r", books).code == 0

    def at(home: str) -> BucketNode:
        return BucketNode(node.folder, home)

    def moved(source: str, target: str) -> BucketNode:
        ran = run([KB, *HASHING, "migrate", "--from", source, "--to", target], env=dict(node.env))
        assert ran.code == 0, ran.err
        home = at(target)
        assert home.sound()
        assert home.run("export", "--raw", books / "large.html").out == PAGE
        return home

    in_folder = moved(node.home, str(tmp_path / "folder"))
    plain = moved(node.home, postgres.home())
    assert plain.run("config", "get", "content.bucket").out.strip() == ""
    assert len(server.objects) == 1
    second = at(postgres.home())
    assert second.setting("endpoint", server.endpoint).code == 0
    assert second.setting("bucket", URL).code == 0
    moved(in_folder.home, second.home)
    assert len(server.objects) == 2
    assert second.run("config", "get", "content.bucket").out.strip() == URL
    assert node.run("backup", "create", "--to", tmp_path / "backup").code == 0
    restored = tmp_path / "restored"
    assert node.run("backup", "restore", tmp_path / "backup", "--to", restored).code == 0
    assert at(str(restored)).sound()
    third = at(postgres.home())
    assert third.setting("endpoint", server.endpoint).code == 0
    assert third.setting("bucket", URL).code == 0
    assert node.run("backup", "restore", tmp_path / "backup", "--to", third.home).code == 0
    assert third.sound()
    assert len(server.objects) == 3
    shutil.rmtree(restored)
