"""The tool `learn`: when it is there, what it says of itself, and what it answers."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tools_home import NOBODY, OPERATOR, ToolsHome

from kb.errors import ConfigError
from kb.home.spaces.spaces import Spaces
from kb.knowledge.topics import Topic
from kb.model.doc import Scope, audience_of
from kb.operations.table import LEARN, call, tools_of

SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {"type": "string"},
        "subjects": {"type": ["string", "array", "null"], "items": {"type": "string"}},
    },
    "required": ["topic"],
    "additionalProperties": False,
}


def topic(folder: Path, files: dict[str, str], **said: Any) -> Topic:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return Topic(id=folder.name, folder=folder, **{"visibility": "public", **said})


def reads(scope: Scope, topic: Topic) -> bool:
    return scope.reads(audience_of(topic.visibility, "local"))


def kit(home: ToolsHome, *topics: Topic) -> Spaces:
    return home.kit.with_topics(lambda scope: tuple(t for t in topics if reads(scope, t)))


def ask(kit: Spaces, scope: Scope = NOBODY, /, **arguments: object) -> Any:
    return msgspec.json.decode(call("learn", arguments, kit, scope))


def test_it_is_listed_where_there_is_something_to_learn(home: ToolsHome, tmp_path: Path) -> None:
    """Not without topics, nor where all of them are learned or disabled."""
    known = topic(tmp_path / "known", {"a.md": "a"}, learned=("**",))
    off = topic(tmp_path / "off", {"a.md": "a"}, disabled=("a",))
    hidden = topic(tmp_path / "hidden", {".a.md": "a"})
    others = tools_of(home.kit, NOBODY)
    assert LEARN.name not in {tool.name for tool in others}
    assert tools_of(kit(home, known, off), NOBODY) == others
    assert tools_of(kit(home, known, hidden), NOBODY)[:-1] == others
    assert tools_of(kit(home, known, hidden), NOBODY)[-1].name == LEARN.name


def test_its_description_names_the_topics(home: ToolsHome, tmp_path: Path) -> None:
    """Ids and titles of those that can be learned, and no others."""
    topics = (
        topic(tmp_path / "skills", {"a.md": "a"}, title="Learnable Assistant Skills"),
        topic(tmp_path / "known", {"a.md": "a"}, learned=("**",)),
        topic(tmp_path / "plain", {"a.md": "a"}),
    )
    said = tools_of(kit(home, *topics), NOBODY)[-1].description
    assert "Topics: skills (Learnable Assistant Skills), plain." in said


def test_its_schema_is_the_same_bytes_under_any_settings(home: ToolsHome, tmp_path: Path) -> None:
    """Its shape is the agreed one, and agrees with what decodes the arguments."""
    one = tools_of(kit(home, topic(tmp_path / "one", {"a.md": "a"}, title="One")), NOBODY)[-1]
    two = tools_of(kit(home, topic(tmp_path / "two", {"b.md": "b"})), NOBODY)[-1]
    assert one.description != two.description
    assert one.input_schema == two.input_schema == LEARN.input_schema
    schema = msgspec.json.decode(one.input_schema)
    for field in schema["properties"].values():
        assert field.pop("description")
    assert schema == SCHEMA
    assert set(schema["properties"]) == set(LEARN.input.__struct_fields__)


def test_it_lists_and_reads(home: ToolsHome, tmp_path: Path) -> None:
    """Without subjects the list, with one its text, with several all of them in tags."""
    one = kit(home, topic(tmp_path / "one", {"a.md": "A", "b.md": "B"}, title="The One"))
    assert ask(one, topic="one")["subjects"] == ["a", "b"]
    assert ask(one, topic="the one", subjects=None) == ask(one, topic="one", subjects=[])
    assert ask(one, topic="one", subjects="a")["text"] == "A"
    assert ask(one, topic="one", subjects=["a"]) == ask(one, topic="one", subjects="a")
    assert ask(one, topic="one", subjects=["a", "b"])["subjects"] == ["a", "b"]
    assert ask(one, topic="one", subjects="**")["text"].count("<subject ") == 2


def test_its_answer_is_bounded(home: ToolsHome, tmp_path: Path) -> None:
    """8,000 tokens of four bytes; what was cut is said."""
    one = kit(home, topic(tmp_path / "one", {"a.md": "x" * 50_000, "b.md": "b"}))
    said = ask(one, topic="one", subjects="a")
    assert len(said["text"]) == 32_000
    assert said["truncated"] == "a is cut to 32000 of 50000 characters"
    assert "left out for length: b" in ask(one, topic="one", subjects="*")["truncated"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"topic": "nope"}, "not_found", "there are: one (The One)"),
        ({"topic": "one", "subjects": "nope"}, "not_found", "nothing in topic one matches 'nope'"),
        ({"topic": "one", "subjects": "off"}, "not_found", "nothing in topic one matches 'off'"),
        ({}, "invalid_input", "topic"),
        ({"topic": 1}, "invalid_input", "topic"),
        ({"topic": "one", "subjects": 1}, "invalid_input", "subjects"),
        ({"topic": "one", "subjects": [1]}, "invalid_input", "subjects"),
        ({"topic": "one", "subjects": ["x"] * 65}, "invalid_input", "subjects"),
        ({"topic": "one", "subjects": "x" * 4_097}, "invalid_input", "subjects"),
        ({"topic": "x" * 201}, "invalid_input", "topic"),
        ({"topic": "one", "home": "/"}, "invalid_input", "home"),
    ],
)
def test_what_cannot_be_answered(
    home: ToolsHome, tmp_path: Path, arguments: dict[str, object], code: str, said: str
) -> None:
    """An error with its code, and what to do next."""
    files = {"a.md": "a", "off.md": "off"}
    one = kit(home, topic(tmp_path / "one", files, title="The One", disabled=("off",)))
    error = ask(one, **arguments)["error"]
    assert error["code"] == code
    assert said in error["message"]


def test_without_topics_it_knows_none(home: ToolsHome) -> None:
    """Called though it was not listed."""
    assert ask(home.kit, topic="x")["error"]["code"] == "not_found"


def test_settings_that_are_wrong_are_for_the_operator(home: ToolsHome) -> None:
    """Others hear that there is no answer now, and of no path."""

    def wrong(_: Scope) -> tuple[Topic, ...]:
        raise ConfigError("there is no folder /secret", place="config.toml:1")

    broken = home.kit.with_topics(wrong)
    assert "/secret" in ask(broken, OPERATOR, topic="x")["error"]["message"]
    stranger = ask(broken, NOBODY, topic="x")["error"]
    assert stranger == {
        "code": "unavailable",
        "message": "topics cannot be read now",
        "field": None,
    }
    assert call("kb_list_docs", {}, broken, NOBODY)


def test_two_calls_give_equal_bytes(home: ToolsHome, tmp_path: Path) -> None:
    """The list and the texts, whoever asks."""
    one = kit(home, topic(tmp_path / "one", {"b.md": "b", "a.md": "a"}))
    for arguments in ({"topic": "one"}, {"topic": "one", "subjects": ["**"]}):
        first = call("learn", arguments, one, NOBODY)
        assert first == call("learn", arguments, one, OPERATOR)


def test_a_hidden_topic_is_one_that_is_not_there(home: ToolsHome, tmp_path: Path) -> None:
    """In the list of tools, in what the tool says of itself, and in its errors."""
    shown = topic(tmp_path / "shown", {"a.md": "a"})
    hidden = topic(tmp_path / "hidden", {"s.md": "secret"}, title="Hush", visibility="private")
    both, alone = kit(home, hidden, shown), kit(home, shown)
    assert tools_of(kit(home, hidden), NOBODY) == tools_of(home.kit, NOBODY)
    assert tools_of(both, NOBODY)[-1].description == tools_of(alone, NOBODY)[-1].description
    for name in ("hidden", "Hush", "none", "shown"):
        for subjects in (None, "s", "**"):
            said = ask(both, topic=name, subjects=subjects)
            assert said == ask(alone, topic=name, subjects=subjects)
    assert ask(both, OPERATOR, topic="hidden", subjects="s")["text"] == "secret"
