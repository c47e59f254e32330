"""Subjects are found by searches, for as long as the settings let anyone learn them."""

from pathlib import Path
from typing import Any

import pytest
from commands import HASHING, KB, Ran, run, surroundings

CONFIG = "[kb.topic.skills]\nsubjects = 'skills'\n"


class Project:
    """A project whose skills are its subjects."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = surroundings(XDG_CONFIG_HOME=str(root / "x"), HOME=str(root / "user"))
        self.write("skills/tea.md", "# Tea\n\nHow to brew quince tea.")
        self.write("skills/deep/milk.md", "# Milk\n\nHow to warm quince milk.")
        self.write("skills/.secret.md", "# Secret\n\nThe quince secret.")
        self.write(".kb/config.toml", CONFIG)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def kb(self, *args: str) -> Ran:
        home = ("--home", str(self.root / ".kb"))
        return run([KB, *home, *HASHING, *args], cwd=self.root, env=self.env)

    def sync(self, *args: str) -> Any:
        ran = self.kb("sync-all", "--interval-min", "0", "--json", *args)
        assert ran.code == 0, ran
        return ran.json

    def learned(self) -> dict[str, str]:
        """By slug of what is found, the text that its `learn` call brings."""
        hits = self.kb("search", "quince", "--json").json["hits"]
        calls = [hit["learn"] for hit in hits]
        return {call["subject"]: self.kb("learn", *call.values()).out for call in calls}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_subject_is_found_with_the_call_that_loads_it(project: Project) -> None:
    """What is hidden is not taken in; a second sync finds nothing to do."""
    assert project.sync()["added"] == 2
    found = project.learned()
    assert set(found) == {"tea", "deep/milk"}
    assert found["tea"].startswith("# Tea\n\nHow to brew")
    assert "kb learn skills deep/milk" in project.kb("search", "quince").out
    assert project.kb("search", "secret", "--json", "--mode", "lexical").json["hits"] == []
    again = project.sync()
    assert (again["unchanged"], again["added"], again["removed"]) == (2, 0, 0)
    assert project.kb("check").code == 0


def test_disabled_is_out_at_once_and_gone_after_a_sync(project: Project) -> None:
    """Searches obey the settings before any sync does, and so does `kb similar`."""
    project.sync()
    project.write(".kb/config.toml", CONFIG + "disabled = ['tea']\n")
    assert set(project.learned()) == {"deep/milk"}
    milk = project.kb("search", "milk", "--json").json["hits"][0]["doc_id"]
    assert project.kb("similar", milk, "--json").json["hits"] == []
    assert project.sync()["removed"] == 1
    assert len(project.kb("ls", "--json").json["docs"]) == 1
    project.write(".kb/config.toml", CONFIG)
    back = project.sync()
    assert (back["resurrected"], set(project.learned())) == (1, {"tea", "deep/milk"})


def test_a_topic_that_is_not_indexed_or_taken_off(project: Project) -> None:
    """With `index = false`, or without its table, its docs go; its files stay."""
    project.sync()
    project.write(".kb/config.toml", CONFIG + "index = false\n")
    assert project.learned() == {}
    assert project.sync()["removed"] == 2
    assert project.kb("sources", "--json").json["sources"] == []
    project.write(".kb/config.toml", CONFIG)
    assert project.sync()["resurrected"] == 2
    project.write(".kb/config.toml", "")
    assert project.sync()["removed"] == 2
    assert (project.root / "skills/tea.md").exists()


def test_a_folder_that_is_gone_takes_no_doc_with_it(project: Project) -> None:
    """Its topic is held back, and says why; the docs stay findable."""
    project.sync()
    (project.root / "skills").rename(project.root / "elsewhere")
    ran = project.kb("sync-all", "--interval-min", "0", "--json")
    assert ran.code == 6
    assert "no folder" in ran.json["sources"][0]["reason"]
    assert len(project.kb("ls", "--json").json["docs"]) == 2


def test_a_renamed_subject_is_not_embedded_again(project: Project) -> None:
    """Its name is another, its text is not; two vectors are all there are."""
    project.sync()
    (project.root / "skills/tea.md").rename(project.root / "skills/brew.md")
    changed = project.sync()
    assert (changed["added"], changed["removed"]) == (1, 1)
    assert set(project.learned()) == {"brew", "deep/milk"}
    assert project.kb("stats", "--json").json["vectors"] == 2


def test_its_subjects_are_seen_as_the_topic_is(project: Project) -> None:
    """At every sync, and by the settings alone: `kb visibility` says where to say it."""

    def seen() -> set[str]:
        return {doc["visibility"] for doc in project.kb("ls", "--json").json["docs"]}

    project.sync()
    assert seen() == {"private"}
    public = ("--cfg", "kb.topic.skills.visibility=public")
    assert project.kb(*public, "sync-all", "--interval-min", "0").code == 0
    assert seen() == {"public"}
    ident = project.kb("ls", "--json").json["docs"][0]["doc_id"]
    refused = project.kb("visibility", ident, "private")
    assert (refused.code, "kb.topic.skills.visibility" in refused.err) == (2, True)
    project.sync()
    assert seen() == {"private"}
    assert project.kb("check").code == 0
