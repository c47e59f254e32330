"""The notebook as a git repository: how it begins, and how it lives beside a person's own git."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from notebooks import NOW_MS, WAIT_S, NoteHome, commit_file, git, needs_git

from kb.errors import NotebookUnfit, StoreBusy
from kb.knowledge.notebook.opening import at_work
from kb.knowledge.notebook.repository import Draft, Repository


@pytest.fixture
def home(tmp_path: Path) -> Iterator[NoteHome]:
    home = NoteHome(tmp_path)
    yield home
    home.close()


def everything(root: Path) -> dict[str, bytes]:
    """Every file below, git's own included, but for the folder that is ours."""
    found = (path for path in root.rglob("*") if path.is_file())
    inside = {path.relative_to(root).as_posix(): path.read_bytes() for path in found}
    return {name: data for name, data in inside.items() if not name.startswith(".git/kb/")}


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_that_is_absent_or_empty(home: NoteHome, is_there: bool) -> None:
    """It becomes a repository with a list and an ignore rule, in one commit."""
    if is_there:
        home.root.mkdir()
    home.open()
    assert home.subjects() == ["Set up the notebook"]
    assert home.committed() == home.seen()
    assert home.seen()[".gitignore"] == b"/.kb/\n"
    before = everything(home.root)
    home.open()
    assert everything(home.root) == before


def test_a_folder_with_files_and_no_repository(home: NoteHome) -> None:
    """It is refused, and nothing in it changes."""
    home.root.mkdir()
    (home.root / "mine.txt").write_text("mine", "utf-8")
    with pytest.raises(NotebookUnfit, match="neither empty nor a git repository"):
        home.open()
    assert everything(home.root) == {"mine.txt": b"mine"}
    failed = home.place("A note.\n")
    assert (failed.status, failed.attempts) == ("queued", 1)
    assert "neither empty" in (failed.reason or "")


def test_a_file_in_its_place(home: NoteHome) -> None:
    """It is refused."""
    home.root.write_text("x", "utf-8")
    with pytest.raises(NotebookUnfit, match="not a folder"):
        home.open()


def test_a_start_that_was_cut_short(home: NoteHome) -> None:
    """What a killed first start has left is no content of anybody's."""
    (home.root / ".git.kb-new/objects").mkdir(parents=True)
    home.open()
    assert home.subjects() == ["Set up the notebook"]


@needs_git
def test_a_repository_that_is_there(home: NoteHome) -> None:
    """It gets what it lacks in one commit; its own content stays as it was."""
    home.root.mkdir()
    git(home.root, "init", "-q", "-b", "trunk")
    commit_file(home.root, "My Notes/Odd name (1).md", "odd\n")
    commit_file(home.root, ".gitignore", "*.tmp")
    (home.root / "loose.txt").write_text("loose", "utf-8")
    home.open()
    assert home.subjects()[-1] == "Set up the notebook"
    assert len(home.subjects()) == 3
    assert home.seen()[".gitignore"] == b"*.tmp\n/.kb/\n"
    assert home.seen()["My Notes/Odd name (1).md"] == b"odd\n"
    assert git(home.root, "status", "--porcelain") == "?? loose.txt\n"
    assert git(home.root, "symbolic-ref", "HEAD") == "refs/heads/trunk\n"


@needs_git
def test_a_repository_without_a_commit(home: NoteHome) -> None:
    """The first commit is ours, on the branch that is to be; a list begun by hand is the list."""
    home.root.mkdir()
    git(home.root, "init", "-q", "-b", "mine")
    (home.root / "INDEX.md").write_text("# Mine\n", "utf-8")
    home.open()
    assert home.committed()["INDEX.md"] == b"# Mine\n"
    assert git(home.root, "status", "--porcelain") == ""
    assert git(home.root, "log", "--format=%an <%ae>") == "kb <kb@localhost>\n"


@needs_git
def test_commits_are_by_whom_the_repository_names(home: NoteHome) -> None:
    """Its own settings say who; those of the machine do not matter."""
    home.open()
    git(home.root, "config", "user.name", "Nota")
    git(home.root, "config", "user.email", "nota@example.org")
    home.place("A note.\n")
    assert git(home.root, "log", "-1", "--format=%an <%ae>|%cn") == "Nota <nota@example.org>|Nota\n"


UNFIT = {
    "bare": (("init", "-q", "--bare", "."), "bare"),
    "told to be bare": (("config", "core.bare", "true"), "bare"),
    "elsewhere": (("config", "core.worktree", "/nowhere"), "core.worktree"),
    "detached": (("checkout", "-q", "--detach"), "detached"),
}


