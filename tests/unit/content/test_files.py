"""Files written whole."""

import threading
from pathlib import Path

import pytest
from child_processes import finished, start

from kb.errors import KbError, ReadOnlyHome, StoreDamaged, StoreFull
from kb.model import failpoints
from kb.model.ids import sha256_hex
from kb.store.content.files import ContentFiles
from kb.store.content.layout import HomePaths

NAME = "raw/ab/abc.md"
DATA = b"some bytes\n" * 100
ROUNDS = 20


@pytest.fixture
def content(tmp_path: Path) -> ContentFiles:
    paths = HomePaths(tmp_path / "home")
    paths.make()
    return ContentFiles(paths)


def files_of(content: ContentFiles) -> list[str]:
    root = content.paths.root
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_new_file_is_whole_and_private(content: ContentFiles) -> None:
    """The bytes lie under the name, for their owner only, and nothing else is left."""
    assert content.write_if_new(NAME, DATA)
    path = content.paths.root / NAME
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (DATA, 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert files_of(content) == [NAME]


def test_an_empty_file_may_be_written(content: ContentFiles) -> None:
    """No bytes are bytes too."""
    assert content.write_if_new(NAME, b"")
    assert content.read(NAME, sha256_hex(b"")) == b""


def test_the_same_bytes_again_are_false(content: ContentFiles) -> None:
    """Writing what is there is False and does not touch the file."""
    content.write_if_new(NAME, DATA)
    before = (content.paths.root / NAME).stat()
    assert not content.write_if_new(NAME, DATA)
    assert not ContentFiles(content.paths).write_if_new(NAME, DATA)
    assert (content.paths.root / NAME).stat() == before


def test_another_length_is_damage(content: ContentFiles) -> None:
    """A file of another length under the name is StoreDamaged and stays as it is."""
    content.write_if_new(NAME, DATA)
    with pytest.raises(StoreDamaged, match="another file has this name"):
        content.write_if_new(NAME, DATA + b"x")
    assert content.read(NAME, sha256_hex(DATA)) == DATA


@pytest.mark.parametrize("attempt", range(ROUNDS))
def test_of_many_threads_one_writes(content: ContentFiles, attempt: int) -> None:
    """Of eight threads at one name exactly one makes the file, whole, and nobody fails."""
    bodies = [bytes([number]) * 50_000 for number in range(8)]
    gate = threading.Barrier(len(bodies))
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        gate.wait()
        results[number] = content.write_if_new(NAME, bodies[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [winner] = [number for number, made in results.items() if made]
    assert (len(results), files_of(content)) == (len(bodies), [NAME])
    assert (content.paths.root / NAME).read_bytes() == bodies[winner]


_RACER = """
import sys
from pathlib import Path
from kb.store.content.files import ContentFiles
from kb.store.content.layout import HomePaths

content = ContentFiles(HomePaths(Path(sys.argv[1])))
body = sys.argv[2].encode() * 50_000
print("ready", flush=True)
sys.stdin.readline()
print(sum(content.write_if_new(f"raw/ab/{n}.md", body) for n in range(20)))
"""


def test_of_many_processes_one_writes(content: ContentFiles) -> None:
    """Of four processes at twenty names each name is made once, and holds one writer's bytes."""
    racers = [start(_RACER, content.paths.root, letter) for letter in "abcd"]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    outputs = [racer.communicate()[0] for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 4
    assert sum(map(int, outputs)) == 20
    assert files_of(content) == sorted(f"raw/ab/{n}.md" for n in range(20))
    for name in files_of(content):
        body = (content.paths.root / name).read_bytes()
        assert body in [letter.encode() * 50_000 for letter in "abcd"]


def arm(monkeypatch: pytest.MonkeyPatch, name: str, action: str) -> None:
    monkeypatch.setattr(failpoints, "_armed", {name: (action, 1)})
    monkeypatch.setattr(failpoints, "_hits", {})


@pytest.mark.parametrize(("action", "error"), [("enospc", StoreFull), ("eio", StoreDamaged)])
@pytest.mark.parametrize("point", ["before_write", "after_write", "after_fsync"])
def test_an_error_before_the_link_leaves_nothing(
    content: ContentFiles,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    error: type[KbError],
    point: str,
) -> None:
    """A full or failing disk leaves no file under the name and none in tmp; a retry succeeds."""
    with monkeypatch.context() as patch:
        arm(patch, f"content.{point}", action)
        with pytest.raises(error):
            content.write_if_new(NAME, DATA)
    assert files_of(content) == []
    assert content.write_if_new(NAME, DATA)


@pytest.mark.parametrize("action", ["enospc", "eio"])
def test_an_error_after_the_link_leaves_the_whole_file(
    content: ContentFiles, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """Once linked a file stays, whole; the call still fails, and a retry finds it there."""
    with monkeypatch.context() as patch:
        arm(patch, "content.after_link", action)
        with pytest.raises(KbError):
            content.write_if_new(NAME, DATA)
    assert files_of(content) == [NAME]
    assert not content.write_if_new(NAME, DATA)


_WRITER = """
import sys
from pathlib import Path
from kb.store.content.files import ContentFiles
from kb.store.content.layout import HomePaths
from kb.errors import KbError

try:
    ContentFiles(HomePaths(Path(sys.argv[1]))).write_if_new("raw/ab/abc.md", b"x" * 100_000)
except KbError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(("action", "name"), [("enospc", "StoreFull"), ("eio", "StoreDamaged")])
def test_failpoints_are_armed_from_outside(content: ContentFiles, action: str, name: str) -> None:
    """KB_FAILPOINTS arms a child's write; the child reports a known error and leaves nothing."""
    child = finished(_WRITER, content.paths.root, KB_FAILPOINTS=f"content.after_write={action}")
    assert (child.stdout, child.stderr, files_of(content)) == (f"{name}\n", "", [])


def test_a_file_size_limit_is_a_full_store(content: ContentFiles) -> None:
    """A write past the process's file-size limit is StoreFull and leaves nothing."""
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
    child = finished(limit + _WRITER, content.paths.root)
    assert (child.stdout, child.stderr, files_of(content)) == ("StoreFull\n", "", [])


def test_a_kill_leaves_nothing_under_the_name(content: ContentFiles) -> None:
    """A writer killed before the link leaves at most a file in tmp, which no reader looks at."""
    child = finished(_WRITER, content.paths.root, KB_FAILPOINTS="content.after_fsync=kill")
    assert child.returncode == -9
    assert [name.split("/")[0] for name in files_of(content)] == ["tmp"]
    assert content.write_if_new(NAME, DATA)


def test_a_file_in_the_way_is_a_known_error(content: ContentFiles) -> None:
    """Where a folder should be and a file is, it is a KbError, not a bare OSError."""
    (content.paths.root / "raw" / "ab").write_bytes(b"")
    with pytest.raises(StoreDamaged):
        content.write_if_new(NAME, DATA)


def test_reading_checks_the_hash(content: ContentFiles) -> None:
    """Bytes come back only where they hash to what the record says."""
    content.write_if_new(NAME, DATA)
    assert content.read(NAME, sha256_hex(DATA)) == DATA
    path = content.paths.root / NAME
    path.write_bytes(DATA[:-1] + b"x")
    with pytest.raises(StoreDamaged, match=r"raw/ab/abc\.md: the file is not what was written"):
        content.read(NAME, sha256_hex(DATA))


@pytest.mark.parametrize("name", ["raw/ab/none.md", "raw", "none/none"])
def test_an_absent_file_is_damage(content: ContentFiles, name: str) -> None:
    """A file that a record names and that cannot be read is StoreDamaged, with its name."""
    with pytest.raises(StoreDamaged, match=f"^{name}: cannot be read"):
        content.read(name, sha256_hex(DATA))


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    """Folders that cannot be made are ReadOnlyHome."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ReadOnlyHome):
        HomePaths(tmp_path / "file" / "home").make()


def test_nothing_is_written_through_a_link(content: ContentFiles, tmp_path: Path) -> None:
    """A folder that is a link is refused, and where it leads stays empty."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (content.paths.root / NAME).parent.symlink_to(outside)
    with pytest.raises(StoreDamaged, match="a symbolic link is on the path"):
        content.write_if_new(NAME, DATA)
    assert list(outside.iterdir()) == []
