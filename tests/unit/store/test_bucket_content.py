"""A home whose bucket changes while others add to it, and what a bucket is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import s3_server
from homes import SmallHome
from postgres_server import PostgresServer
from s3_server import S3Server

from kb.errors import UsageError
from kb.model.ids import sha256_hex
from kb.store.bucket.place import BucketPlace, place_of
from kb.store.bucket_content import LARGE_BYTES, BucketContent, use_bucket
from kb.store.content.layout import raw_path

DATA = b"rope " * LARGE_BYTES
PATH = raw_path(sha256_hex(DATA), "txt")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    for name, value in s3_server.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3_server.serving() as server:
        yield server


@pytest.fixture
def home(server: S3Server, postgres: PostgresServer, tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home", postgres.new_address(), place(server, "one"))
    server.requests.clear()
    yield home
    home.close()


def place(server: S3Server, prefix: str) -> BucketPlace:
    return BucketPlace(url=f"s3://{s3_server.BUCKET}/{prefix}", endpoint=server.endpoint)


def keep(home: SmallHome, content: BucketContent) -> bool:
    with home.store.write() as txn:
        return content.keep(txn, PATH, DATA)


def test_what_is_asked_of_a_bucket(home: SmallHome, server: S3Server) -> None:
    """One request writes an original, one reads it; a compaction lists, and removes many in one."""
    for number in range(20):
        home.content.stage(raw_path(f"{number:064}", "txt"), DATA)
    assert [request.method for request in server.requests] == ["PUT"] * 20
    home.content.stage(PATH, DATA)
    assert keep(home, home.content)
    server.requests.clear()
    home.content.stage(PATH, DATA)
    assert keep(home, home.content)
    assert server.requests == []
    home.content.read(PATH, sha256_hex(DATA))
    assert [request.method for request in server.requests] == ["GET"]
    server.requests.clear()
    home.compact(grace_min=0)
    home.compact(grace_min=0)
    assert [request.method for request in server.requests] == ["GET", "GET", "POST"]
    assert server.objects == {}


@pytest.mark.parametrize("to", ["two", ""])
def test_a_bucket_that_changes_between_bytes_and_record(
    home: SmallHome, server: S3Server, to: str
) -> None:
    """What was uploaded to the former place is written to the new one before a record names it."""
    home.content.stage(PATH, DATA)
    other = BucketContent(home.store, home.paths)
    use_bucket(home.store, place(server, to) if to else BucketPlace())
    if to:
        assert not keep(home, home.content)
        home.content.stage(PATH, DATA)
    assert keep(home, home.content)
    assert other.read(PATH, sha256_hex(DATA)) == DATA
    assert len([name for name in server.objects if name.startswith("two/")]) == bool(to)


def test_no_setting_leaves_an_original_behind(home: SmallHome, server: S3Server) -> None:
    """A place without what the home names is refused, and the home goes on with its own."""
    home.content.stage(PATH, DATA)
    assert keep(home, home.content)
    for wanted in (place(server, "two"), BucketPlace()):
        with pytest.raises(UsageError, match="1 originals of this home are in s3://docs/one"):
            use_bucket(home.store, wanted)
    with home.store.read() as txn:
        assert place_of(txn).url == "s3://docs/one"
    assert home.content.read(PATH, sha256_hex(DATA)) == DATA


def test_what_is_kept_in_records_stays_there(home: SmallHome, server: S3Server) -> None:
    """Originals of before the setting are read from the database, and count as there."""
    use_bucket(home.store, BucketPlace())
    home.content.stage(PATH, DATA)
    assert keep(home, home.content)
    use_bucket(home.store, place(server, "one"))
    server.requests.clear()
    home.content.stage(PATH, DATA)
    assert keep(home, home.content)
    assert home.content.read(PATH, sha256_hex(DATA)) == DATA
    assert server.requests == []


def test_a_removal_that_the_bucket_does_not_take(home: SmallHome, server: S3Server) -> None:
    """A compaction says so and goes on; a later one removes what was left."""
    home.content.stage(PATH, DATA)
    home.compact(grace_min=0)
    server.faults.append(
        lambda asked: s3_server.refusal(403, "AccessDenied") if asked.method == "POST" else None
    )
    report = home.compact(grace_min=0)
    assert [("AccessDenied" in problem) for problem in report.problems] == [True]
    assert len(server.objects) == 1
    server.faults.clear()
    home.compact(grace_min=0)
    home.compact(grace_min=0)
    assert server.objects == {}


def test_a_bucket_that_cannot_be_listed_loses_no_mark(home: SmallHome, server: S3Server) -> None:
    """A compaction removes nothing there that it cannot list, and all else; marks stay."""
    home.content.stage(PATH, DATA)
    home.add("tea.md", "# Tea\n\nGreen.\n")
    home.add("tea.md", "# Tea\n\nBlack.\n")
    assert home.compact(grace_min=0).files_marked == 3
    home.add("coffee.md", "# Coffee\n\nRoasted.\n")
    server.faults.append(lambda _: s3_server.refusal(503, "SlowDown"))
    report = home.compact(grace_min=0)
    (problem,) = report.problems
    assert "503 SlowDown" in problem
    assert (report.files_removed, len(server.objects)) == (2, 1)
    assert report.log_entries_removed > 0
    dry = home.compact(grace_min=0, dry_run=True)
    assert [("503 SlowDown" in problem) for problem in dry.problems] == [True]
    server.faults.clear()
    assert (home.compact(grace_min=0).files_removed, server.objects) == (1, {})