@needs_git
@pytest.mark.parametrize("name", UNFIT)
def test_a_repository_that_will_not_do(home: NoteHome, name: str) -> None:
    """Bare, with its files elsewhere, or on no branch: refused in words, and untouched."""
    arguments, words = UNFIT[name]
    if name == "bare":
        home.root.mkdir()
    else:
        home.open()
    git(home.root, *arguments)
    before = everything(home.root)
    with pytest.raises(NotebookUnfit, match=words):
        home.open()
    assert everything(home.root) == before


@pytest.mark.parametrize("as_link", [False, True])
def test_a_git_folder_that_leads_elsewhere(home: NoteHome, tmp_path: Path, as_link: bool) -> None:
    """Neither a link nor a file that names another folder is followed."""
    home.open()
    (home.root / ".git").rename(tmp_path / "elsewhere")
    if as_link:
        (home.root / ".git").symlink_to(tmp_path / "elsewhere")
    else:
        (home.root / ".git").write_text(f"gitdir: {tmp_path}/elsewhere\n", "utf-8")
    with pytest.raises(NotebookUnfit, match="not a folder of its own"):
        home.open()


@needs_git
def test_a_merge_under_way(home: NoteHome) -> None:
    """The branch is left alone until the merge has ended, and the note waits."""
    home.open()
    (home.root / ".git/MERGE_HEAD").write_text("0" * 40, "ascii")
    waits = home.place("A note.\n")
    assert waits.status == "queued"
    assert "merge" in (waits.reason or "")
    (home.root / ".git/MERGE_HEAD").unlink()
    home.home.clock.advance(3_000)
    home.organizer.work(home.claims())
    assert home.report(waits.job_id).status == "done"


@pytest.mark.parametrize("name", ["index", "HEAD", "refs/heads/main"])
def test_a_lock_of_another_git(home: NoteHome, name: str) -> None:
    """It is waited for, a while; then the note goes back, and the lock and the branch stay."""
    home.open()
    lock = home.root / f".git/{name}.lock"
    lock.write_bytes(b"")
    before = everything(home.root)
    waits = home.place("A note.\n")
    assert waits.status == "queued"
    assert lock.name in (waits.reason or "")
    kept = {name: data for name, data in everything(home.root).items() if "objects" not in name}
    assert kept == {name: data for name, data in before.items() if "objects" not in name}
    lock.unlink()
    home.home.clock.advance(3_000)
    home.organizer.work(home.claims())
    assert home.report(waits.job_id).status == "done"


def test_a_lock_that_we_left(home: NoteHome) -> None:
    """A lock of ours, known by its inode, does not outlive us for long."""
    home.open()
    for name, own in (("index", "index"), ("refs/heads/main", "refs%2Fheads%2Fmain")):
        (home.root / ".git/kb" / own).write_bytes(b"")
        os.link(home.root / ".git/kb" / own, home.root / f".git/{name}.lock")
    assert home.place("A note.\n").status == "done"


def test_one_of_us_at_a_time(home: NoteHome) -> None:
    """A second one waits, and says so when that takes too long."""
    with at_work(home.root, NOW_MS, WAIT_S), pytest.raises(StoreBusy):
        home.open()


