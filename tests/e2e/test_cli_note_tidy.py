"""`kb note tidy`: what is out of order is said, and one commit mends it."""

from pathlib import Path

import msgspec
import pytest
from commands import Home
from crash_rig import Rig
from notebooks import git, needs_git

from kb.knowledge.notebook import TidyReport

OAK = (
    "# {}\n\nThe keel is made of old oak from the hills, and it was laid in the spring of the year "
    "in which the yard burned down.\n{}"
)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def note(rig: Rig, text: str, hint: str) -> None:
    assert rig.call("note", "add", text, "--hint", hint, "--wait").code == 0


def found(rig: Rig, word: str) -> list[str]:
    hits = rig.call("search", word, "--mode", "lexical", "--json").json["hits"]
    return sorted(Path(hit["source"]).name for hit in hits)


def test_no_notebook(rig: Rig) -> None:
    """There is nothing to put in order, and nothing is made."""
    for options in ((), ("--apply",)):
        ran = rig.call("note", "tidy", *options)
        assert (ran.code, ran.out) == (0, "all is in order\n")
    assert not (rig.home / "notebook").exists()


@needs_git
def test_a_notebook_is_put_in_order(rig: Rig) -> None:
    """Said and not done; then done by one commit, searched as it is then; then taken back."""
    root = rig.home / "notebook"
    note(rig, OAK.format("Keel", ""), "boats")
    note(rig, OAK.format("Keel two", "\nIt has a phoenix.\n"), "boats")
    before = git(root, "rev-parse", "HEAD")
    dry = rig.call("note", "tidy")
    assert dry.code == 3
    assert dry.out.splitlines() == [
        "boats/keel-two.md: says nearly the same as boats/keel.md (77%)",
        "  --apply keeps boats/keel.md, and adds to it 1 of its parts",
        "  + It has a phoenix.",
    ]
    assert "1 finding; `kb note tidy --apply` fixes what it can" in dry.err
    assert git(root, "rev-parse", "HEAD") == before
    done = rig.call("note", "tidy", "--apply", "--json")
    assert done.code == 0, done
    report = msgspec.convert(done.json, TidyReport)
    assert report.done == ("boats/keel-two.md is merged into boats/keel.md",)
    assert git(root, "rev-parse", "HEAD").strip() == report.commit
    assert git(root, "status", "--porcelain") == ""
    assert rig.call("note", "tidy").code == 0
    rig.drain()
    assert found(rig, "phoenix") == ["keel.md"]
    assert rig.call("note", "undo", str(report.tidy_id)).code == 0
    rig.drain()
    assert found(rig, "phoenix") == ["keel-two.md"]
    rig.check()


@needs_git
def test_each_finding_has_its_line(tmp_path: Path) -> None:
    """With its file, and the line where there is one; a file under change is left and said."""
    home = Home(tmp_path / "home")
    assert home.run("note", "add", "# One\n\n[x](no.md)\n", "--hint", "work", "--wait").code == 0
    root = home.root / "notebook"
    (root / "Too Odd.md").write_text("# Odd\n", "utf-8")
    (root / "empty.md").write_text("", "utf-8")
    with (root / "INDEX.md").open("a", encoding="utf-8") as index:
        index.write("- [Gone](gone.md)\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Mine")
    ran = home.run("note", "tidy")
    assert ran.code == 3
    lines = len((root / "INDEX.md").read_text("utf-8").splitlines())
    assert ran.out.splitlines() == [
        "work/one.md:3: the link to no.md leads nowhere: it is no one file",
        "Too Odd.md: not in INDEX.md",
        f"INDEX.md:{lines}: lists gone.md: there is no such file",
        "empty.md: empty",
        "Too Odd.md: `Too Odd` is not kebab-case, or is too long",
    ]
    with (root / "INDEX.md").open("a", encoding="utf-8") as index:
        index.write("mine\n")
    held = home.run("note", "tidy", "--apply")
    assert held.code == 0
    assert held.err == (
        "kb: INDEX.md is left as it is, for it has changes that are not committed\n"
    )
    assert held.out == "nothing that kb can put in order; `kb note tidy` lists what is left\n"
    git(root, "checkout", "-q", "INDEX.md")
    done = home.run("note", "tidy", "--apply")
    assert done.code == 0
    assert done.out.splitlines()[1:] == [
        "the entry of gone.md goes, there is no such file",
        "Too Odd.md is listed",
    ]
