"""A repository as people have them: what git ignores stays out, whatever was taken before."""

import subprocess
from pathlib import Path

import pytest
from commands import Home


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Five files that a person wrote, and many that nobody did."""
    root = tmp_path / "project"
    for name, text in {
        "README.md": "# Project\n\nWhat it does.",
        "docs/guide.md": "# Guide\n\nHow it works.",
        "docs/.gitignore": "*.tmp.md\n!kept.tmp.md\n",
        "docs/draft.tmp.md": "# Draft",
        "docs/kept.tmp.md": "# Kept",
        "secret.txt": "The password is harbour.",
        "out/report.md": "# Report",
        "notes/private.md": "# Private",
        "package-lock.json": '{"name": "locked"}',
        ".gitignore": "secret.txt\nout/\n",
        **{f"node_modules/p{n}/README.md": f"# Package {n}" for n in range(20)},
        "venv/pyvenv.cfg": "home = /usr",
        "venv/lib/thing.md": "# Thing",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/exclude").write_text("notes/\n")
    return root


def _names(home: Home) -> set[str]:
    docs = home.run("ls", "--limit", "0", "--json").json["docs"]
    return {Path(doc["source"]).name for doc in docs}


WRITTEN = {"README.md", "guide.md", "kept.tmp.md"}


def test_what_git_ignores_stays_out_and_is_counted(repository: Path, tmp_path: Path) -> None:
    """So do installed packages and lock files; `--no-ignore` takes them."""
    home = Home(tmp_path / "home")
    report = home.run("add", "-r", repository, "--json").json
    assert _names(home) == WRITTEN
    reasons = {Path(row["source"]).name: row["reason"] for row in report["problems"]}
    assert reasons["secret.txt"].startswith("git ignores it")
    assert reasons["node_modules"].startswith("a folder of installed packages")
    assert reasons["package-lock.json"].startswith("a lock file")
    assert report["scanned"] == report["added"] + report["skipped"]
    home.run("add", "-r", repository, "--no-ignore")
    assert _names(home) > {*WRITTEN, "secret.txt", "report.md", "private.md", "package-lock.json"}


def test_a_folder_that_is_named_is_taken(repository: Path, tmp_path: Path) -> None:
    """Whatever the rules above it say; those above a folder that is not ignored count."""
    home = Home(tmp_path / "home")
    assert home.run("add", "-r", repository / "out").code == 0
    assert _names(home) == {"report.md"}
    other = Home(tmp_path / "other")
    (repository / "docs/secret.txt").write_text("x")
    assert other.run("add", "-r", repository / "docs").code == 0
    assert _names(other) == {"guide.md", "kept.tmp.md"}
    assert other.run("add", repository / "secret.txt").code == 0
    assert "secret.txt" in _names(other)


def test_docs_that_would_be_left_out_now_are_held_back(repository: Path, tmp_path: Path) -> None:
    """A person says whether they go; until then nothing is lost, and each sync says so."""
    home = Home(tmp_path / "home")
    git = repository / ".git"
    git.rename(tmp_path / "git")
    assert home.run("add", "-r", repository, "--ext", "md,txt").code == 0
    before = _names(home)
    assert before > {"secret.txt", "report.md"}
    (tmp_path / "git").rename(git)
    ran = home.run("sync-all", "--interval-min", "0")
    assert ran.code == 6
    assert "--no-ignore" in ran.out + ran.err
    assert _names(home) == before
    assert home.run("sync-all", "--interval-min", "0", "--accept-deletions").code == 0
    assert _names(home) == WRITTEN
    assert home.run("sync-all", "--interval-min", "0").code == 0


def test_what_was_taken_on_purpose_stays(repository: Path, tmp_path: Path) -> None:
    """A folder that was added with `--no-ignore` keeps that."""
    home = Home(tmp_path / "home")
    home.run("add", "-r", repository, "--no-ignore")
    before = _names(home)
    (repository / "out/more.md").write_text("# More")
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert _names(home) == {*before, "more.md"}
