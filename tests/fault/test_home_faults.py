"""Homes on disks that are full, read-only or rotten."""

import copy
import json
import random
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import lmdb
import pytest
from child_processes import finished
from crash_rig import KB, Called, Rig, assert_one_clear_line
from untrusted_homes import trust_home

from kb.errors import StoreDamaged, StoreFull
from kb.store.lmdb_env import LmdbEnvironment
from kb.store.trust import TrustList

SEED: Final = 20_240_611
PAGE: Final = 4096
WORDS: Final = ("quince", "medlar", "damson", "sorb")
POISON: Final = "poison"


def text(word: str) -> str:
    return f"# About {word}\n\nHere stands {word}, among words that all files have.\n"


def fill(rig: Rig) -> None:
    rig.write({f"{word}.md": text(word) for word in WORDS})
    rig.add()


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def hits_of(said: Called) -> set[tuple[str, str]]:
    assert said.code == 0, said
    return {(hit["source"], hit["chunk_id"]) for hit in said.json["hits"]}


# Disks that fill up.


_LIMITED: Final = """
import os, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
os.execv(sys.argv[2], sys.argv[2:])
"""


def limited(file_bytes: int) -> list[str]:
    """No file may grow beyond so many bytes, as on a disk that is about to be full."""
    return [sys.executable, "-c", _LIMITED, str(file_bytes)]


@pytest.mark.parametrize("room", [0, PAGE, 16 * PAGE, 40 * PAGE])
def test_files_that_may_not_grow(rig: Rig, room: int) -> None:
    """One line and exit 1, what was acknowledged stays, and with room the same command goes on."""
    fill(rig)
    limit = (rig.home / "store" / "data.mdb").stat().st_size + room
    rig.write({f"{n}.md": text(f"filler{n}") * 40 for n in range(60)})
    said = rig.run("add", "-r", rig.sources, "--json", under=limited(limit))
    assert_one_clear_line(said)
    assert said.code == 1
    rig.check()
    assert rig.found(WORDS) == {word: [f"{word}.md"] for word in WORDS}
    rig.add()
    rig.check()
    assert len(rig.docs()) == len(WORDS) + 60


def test_a_source_larger_than_the_room(rig: Rig) -> None:
    """A file that does not fit leaves nothing of it behind, nor of a temporary one."""
    fill(rig)
    before = rig.content_files()
    rig.write({"large.md": text("large") + "word " * 400_000})
    said = rig.run("add", "-r", rig.sources, under=limited(1 << 20))
    assert_one_clear_line(said)
    assert said.code == 1
    assert rig.content_files() == before
    assert list((rig.home / "tmp").iterdir()) == []
    rig.check()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_a_backup_under_a_limit_blames_the_limit(rig: Rig, share: float) -> None:
    """Nothing is said of the store, which is sound; nothing is left, and older backups stay."""
    fill(rig)
    assert rig.call("backup", "create").code == 0
    limit = int((rig.home / "store" / "data.mdb").stat().st_size * share)
    said = rig.run("backup", "create", "--keep", 1, under=limited(limit))
    assert_one_clear_line(said)
    assert said.code == 1
    assert "no room left" in said.err
    assert "ulimit -f" in said.err
    assert "kb check" not in said.err
    assert len(list((rig.home / "backups").iterdir())) == 1
    rig.check()


