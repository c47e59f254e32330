"""A kill at every step of placing notes, and what the next worker makes of it."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from crash_rig import Rig
from llm_server import LlmServer, llm_serving
from msgspec import Struct
from notebooks import git, needs_git

from kb.knowledge.notebook.listing import Listing
from kb.model import failpoints

pytestmark = needs_git

KILLED: Final = -signal.SIGKILL
OWN: Final = [name for name in failpoints.NAMES if name.startswith("notebook.")]
# By rule three notes share a move of the branch; the index page and three files are brought level.
RULE: Final = [
    ("notebook.after_objects", 1),
    ("notebook.before_ref", 1),
    ("notebook.after_ref", 1),
    ("notebook.after_file", 2),
    ("notebook.after_level", 1),
    ("notebook.after_intake", 1),
]
# A model moves the first note as well.
MODEL: Final = [
    ("notebook.after_ref", 1),
    ("notebook.after_file", 3),
    ("notebook.before_index", 1),
    ("notebook.after_level", 1),
]
# The very first start: the repository itself is made.
FIRST: Final = [("notebook.before_ref", 1), ("notebook.after_file", 1)]
# Two notes become one, and a link follows: three files, the list among them.
TIDY: Final = [
    ("notebook.after_objects", 1),
    ("notebook.before_ref", 1),
    ("notebook.after_ref", 1),
    ("notebook.after_file", 2),
    ("notebook.after_file", 3),
    ("notebook.before_index", 1),
    ("notebook.after_level", 1),
    ("notebook.after_intake", 1),
]
# Hit in the one thread that places notes, so as often in every run.
ORDERLY: Final = ("notebook.", "content.", "ingest.")
KILLS: Final = int(os.environ.get("KB_KILLS", "200"))
WORDS: Final = {"alpha": "work", "bravo": "work", "charlie": "play"}


class NotebookScenario(Struct, frozen=True):
    """Homes in which notes wait."""

    rule: Rig
    """One note is in, three wait, and are placed by rule."""
    model: Rig
    """One note is in, one waits, and a model is asked, which moves the first."""
    first: Rig
    """No notebook yet, three notes wait."""
    untidy: Rig
    """Two of three notes say the same, and the third has a link to one of them."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NotebookScenario]:
    root = tmp_path_factory.mktemp("story")
    with llm_serving("ollama") as server:
        first = Rig(root / "first")
        hand_in(first, WORDS)
        begun = Rig(root / "begun")
        hand_in(begun, {"zero": "old"})
        begun.drain()
        rule = begun.copied(root / "rule")
        hand_in(rule, WORDS)
        server.script = [moving(server)]
        said = ("llm.provider=ollama", "llm.model=m", f"llm.base_url={server.base_url}")
        model = begun.copied(root / "model", cfg=said)
        hand_in(model, {"alpha": "work"})
        untidy = begun.copied(root / "untidy")
        hand_in(untidy, {"zero": "spare", "link": "links"}, link="[zero](../spare/zero.md)")
        untidy.drain()
        yield NotebookScenario(rule, model, first, untidy)


def moving(server: LlmServer) -> object:
    """The model's answer: the new note, and the first one moved."""
    entries = {"new/zero.md": ("zero", "Here stands zero."), "work/alpha.md": ("alpha", "New.")}
    lines = [f"- [{title}]({path}) — {said}" for path, (title, said) in entries.items()]
    text = "<!-- One line to a note, kept by kb. Text of your own may stand between. -->"
    index = "\n".join(["# Index", "", text, "", "## Old", *lines, ""])
    move = {"from": "old/zero.md", "to": "new/zero.md"}
    said = {"target_path": "work/alpha.md", "refactors": [move], "updated_index": index}
    return server.says(json.dumps(said))


def hand_in(rig: Rig, notes: dict[str, str], **said: str) -> None:
    for word, hint in notes.items():
        text = f"# {word}\n\n{said.get(word) or f'Here stands {word}.'}\n"
        assert rig.call("note", "add", text, "--hint", hint).code == 0


def work_until_killed(rig: Rig, armed: str) -> int:
    return rig.run("worker", "--drain", armed=armed).code


def notebook_of(rig: Rig) -> Path:
    return rig.home / "notebook"


def assert_whole(rig: Rig, words: dict[str, str]) -> None:
    """Each job has one commit; list, tree, work tree and index agree; each note is found, once."""
    root = notebook_of(rig)
    subjects = git(root, "log", "--format=%s").splitlines()
    jobs = json.loads(rig.call("job", "ls", "--limit", 10_000, "--json").out)["jobs"]
    notes = {job["job_id"]: job for job in jobs if job["kind"] == "organize"}
    assert {job["status"] for job in notes.values()} == {"done"}
    stored = Counter(line.partition(":")[0] for line in subjects if line.startswith("store("))
    assert stored == {f"store({job})": 1 for job in notes}
    assert_in_order(rig)
    for word in words:
        hits = rig.call("search", "--mode", "lexical", word, "--json").json["hits"]
        assert len({hit["doc_id"] for hit in hits}) == 1, word


def assert_in_order(rig: Rig) -> None:
    """List, tree, work tree and index agree, no lock is left, and the docs are those listed."""
    root = notebook_of(rig)
    assert git(root, "status", "--porcelain", "-uall") == ""
    assert git(root, "fsck", "--strict", "--no-dangling") == ""
    files = git(root, "ls-files").split()
    assert not list((root / ".git").rglob("*.lock"))
    listed = [one.path for one in Listing((root / "INDEX.md").read_text("utf-8")).entries()]
    assert sorted(listed) == sorted({*files} - {"INDEX.md", ".gitignore"})
    found = rig.call("ls", "--kind", "notebook", "--limit", 0, "--json").json["docs"]
    assert sorted(os.path.relpath(doc["source"], root) for doc in found) == sorted(listed)
    rig.check()


