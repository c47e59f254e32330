"""What is said of a setting whose value is wrong."""

import errno
import os
from pathlib import Path

import pytest
from msgspec import structs

from kb.errors import ConfigError, ReadOnlyHome
from kb.model.config import HOME_SECTIONS, Settings, TopicSettings, load
from kb.operations.settings_file import write_text


def _every_setting() -> list[str]:
    """The name of each setting, those of a topic among them."""
    settings = [
        f"{section.encode_name}.{name}"
        for section in structs.fields(Settings)
        if section.name not in ("kb", *HOME_SECTIONS)
        for name in section.type.__struct_fields__
    ]
    filled_in = ("defined_at", "defined_by")
    topic = [name for name in TopicSettings.__struct_fields__ if name not in filled_in]
    return [*settings, *(f"kb.topic.a.{name}" for name in topic)]


@pytest.mark.parametrize("value", [{"a": 1}, [{}], "\0" * 5_000, 1e300, -5], ids=range(5))
def test_a_wrong_value_is_answered_in_plain_words(value: object) -> None:
    """Of every setting: what it must be, without the names that programs have for types."""
    refused = 0
    for key in _every_setting():
        try:
            load([], values={"kb.topic.a.subjects": "a"} | {key: value}, env={})
        except ConfigError as error:
            message = str(error)
            assert message.startswith(f"kb.open: {key}")
            assert " must be " in message
            assert not any(word in message for word in ("Expected", "regex", "`", "null"))
            assert len(message) < 300
            refused += 1
    assert refused > 20


def test_an_error_shows_no_secret(tmp_path: Path) -> None:
    """A token of the wrong type, and a password in an address, stay out of the message."""
    file = tmp_path / "config.toml"
    file.write_text("[client]\ntoken = 12345678\n")
    with pytest.raises(ConfigError) as raised:
        load([file], env={})
    assert "client.token must be text" in str(raised.value)
    assert "12345678" not in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        load([], ["notebook.token_host=https://ada:hidden@host"], env={})
    message = str(raised.value).partition(": notebook")[2]
    assert "token_host must be a host, as HOST or HOST:PORT, not 'https://***@host'" in message


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings file, not the draft beside it, which is gone."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "draft")

    file = tmp_path / "config.toml"
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ReadOnlyHome, match=f"{file} cannot be written: Read-only file system"):
        write_text(file, "a = 1\n", before="")
    assert list(tmp_path.iterdir()) == []
