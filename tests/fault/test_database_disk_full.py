"""The disk of a database really is full: a tablespace on a file system of a few megabytes."""

import contextlib
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodes import Node
from postgres_server import PostgresServer

from kb.store.content.database import database_address

SMALL, LARGE = "8m", "64m"


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of a few megabytes that the server may write, where tests may mount one."""
    folder = Path("/tmp") / f"kb-disk-{os.getpid()}"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL},mode=0777", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("nobody may mount a file system here")
    try:
        yield folder
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def test_a_full_disk(postgres: PostgresServer, tmp_path: Path, small_disk: Path) -> None:
    """An add that has no room is one line and exit code 1; it is whole once there is room."""
    node = Node(tmp_path / "one", postgres.home(), KB_MACHINE="one")
    (tmp_path / "oak.md").write_text("# Oak\n\nWe plant oaks.\n")
    assert node.run("add", tmp_path / "oak.md").code == 0
    schema = database_address(node.home).schema
    place = small_disk / "space"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    if os.geteuid() == 0:
        import pwd

        os.chown(place, pwd.getpwnam("nobody").pw_uid, -1)
    postgres.run_sql(f"CREATE TABLESPACE small LOCATION '{place}'")
    try:
        postgres.run_sql(f"ALTER TABLE {schema}.records SET TABLESPACE small")
        rng = random.Random(5)
        # Such that it does not compress.
        words = " ".join(f"{rng.getrandbits(64):x}" for _ in range(700_000))
        (tmp_path / "large.md").write_text(f"# Large\n\n{words}\n")
        added = node.run("add", tmp_path / "large.md")
        assert (added.code, added.err.count("\n")) == (1, 1), added.err
        assert "no room left" in added.err
        assert len(node.run("ls", "--json").json["docs"]) == 1
        assert len(node.hits("oaks")) == 1
        subprocess.run(["mount", "-o", f"remount,size={LARGE}", small_disk], check=True)
        assert node.run("add", "--no-wait", tmp_path / "large.md").code == 0
        assert len(node.run("ls", "--json").json["docs"]) == 2
        assert node.run("check").code == 0
    finally:
        postgres.drop(schema)
        postgres.run_sql("DROP TABLESPACE small")
