"""The notebook of a project: below its `.kb`, and pushed only where its user agreed."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from crash_rig import Rig
from git_host import bare, tip
from kb_cli.main import kb
from notebooks import git, needs_git


@pytest.fixture
def project(tmp_path: Path) -> Rig:
    """A project whose home this user's kb has made, with one doc."""
    rig = Rig(tmp_path, cfg=("embed.kind=hashing",))
    rig.home = tmp_path / "project/.kb"
    rig.home.parent.mkdir()
    (rig.sources / "doc.md").write_text("# Doc\n\nA quince.\n", "utf-8")
    assert rig.call("add", rig.sources / "doc.md").code == 0
    return rig


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A notebook of the person's, with a note that no project may see."""
    other = Rig(tmp_path / "person", cfg=("embed.kind=hashing",))
    assert other.call("note", "add", "--wait", "# Secret\n\nThe harbour key.\n").code == 0
    return other.home / "notebook"


def said(project: Rig, text: str) -> None:
    """Settings that come with the project, and that its user has accepted."""
    (project.home / "kb.toml").write_text(text, "utf-8")
    trusted = CliRunner(env=project.env()).invoke(
        kb, ["trust", str(project.home.parent), "--yes"], obj={}
    )
    assert trusted.exit_code == 0


def stamps(folder: Path) -> dict[Path, int]:
    """When each file below was changed."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("path", ["{outside}", "~/person/home/notebook", "../../x", "a/../../x"])
def test_a_path_that_leads_out_is_refused(project: Rig, outside: Path, path: str) -> None:
    """Also where the user has accepted all that the project says; the line is named."""
    said(project, f'[notebook]\npath = "{path.format(outside=outside)}"\n')
    for command in (("search", "harbour"), ("note", "log"), ("note", "add", "x")):
        refused = project.call(*command)
        assert refused.code == 2
        assert "kb.toml:2: notebook.path: of a project it lies below its .kb" in refused.err


def test_a_path_that_nobody_accepted_does_not_count(project: Rig, outside: Path) -> None:
    """Only a warning says that it is there."""
    (project.home / "kb.toml").write_text(f'[notebook]\npath = "{outside}"\n', "utf-8")
    found = project.call("note", "add", "--wait", "# Mine\n")
    assert found.code == 0
    assert "notebook.path comes with the project" in found.err
    assert (project.home / "notebook/.git").is_dir()


def test_a_link_in_its_place_is_refused(project: Rig, outside: Path) -> None:
    """As any link of a home's that leads out."""
    (project.home / "notebook").symlink_to(outside)
    refused = project.call("note", "log")
    assert (refused.code, "leads out of the project" in refused.err) == (6, True)


def test_a_link_that_leads_out_is_refused(project: Rig, outside: Path) -> None:
    """Nothing is read or written there, and all but notes goes on."""
    said(project, '[notebook]\npath = "inner/notebook"\n')
    (project.home / "inner").symlink_to(outside.parent)
    before = stamps(outside)
    for command in (("log",), ("get", "inbox/secret.md"), ("tidy",), ("push",), ("undo", "j1")):
        refused = project.call("note", *command)
        assert refused.code == 1
        assert "leads out of the project" in refused.err
    assert project.call("sync-all", "--interval-min", 0).code == 0
    assert project.call("add", "-r", project.sources).code == 0
    hits = project.call("search", "harbour", "--json").json["hits"]
    assert {Path(hit["source"]).name for hit in hits} == {"doc.md"}
    waits = project.call("note", "add", "--wait", "# Mine\n")
    assert "leads out of the project" in waits.err + waits.out
    assert "leads out of the project" in project.call("doctor").out
    assert stamps(outside) == before


def test_a_path_of_the_users_own_may_lie_anywhere(project: Rig, tmp_path: Path) -> None:
    """Whoever works in a project may keep its notes where they like."""
    mine = tmp_path / "my notes"
    placed = project.call("note", "add", "--wait", "# Mine\n", cfg=(f"notebook.path={mine}",))
    assert placed.code == 0
    assert (mine / ".git").is_dir()


def test_the_host_of_the_token_is_the_users_to_name(project: Rig) -> None:
    """A project never says it, accepted or not."""
    said(project, '[notebook]\ntoken_host = "evil.example"\n')
    told = project.call("note", "log")
    assert "notebook.token_host is for your own settings alone" in told.err


@needs_git
def test_the_first_push_of_a_project_asks(project: Rig, tmp_path: Path) -> None:
    """Its remote may have come with it; one that was agreed to is not asked about again."""
    assert project.call("note", "add", "--wait", "# Mine\n").code == 0
    book, remote = project.home / "notebook", bare(tmp_path)
    git(book, "remote", "add", "origin", str(remote))
    held = project.call("note", "push")
    assert held.code == 6
    assert f"{remote} may have come with the project" in held.err
    assert not os.listdir(remote / "refs/heads")
    assert project.call("note", "push", "--yes").code == 0
    assert tip(remote) == tip(book)
    assert project.call("note", "add", "--wait", "# More\n").code == 0
    assert project.call("note", "push").code == 0
    assert tip(remote) == tip(book)
    git(book, "remote", "set-url", "origin", f"{tmp_path}/other.git")
    assert project.call("note", "push").code == 6