@needs_git
def test_a_commit_from_outside_meanwhile(home: NoteHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is seen when the branch is to be moved; ours is made again on top of it."""
    home.open()
    calls: list[str] = []
    publish = Repository.publish

    def overtaken(self: Repository, draft: Draft, wait_s: float) -> list[str] | None:
        if not calls:
            commit_file(home.root, "theirs.md", "theirs\n")
        calls.append("")
        return publish(self, draft, wait_s)

    monkeypatch.setattr(Repository, "publish", overtaken)
    done = home.place("# Ours\n", "work")
    assert len(calls) == 2
    subjects = home.subjects()[1:]
    assert subjects == ["Write theirs.md", f"store({done.job_id}): work/ours.md"]
    assert git(home.root, "status", "--porcelain") == ""
    assert git(home.root, "fsck", "--strict", "--no-dangling") == ""


@needs_git
def test_edits_that_are_not_committed_stay(home: NoteHome) -> None:
    """Edits in the work tree, staged and not, are there afterwards as before."""
    home.place("# One\n", "work")
    commit_file(home.root, "theirs.md", "one\n")
    (home.root / "theirs.md").write_text("two\n", "utf-8")
    (home.root / "staged.md").write_text("staged\n", "utf-8")
    git(home.root, "add", "staged.md")
    git(home.root, "rm", "-q", "--cached", "work/one.md")
    before = git(home.root, "status", "--porcelain", "-uall")
    assert home.place("# Two\n", "work").reason is None
    assert git(home.root, "status", "--porcelain", "-uall") == before
    assert git(home.root, "show", ":staged.md") == "staged\n"


@needs_git
def test_a_list_that_is_being_edited(home: NoteHome) -> None:
    """The commit has the new entry; the person's copy is left as it is, and that is said."""
    home.open()
    mine = "# Index\n\nMy words, not committed.\n"
    (home.root / "INDEX.md").write_text(mine, "utf-8")
    done = home.place("# One\n", "work")
    assert (done.status, done.path) == ("done", "work/one.md")
    assert "INDEX.md" in (done.reason or "")
    assert (home.root / "INDEX.md").read_text("utf-8") == mine
    assert home.listed() == ["work/one.md"]
    assert (home.root / "work/one.md").exists()


@needs_git
def test_a_name_that_is_taken(home: NoteHome, tmp_path: Path) -> None:
    """By a note, by a loose file, by another case, or by a link: the note gets another name."""
    home.place("# One\n", "work")
    commit_file(home.root, "work/TWO.md", "two\n")
    (home.root / "work/three.md").write_text("loose\n", "utf-8")
    (home.root / "work/four.md").symlink_to(tmp_path / "outside.md")
    for title in ("One", "Two", "Three", "Four"):
        assert home.place(f"# {title}\n\nNew.\n", "work").path == f"work/{title.lower()}-2.md"
    assert (home.root / "work/three.md").read_text("utf-8") == "loose\n"
    assert not (tmp_path / "outside.md").exists()


@needs_git
@pytest.mark.parametrize("how", ["link", "committed link", "file", "submodule", "other case"])
def test_a_folder_that_is_none(home: NoteHome, tmp_path: Path, how: str) -> None:
    """Nothing is written through a link, into a submodule, or beside a folder of another case."""
    home.open()
    outside = tmp_path / "outside"
    outside.mkdir()
    match how:
        case "link" | "committed link":
            (home.root / "work").symlink_to(outside)
            if how == "committed link":
                git(home.root, "add", "work")
                git(home.root, "commit", "-q", "-m", "A link")
        case "file":
            commit_file(home.root, "work", "no folder\n")
        case "submodule":
            git(outside, "init", "-q")
            commit_file(outside, "x.md", "x\n")
            allowed = ("-c", "protocol.file.allow=always")
            git(home.root, *allowed, "submodule", "--quiet", "add", str(outside), "work")
            git(home.root, "commit", "-q", "-m", "A submodule")
        case _:
            commit_file(home.root, "Work/x.md", "x\n")
    held = everything(outside)
    done = home.place("# One\n", "work")
    assert (done.status, done.path) == ("done", "work-notes/one.md")
    assert everything(outside) == held
    assert git(home.root, "fsck", "--strict", "--no-dangling") == ""


@needs_git
def test_odd_names_are_carried_along(home: NoteHome) -> None:
    """Bytes that are no UTF-8, spaces and quotes, deep folders: the tree keeps them."""
    home.open()
    odd = home.root / os.fsdecode(b"a/b/c/d/\xff '\"\n.md")
    odd.parent.mkdir(parents=True)
    odd.write_text("odd\n", "utf-8")
    git(home.root, "add", "-A")
    git(home.root, "commit", "-q", "-m", "Odd")
    home.place("# One\n", "a/b")
    assert git(home.root, "status", "--porcelain") == ""
    assert odd.read_text("utf-8") == "odd\n"
    assert "a/b/one.md" in home.committed()


@needs_git
def test_packed_refs_and_objects(home: NoteHome) -> None:
    """A repository that git has packed goes on."""
    home.place("# One\n", "work")
    git(home.root, "gc", "-q")
    git(home.root, "pack-refs", "--all")
    assert home.place("# Two\n", "work").status == "done"
    assert len(home.subjects()) == 3
    assert git(home.root, "status", "--porcelain") == ""


@needs_git
def test_a_hook_is_never_run(home: NoteHome, tmp_path: Path) -> None:
    """What a repository would have run at a commit or a checkout is not."""
    home.open()
    hooks = home.root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "commit-msg", "post-commit", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", "utf-8")
        (hooks / name).chmod(0o755)
    git(home.root, "config", "filter.x.clean", f"touch {tmp_path}/ran")
    (home.root / ".gitattributes").write_text("* filter=x\n", "utf-8")
    assert home.place("# One\n", "work").status == "done"
    assert not (tmp_path / "ran").exists()


@needs_git
def test_a_damaged_repository_is_said_to_be_one(home: NoteHome) -> None:
    """A missing object is no crash, and the note waits."""
    home.open()
    for found in sorted((home.root / ".git/objects").glob("??/*")):
        found.unlink()
    waits = home.place("# One\n")
    assert waits.status == "queued"
    assert "damaged" in (waits.reason or "")


@needs_git
def test_an_index_that_is_split(home: NoteHome) -> None:
    """A form of git's index that we would damage is refused before anything moves."""
    home.open()
    commit_file(home.root, "a.md", "a\n")
    git(home.root, "update-index", "--split-index")
    before = git(home.root, "rev-parse", "HEAD")
    waits = home.place("# One\n")
    assert "split or sparse" in (waits.reason or "")
    assert git(home.root, "rev-parse", "HEAD") == before