def test_a_copy_that_fails_blames_the_place_that_has_no_room(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB does not always say why; the store is damaged only where there is room for its copy."""
    fill(rig)

    class Failing:
        def copy(self, *_: object, **__: object) -> None:
            raise lmdb.Error("mdb_env_copy3: something")

        def __getattr__(self, name: str) -> object:
            return getattr(env._env, name)

    env = LmdbEnvironment(rig.home / "store")
    (rig.root / "to").mkdir()
    for has_no_room, error in ((True, StoreFull), (False, StoreDamaged)):
        monkeypatch.setattr("kb.store.lmdb_env._is_disk_full", lambda _, said=has_no_room: said)
        failing = copy.copy(env)
        failing._env = Failing()
        with pytest.raises(error):
            failing.copy_to(rig.root / "to")
    env.close()


def test_an_answer_that_finds_no_room_says_what_has_none(rig: Rig) -> None:
    """A search into a file that may not grow names neither the store nor nothing at all."""
    fill(rig)
    command = [*limited(16), str(KB), *rig.args("search", "quince")]
    with open(rig.root / "answer", "wb") as answer:
        ran = subprocess.run(
            command, stdout=answer, stderr=subprocess.PIPE, env=rig.env(), text=True
        )
    assert ran.returncode == 1
    (line,) = ran.stderr.splitlines()
    assert line == (
        "kb: the output could not be written: the size of files is limited (ulimit -f); "
        "what was committed is kept"
    )


@contextmanager
def small_disk(at: Path, size: str) -> Iterator[Path]:
    at.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(at)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def test_a_small_disk(tmp_path: Path) -> None:
    """On a disk that is full in earnest nothing acknowledged is lost; freed, it goes on."""
    sources = tmp_path / "src"
    with small_disk(tmp_path / "disk", "3m") as disk:
        rig = Rig(disk, sources)
        fill(rig)
        ballast = disk / "ballast"
        fill_up(ballast)
        rig.write({f"{n}.md": text(f"filler{n}") * 40 for n in range(30)})
        # The failpoints' log would need room too.
        said = rig.run("add", "-r", rig.sources, "--json", KB_FAILPOINTS_LOG="")
        assert_one_clear_line(said)
        assert said.code == 1
        assert hits_of(rig.run("search", "quince", "--json", KB_FAILPOINTS_LOG=""))
        ballast.unlink()
        rig.check()
        assert rig.found(WORDS) == {word: [f"{word}.md"] for word in WORDS}
        rig.add()
        rig.check()


def fill_up(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 16, PAGE):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


# Homes that cannot be written.


# Runs commands as a user whom permissions bind. All is imported before: the program itself may
# lie where that user cannot read. So each command is run on a copy of the home first, and what a
# child would survey is surveyed here.
_AS_NOBODY: Final = """
import contextlib, io, json, os, sys
from pathlib import Path
from crash_rig import Rig
from kb.errors import KbError
from kb_cli.errors import exit_code_of
from kb_cli.main import kb
from kb.upkeep.check import salvage
from kb.store import surveyor

salvage.survey_store = lambda folder, beside_writers=False: surveyor.main(
    folder, pin=beside_writers, to=None
)

def run(rig, args):
    out, err, code = io.TextIOWrapper(io.BytesIO()), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            kb.main(rig.args(*args), standalone_mode=False, obj={})
        except BaseException as error:
            code = exit_code_of(error, verbose=False)
    out.flush()
    return [code, out.buffer.getvalue().decode(), err.getvalue()]

home, copy, commands = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
for args in commands:
    run(Rig(copy, home / "src"), args)
os.chdir("/")
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print(json.dumps([run(Rig(home), args) for args in commands]))
"""


@pytest.fixture
def open_rig() -> Iterator[Rig]:
    """A rig in a folder that others may read."""
    folder = Path(tempfile.mkdtemp(prefix="kb-read-only-"))
    folder.chmod(0o755)
    yield Rig(folder)
    allow(folder, writing=True)
    shutil.rmtree(folder)


def allow(folder: Path, *, writing: bool) -> None:
    for path in [folder, *folder.rglob("*")]:
        mode = 0o755 if path.is_dir() else 0o644
        path.chmod(mode if writing else mode & ~(stat.S_IWUSR))


@pytest.mark.parametrize("with_index", [True, False])
def test_a_read_only_home(open_rig: Rig, tmp_path: Path, with_index: bool) -> None:
    """What only reads works without a place to write, with and without caches; the rest is told."""
    rig = open_rig
    fill(rig)
    rig.write({"new.md": text("new")})
    before = hits_of(rig.call("search", "quince words", "--json"))
    doc = rig.docs()["quince.md"]["doc_id"]
    if not with_index:
        shutil.rmtree(rig.home / "index")
        (rig.home / "index").mkdir()
    rig.copied(tmp_path / "copy")
    # Theirs is another list, on which the home of another user has to be.
    for home in (rig.home, tmp_path / "copy" / "home"):
        TrustList(rig.root / "data" / "kb-trust").put_folder(home, [])
        trust_home(home, rig.root / "data")
    allow(rig.root, writing=False)
    reading = [
        ["search", "quince words", "--json"],
        ["ls", "--json"],
        ["show", doc, "--json"],
        ["stats", "--json"],
        ["check", "--json"],
    ]
    writing = [["add", str(rig.sources / "new.md")], ["rm", doc, "--yes"], ["worker", "--drain"]]
    writing += [["backup", "create"]]
    commands = json.dumps([*reading, *writing])
    child = finished(
        _AS_NOBODY,
        rig.root,
        tmp_path / "copy",
        commands,
        HOME=str(rig.root),
        XDG_CONFIG_HOME=str(rig.root),
        XDG_DATA_HOME=str(rig.root / "data"),
    )
    assert child.returncode == 0, child.stderr
    said = [Called(code=code, out=out, err=err) for code, out, err in json.loads(child.stdout)]
    found, listed, shown, counted, checked, *refused = said
    assert hits_of(found) == before
    # What is there is read, and not built anew in memory by each search.
    assert ("could not be written" in found.out) is not with_index
    assert (listed.code, listed.json["total"]) == (0, len(WORDS))
    assert (shown.code, shown.json["doc"]["doc_id"]) == (0, doc)
    assert (counted.code, counted.json["jobs"]["failed"]) == (0, 0)
    # Without caches and without a place for them, a check has to say so.
    assert (checked.code, checked.json["sound"]) == ((0, True) if with_index else (5, False))
    for answer in refused:
        assert_one_clear_line(answer)
        assert answer.code == 1


# Files that rot.


def test_caches_deleted_or_damaged(rig: Rig) -> None:
    """Whatever becomes of index/, the hits are the same, and a second search finds it mended."""
    fill(rig)
    index = rig.home / "index"
    before = hits_of(rig.call("search", "quince words", "--json"))
    files = sorted(path for path in index.rglob("*") if path.is_file() and path.stat().st_size)
    sound = shutil.copytree(index, rig.root / "sound")
    rng = random.Random(SEED)

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 0xFF
        path.write_bytes(data)

    harms: list[Callable[[], object]] = [
        lambda: shutil.rmtree(index),
        lambda: [path.unlink() for path in files],
        lambda: [path.write_bytes(b"") for path in files],
        lambda: [flip(path) for path in files],
    ]
    for harm in harms:
        shutil.rmtree(index, ignore_errors=True)
        shutil.copytree(sound, index)
        harm()
        assert hits_of(rig.call("search", "quince words", "--json")) == before
        assert hits_of(rig.call("search", "quince words", "--json")) == before
        rig.check()


# What each of many searches says, over copies of a store of which a page is zeroed or flipped.
_SEARCH_DAMAGED: Final = """
import contextlib, io, json, random, sys
from pathlib import Path
from crash_rig import Rig
from kb.errors import KbError
from kb_cli.main import kb

root, seed, pages = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
rig, rng = Rig(root), random.Random(seed)
data_file = rig.home / "store" / "data.mdb"
sound = data_file.read_bytes()
for page in pages:
    broken = bytearray(sound)
    place = slice(page * 4096, page * 4096 + 4096)
    broken[place] = bytes(4096) if page % 2 else rng.randbytes(4096)
    data_file.write_bytes(broken)
    (rig.home / "store" / "lock.mdb").unlink(missing_ok=True)
    out = io.TextIOWrapper(io.BytesIO())
    code = 0
    with contextlib.redirect_stdout(out):
        try:
            kb.main(rig.args("search", "quince words", "--json"), standalone_mode=False, obj={})
        except KbError as error:
            code = error.exit_code
    out.flush()
    print(json.dumps([page, code, out.buffer.getvalue().decode()]), flush=True)
"""


def test_damaged_pages_of_the_store(rig: Rig) -> None:
    """With any page overwritten a search finds what it found before, or ends with exit code 5."""
    fill(rig)
    before = hits_of(rig.call("search", "quince words", "--json"))
    data_file = rig.home / "store" / "data.mdb"
    sound, seen = data_file.read_bytes(), 0
    pages = list(range(2, len(sound) // PAGE))
    # A page may take the process with it; the next one goes on behind it.
    while seen < len(pages):
        child = finished(
            _SEARCH_DAMAGED,
            rig.root,
            SEED,
            json.dumps(pages[seen:]),
            HOME=str(rig.root),
            XDG_CONFIG_HOME=str(rig.root),
        )
        answers = [json.loads(line) for line in child.stdout.splitlines()]
        for page, code, out in answers:
            assert code in (0, 5), page
            if code == 0:
                assert hits_of(Called(code=0, out=out, err="")) == before, page
        assert child.returncode == 0, (child.stderr, answers[-1:])
        seen += len(answers)
    data_file.write_bytes(sound)
    rig.check()
