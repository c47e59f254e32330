"""`kb watch` in a process of its own: what changes on disk is found soon after."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Home, surroundings

from kb.model.origin import Origin
from kb.operations import watch

SOON_S = 120.0
STEP_S = 0.05


class Watched(Home):
    """A home that a `kb watch` keeps current."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.said: list[str] = []

    def start(self) -> None:
        self.child = subprocess.Popen(
            self.argv("watch"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=surroundings(),
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.child.stdout is not None
        self.said.extend(iter(self.child.stdout.readline, ""))

    def stop(self, signum: int = signal.SIGTERM) -> int:
        self.child.send_signal(signum)
        return self.child.wait(SOON_S)

    def soon(self, is_so: Callable[[], bool]) -> bool:
        """Whether it becomes so before the watch is given up on."""
        deadline_s = time.monotonic() + SOON_S
        while time.monotonic() < deadline_s:
            if is_so():
                return True
            assert self.child.poll() is None, self.said
            time.sleep(STEP_S)
        return False

    def heard(self, text: str) -> bool:
        return any(text in line for line in self.said)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "n"
    folder.mkdir()
    (folder / "first.md").write_text("The first note.")
    return folder


@pytest.fixture
def home(tmp_path: Path, folder: Path) -> Iterator[Watched]:
    # Inside the folder that is watched, as a project's is.
    home = Watched(folder / ".kb")
    home.run("add", "-r", folder)
    home.start()
    yield home
    if home.child.poll() is None:
        home.child.kill()
    home.child.wait()
    assert home.child.stdout is not None
    home.child.stdout.close()


def test_each_change_is_found_soon(home: Watched, folder: Path) -> None:
    """A new file, an edit, a rename and a removal, each within seconds; then it ends with 0."""
    assert home.soon(lambda: home.heard("watching 1 folder"))
    (folder / "new.md").write_text("Something about lighthouses.")
    assert home.soon(lambda: "new.md" in home.ids())
    doc_id = home.ids()["new.md"]
    (folder / "new.md").write_text("Something about windmills, and more of it.")
    assert home.soon(lambda: home.ids()["new.md"] != doc_id)
    edited = home.ids()["new.md"]
    (folder / "new.md").rename(folder / "renamed.md")
    assert home.soon(lambda: home.ids().get("renamed.md") == edited)
    (folder / "renamed.md").unlink()
    assert home.soon(lambda: set(home.ids()) == {"first.md"})
    assert home.stop() == 0
    assert home.run("check").code == 0


def test_a_burst_is_taken_in_whole(home: Watched, folder: Path) -> None:
    """Two hundred files at once, in new folders, are all found; another folder joins in."""
    for n in range(200):
        below = folder / f"d{n % 20}"
        below.mkdir(exist_ok=True)
        (below / f"{n:03}.md").write_text(f"Note {n} of many.")
    assert home.soon(lambda: len(home.ids()) == 201)
    later = folder.parent / "later"
    later.mkdir()
    (later / "a.md").write_text("In a folder that was added later.")
    home.run("add", "-r", later)
    assert home.soon(lambda: home.heard("watching 2 folders"))
    (later / "b.md").write_text("Another in it.")
    assert home.soon(lambda: "b.md" in home.ids())
    assert home.stop(signal.SIGINT) == 130


@pytest.mark.parametrize(
    ("path", "is_seen"),
    [
        ("/n/a.md", True),
        ("/n/sub/node_modules/a.md", True),
        ("/n/sub/.kbignore", True),
        ("/n/.git/index", False),
        ("/n/home/store/data.mdb", False),
        ("/elsewhere/a.md", False),
    ],
)
def test_what_sets_a_sync_off(path: str, is_seen: bool) -> None:
    """What a walk could see does; kb's own home, which each sync writes to, does not."""
    folder = Origin(origin_id="s1", kind="folder", location="/n", added_ms=1)
    assert watch.concerns(path, [folder], "/n/home") == is_seen


def test_without_a_folder_there_is_nothing_to_watch(tmp_path: Path) -> None:
    """It says what to do, with exit 4."""
    ran = Home(tmp_path / "home").run("watch")
    assert ran.code == 4
    assert "kb add" in ran.err


def test_entries_and_notes_in_the_home_are_watched(home: Watched) -> None:
    """What lies in the home and is a source there is looked at as any folder is."""
    made = home.run("new", "Growing quince")
    assert made.code == 0
    assert home.run("note", "add", "Plums ripen late.", "--wait").code == 0
    assert home.soon(lambda: home.heard("watching 3 folders"))
    entry = Path(made.out.split()[0])
    entry.write_text(entry.read_text() + "\nA medlar is a cousin.\n")
    assert home.soon(lambda: "medlar" in home.run("search", "medlar", "--mode", "lexical").out)
    (home.root / "notebook" / "sloes.md").write_text("# Sloes\n\nBlackthorn bears them.\n")
    assert home.soon(lambda: "Sloes" in home.run("search", "blackthorn", "--mode", "lexical").out)