def assert_goes_on(rig: Rig, words: dict[str, str]) -> None:
    rig.check()
    rig.drain()
    assert_whole(rig, words)


@pytest.mark.parametrize(("name", "hit"), RULE)
def test_killed_while_notes_are_placed(
    story: NotebookScenario, tmp_path: Path, name: str, hit: int
) -> None:
    """All of the three notes are in the branch, or none; the next worker ends it, once."""
    rig = story.rule.copied(tmp_path)
    before = len(git(notebook_of(rig), "log", "--format=%s").splitlines())
    assert work_until_killed(rig, f"{name}=kill@{hit}") == KILLED
    after = len(git(notebook_of(rig), "log", "--format=%s").splitlines())
    assert after - before in (0, len(WORDS))
    assert_goes_on(rig, {"zero": "", **WORDS})


@pytest.mark.parametrize(("name", "hit"), MODEL)
def test_killed_while_a_note_moves(
    story: NotebookScenario, tmp_path: Path, name: str, hit: int
) -> None:
    """The move and the note are one commit; the doc that moved is the same one."""
    rig = story.model.copied(tmp_path)
    (before,) = rig.call("ls", "--kind", "notebook", "--json").json["docs"]
    assert work_until_killed(rig, f"{name}=kill@{hit}") == KILLED
    assert_goes_on(rig, {"zero": "", "alpha": ""})
    docs = rig.call("ls", "--kind", "notebook", "--json").json["docs"]
    moved = {os.path.relpath(doc["source"], notebook_of(rig)): doc["doc_id"] for doc in docs}
    assert moved["new/zero.md"] == before["doc_id"]


@pytest.mark.parametrize(("name", "hit"), FIRST)
def test_killed_while_the_notebook_is_made(
    story: NotebookScenario, tmp_path: Path, name: str, hit: int
) -> None:
    """The next worker makes it, and places the notes."""
    rig = story.first.copied(tmp_path)
    assert work_until_killed(rig, f"{name}=kill@{hit}") == KILLED
    assert_goes_on(rig, WORDS)


@pytest.mark.parametrize(("name", "hit"), TIDY)
def test_killed_while_it_is_tidied(
    story: NotebookScenario, tmp_path: Path, name: str, hit: int
) -> None:
    """The merge, the link and the list are one commit or none; asked again, it is made once."""
    rig = story.untidy.copied(tmp_path)
    root = notebook_of(rig)
    assert rig.run("note", "tidy", "--apply", armed=f"{name}=kill@{hit}").code == KILLED
    rig.check()
    assert rig.call("note", "tidy", "--apply").code == 0
    subjects = git(root, "log", "--format=%s").splitlines()
    assert sum(subject.startswith("tidy(") for subject in subjects) == 1
    assert (root / "links/link.md").read_text("utf-8") == "# link\n\n[zero](../old/zero.md)\n"
    assert rig.call("note", "tidy").code == 0
    assert rig.call("sync-all", "--interval-min", "0").code == 0
    rig.drain()
    assert_in_order(rig)


def test_every_failpoint_of_the_notebook_fires(story: NotebookScenario, tmp_path: Path) -> None:
    """Every failpoint of its own is in the story's way, and is armed above."""
    rig = story.rule.copied(tmp_path)
    assert work_until_killed(rig, "") == 0
    assert set(OWN) <= set(rig.hit())
    assert set(OWN) == {name for name, _ in (*RULE, *MODEL)}
    assert_whole(rig, WORDS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_hit_of_every_failpoint_of_the_notebook(
    story: NotebookScenario, tmp_path: Path
) -> None:
    """Wherever the kill comes, all of the above holds."""
    for before, words in ((story.rule, {"zero": "", **WORDS}), (story.first, WORDS)):
        control = before.copied(tmp_path / "control")
        assert work_until_killed(control, "") == 0
        hits = Counter(control.hit())
        shutil.rmtree(control.root)
        for name, count in hits.items():
            for hit in range(1, count + 1):
                rig = before.copied(tmp_path / "killed")
                code = work_until_killed(rig, f"{name}=kill@{hit}")
                assert code == KILLED or (code == 0 and not name.startswith(ORDERLY))
                assert_goes_on(rig, words)
                shutil.rmtree(rig.root)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_random_kills_of_two_workers(tmp_path: Path) -> None:
    """Two workers on one notebook, killed at random moments: one commit to a note, always."""
    seed = int(os.environ.get("KB_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"KB_SEED={seed}")
    rng = random.Random(seed)
    rig = Rig(tmp_path)
    killed, made = 0, 0
    words: dict[str, str] = {}
    while killed < KILLS:
        for _ in range(20):
            new = {
                f"note{made + n}": f"folder{rng.randrange(5)}" for n in range(rng.randrange(1, 8))
            }
            hand_in(rig, new)
            words |= new
            made += len(new)
            workers = [rig.start("worker", "--drain") for _ in range(2)]
            time.sleep(rng.uniform(0.1, 1.2))
            for worker in workers:
                worker.kill()
            killed += sum(code == KILLED for code in map(ended, workers))
        assert_goes_on(rig, dict(rng.sample(sorted(words.items()), min(10, len(words)))))
    print(f"{killed} kills over {made} notes")


def ended(worker: "subprocess.Popen[str]") -> int:
    worker.communicate(timeout=120)
    return worker.returncode
