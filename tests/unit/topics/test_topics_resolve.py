"""Settings become topics: folders are found, and one that is not there is named."""

from pathlib import Path

import pytest

from kb.errors import ConfigError
from kb.home import app
from kb.knowledge.topics import Topic
from kb.model.config import Settings, load
from kb.model.doc import OPERATOR, Scope


def topics_of(home: Path, said: Settings, scope: Scope = OPERATOR) -> tuple[Topic, ...]:
    return app.topics_of(home, said, scope)


def settings(folder: Path, text: str) -> Settings:
    file = folder / "config.toml"
    file.write_text(text)
    return load([file], env={})


def test_paths_start_from_the_project_or_the_home(tmp_path: Path) -> None:
    """From the folder around `.kb`, and in a home of another name from the home itself."""
    said = settings(tmp_path, "[kb.topic.t]\nsubjects = 'notes'\n")
    for home, folder in ((tmp_path / ".kb", tmp_path / "notes"), (tmp_path, tmp_path / "notes")):
        folder.mkdir(parents=True, exist_ok=True)
        assert [topic.folder for topic in topics_of(home, said)] == [folder]


def test_paths_may_be_absolute_or_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path from the root stands for itself, `~` for the user's folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for said in (str(tmp_path / "notes"), "~/notes"):
        (tmp_path / "notes").mkdir(exist_ok=True)
        found = topics_of(tmp_path / "else", settings(tmp_path, f'kb.topic.t.subjects = "{said}"'))
        assert found[0].folder == tmp_path / "notes"


def test_every_key_is_handed_on(tmp_path: Path) -> None:
    """Title and introduction on one line."""
    said = settings(
        tmp_path,
        '[kb.topic.t]\ntitle = \'A\\n B\'\nintroduction = """one\ntwo"""\ndescription = \'d\'\n'
        "subjects = '.'\nlearned = ['l']\ndisabled = ['x']\nindex = false\n",
    )
    (topic,) = topics_of(tmp_path, said)
    assert (topic.id, topic.introduction, topic.description) == ("t", "one two", "d")
    assert (topic.learned, topic.disabled, topic.index) == (("l",), ("x",), False)
    assert topic.name == "A\\n B"


def test_a_topic_that_is_off_is_not_there(tmp_path: Path) -> None:
    """Its folder is not looked for."""
    said = settings(tmp_path, "[kb.topic.t]\nenable = false\nsubjects = 'none'\n")
    assert topics_of(tmp_path, said) == ()


@pytest.mark.parametrize(
    ("subjects", "said"),
    [
        ("none", "there is no folder"),
        ("config.toml", "there is no folder"),
        ("~no-such-user-here/x", "names no user's folder"),
    ],
)
def test_a_folder_that_is_not_there_is_named_with_its_line(
    tmp_path: Path, subjects: str, said: str
) -> None:
    """File, line, key and path."""
    text = f"[kb.topic.t]\ntitle = 'T'\nsubjects = '{subjects}'\n"
    with pytest.raises(ConfigError) as raised:
        topics_of(tmp_path, settings(tmp_path, text))
    message = str(raised.value)
    assert message.startswith(f"{tmp_path}/config.toml:3: kb.topic.t.subjects: ")
    assert said in message
    assert raised.value.exit_code == 2


def test_a_topic_is_seen_as_a_doc_is(tmp_path: Path) -> None:
    """Private unless said, and then the home's own user's; shared with every named user."""
    kinds = ("", "visibility = 'private'", "visibility = 'shared'", "visibility = 'public'")
    text = "".join(f"[kb.topic.t{n}]\nsubjects = '.'\n{kind}\n" for n, kind in enumerate(kinds))
    said = settings(tmp_path, text)
    seen = {
        scope: [topic.id for topic in topics_of(tmp_path, said, scope)]
        for scope in (OPERATOR, Scope(user="local"), Scope(user="eve"), Scope(user=None))
    }
    assert list(seen.values()) == [["t0", "t1", "t2", "t3"]] * 2 + [["t2", "t3"], ["t3"]]


def test_what_is_hidden_and_broken_keeps_nobody_from_the_rest(tmp_path: Path) -> None:
    """A private topic whose folder is gone is the operator's trouble, and nobody else hears."""
    text = "[kb.topic.a]\nsubjects = 'none'\n[kb.topic.b]\nsubjects = '.'\nvisibility = 'public'\n"
    said = settings(tmp_path, text)
    assert [topic.id for topic in topics_of(tmp_path, said, Scope(user="eve"))] == ["b"]
    with pytest.raises(ConfigError):
        topics_of(tmp_path, said)
