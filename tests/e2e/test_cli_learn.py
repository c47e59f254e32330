"""`kb learn` and `kb prompt` in a project of their own."""

import os
from pathlib import Path

import pytest
from commands import KB, Ran, run, surroundings

CONFIG = """\
[kb.topic.project]
title = "How we work"
introduction = "conventions"
subjects = ".kb/kb/project"

[kb.topic.skills]
subjects = ".kb/kb/skills"
"""
FILES = {
    ".kb/config.toml": CONFIG,
    ".kb/config.d/kb/maintainers.toml": '[kb.topic.project]\nlearned = ["maintainers/*"]\n',
    ".kb/kb/project/maintainers/jean.md": "# Jean\n",
    ".kb/kb/project/maintainers/ryan.md": "# Ryan",
    ".kb/kb/project/code-quality.md": "# Quality\n",
    ".kb/kb/skills/ast-grep.md": "# ast-grep\n",
    ".kb/kb/skills/ast-grep/.rules.md": "# Rules\n",
    ".kb/kb/skills/logo.png": "\0\0",
}


class Project:
    """A folder with a `.kb` in it, in which commands are run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            self.write(name, text)
        self.env = surroundings(XDG_CONFIG_HOME=str(root / "xdg"), HOME=str(root / "user"))

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def kb(self, *args: str, **env: str) -> Ran:
        return run([KB, *args], cwd=self.root, env={**self.env, **env})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_learn_lists_topics_subjects_and_texts(project: Project) -> None:
    """Step by step, as a person or an agent goes; nothing is made on the way."""
    topics = project.kb("learn")
    assert (topics.code, topics.err) == (0, "")
    assert topics.out == "- project (**How we work**): conventions\n- skills\n"
    listed = project.kb("learn", "how we WORK")
    assert "## Available subjects:\n\n- code-quality\n- maintainers/jean\n" in listed.out
    assert project.kb("learn", "project", "maintainers/ryan").out == "# Ryan\n"
    assert project.kb("learn", "skills", "ast-grep/rules").out == "# Rules\n"
    several = project.kb("learn", "project", "maintainers/*", "code-quality")
    assert several.out.count("</subject>\n") == 3
    assert not (project.root / ".kb/store").exists()


def test_learn_says_by_its_code_how_it_went(project: Project) -> None:
    """4 where nothing is meant, 3 where what was named cannot be given, 0 where a glob skips it."""
    unknown = project.kb("learn", "nope")
    assert (unknown.code, unknown.out) == (4, "")
    assert "project (How we work), skills" in unknown.err
    nothing = project.kb("learn", "skills", "nope/*")
    assert (nothing.code, nothing.out) == (4, "")
    assert "'nope/*'" in nothing.err
    binary = project.kb("learn", "skills", "logo")
    assert (binary.code, binary.out) == (3, "")
    assert "kb: logo: skipped, because it is binary" in binary.err
    swept = project.kb("learn", "skills", "*")
    assert (swept.code, swept.out) == (0, '<subject "ast-grep">\n# ast-grep\n</subject>\n')
    assert "kb: logo: skipped" in swept.err


def test_learn_is_bounded(project: Project) -> None:
    """About so many tokens, and what was cut is on standard error."""
    cut = project.kb("learn", "project", "code-quality", "--max-tokens", "1")
    assert (cut.code, cut.out) == (0, "# Qu\n")
    assert "cut to 4 of 10 characters" in cut.err


def test_learn_and_prompt_as_json(project: Project) -> None:
    """One document each."""
    rows = project.kb("learn", "--json").json["topics"]
    assert [(row["id"], row["available"], row["learned"]) for row in rows] == [
        ("project", 3, 0),
        ("skills", 2, 0),
    ]
    one = project.kb("learn", "skills", "ast-grep", "--json").json
    assert (one["topic"], one["subjects"], one["text"]) == ("skills", ["ast-grep"], "# ast-grep\n")
    assert project.kb("prompt", "--json").json["text"] == project.kb("prompt").out


def test_prompt_is_the_same_bytes_by_every_road(project: Project) -> None:
    """A flag, an assignment, a file on the load path, the environment: one and the same section."""
    assert project.kb("trust", ".").code == 0
    ways = (
        project.kb("prompt", "-k", "project/maintainers/*"),
        project.kb("--cfg", "kb.topic.project.learned+=maintainers/*", "prompt"),
        project.kb("--cfg", "kb/maintainers", "prompt"),
        project.kb("prompt", KB_CFG="kb/maintainers"),
        project.kb("prompt", "--knowledge", "project/maintainers/*", PYTHONHASHSEED="7"),
    )
    assert {(ran.code, ran.err) for ran in ways} == {(0, "")}
    assert len({ran.out for ran in ways}) == 1
    text = ways[0].out
    assert text.startswith("<knowledge>\n")
    assert '<topic "How we work">\n<subject "maintainers/jean">\n# Jean\n</subject>\n' in text
    assert text.endswith("</knowledge>\n")


def test_prompt_is_empty_where_there_is_nothing(project: Project) -> None:
    """No topics, or none with anything to tell; a person is told so beside it."""
    nothing = "kb: no topic has a subject to tell of; kb learn lists the topics\n"
    no_topics = "kb: no topics are set up; a table [kb.topic.ID] in the settings makes one\n"
    for off, said in (
        ("kb.topic.project.enable=false", no_topics),
        ('kb.topic.project.disabled=["**"]', nothing),
    ):
        ran = project.kb("--cfg", "kb.topic.skills.enable=false", "--cfg", off, "prompt")
        assert (ran.code, ran.out, ran.err) == (0, "", said)
    project.write(".kb/config.toml", "")
    ran = project.kb("prompt")
    assert (ran.code, ran.out, ran.err) == (0, "", no_topics)
    listed = project.kb("learn")
    assert (listed.code, listed.out) == (0, "")
    assert "no topics are set up" in listed.err


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("nope/*", "there are: project (How we work), skills"),
        ("project", "is not of the form TOPIC/GLOB"),
    ],
)
def test_a_wish_that_is_none_is_a_usage_error(project: Project, wish: str, said: str) -> None:
    """Exit code 2, with the topics that there are or the form."""
    ran = project.kb("prompt", "-k", wish)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_layers_of_topics(project: Project) -> None:
    """The user's settings, kb.toml, config.toml, KB_CFG, --cfg: later ones win, key by key."""
    project.write("xdg/kb/config.toml", '[kb.topic.skills]\ntitle = "one"\nintroduction = "user"\n')
    project.write(".kb/kb.toml", '[kb.topic.skills]\ntitle = "two"\nsubjects = "none"\n')
    assert "- skills (**two**): user\n- project" in project.kb("learn").out
    project.write(".kb/config.toml", CONFIG + 'title = "three"\n')
    assert "- skills (**three**): user\n" in project.kb("learn").out
    env = {"KB_CFG": "kb.topic.skills.title=four"}
    assert "- skills (**four**): user\n" in project.kb("learn", **env).out
    last = project.kb("--cfg", "kb.topic.skills.title=five", "learn", **env)
    assert "- skills (**five**): user\n" in last.out
    project.write("xdg/kb/config.d/mine.toml", '[kb.topic.skills]\ntitle = "six"\n')
    assert "- skills (**six**)" in project.kb("--cfg", "mine", "learn").out


def test_settings_that_are_wrong_are_named(project: Project) -> None:
    """Exit code 2 with file, line and key; a missing folder keeps no other command from work."""
    project.write(".kb/config.toml", CONFIG.replace("kb/skills", "kb/gone"))
    for args in (("learn",), ("prompt",), ("learn", "project")):
        ran = project.kb(*args)
        assert (ran.code, ran.out) == (2, "")
        assert ".kb/config.toml:7: kb.topic.skills.subjects: there is no folder" in ran.err
    assert project.kb("ls").code == 0
    project.write(".kb/config.toml", CONFIG + "tittle = 1\n")
    wrong = project.kb("ls")
    assert wrong.code == 2
    assert ".kb/config.toml:8: unknown setting kb.topic.skills.tittle" in wrong.err


def test_hostile_subjects(project: Project) -> None:
    """A FIFO, a link out and a name with an escape in it: said, not opened, not printed."""
    folder = project.root / ".kb/kb/skills"
    os.mkfifo(folder / "pipe.md")
    (folder / "out.md").symlink_to(project.root / ".kb/config.toml")
    (folder / "esc\x1b[2J.md").write_text("x")
    listed = project.kb("learn", "skills")
    assert listed.code == 0
    assert "\x1b" not in listed.out + listed.err
    assert "- out\n" not in listed.out
    for name, said in (("pipe", "not a regular file"), ("out", "leads out of")):
        ran = project.kb("learn", "skills", name)
        assert (ran.code, ran.out) == (3, "")
        assert said in ran.err
