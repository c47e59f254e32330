"""Turns a table of TOML into Settings; an error names the key, and a similar key."""

import re
from typing import Any, Final, TypeVar

import msgspec

from kb.model.config.sections import (
    FILLED_IN,
    HOME_SECTIONS,
    TOPIC_KEYS,
    Settings,
    TopicSettings,
)
from kb.model.decoding import convert

_T = TypeVar("_T")
_KeyPath = tuple[str, ...]
_HOME_ADVICE: Final = "write them there by `kb --home postgresql://... config set`"
_TOPIC_ID: Final = r"[A-Za-z0-9_-]{1,64}"


class InvalidSettings(Exception):
    """A table has unknown keys or invalid values."""

    def __init__(self, path: _KeyPath, detail: str, *, is_final: bool = True) -> None:
        """Keep the key's path; `is_final` is false if another layer may correct it."""
        super().__init__(detail)
        self.path = path
        self.is_final = is_final


def topics_in(table: dict[str, Any]) -> dict[str, Any]:
    """The topics of a table, by id."""
    inner = table.get("kb")
    topics = inner.get("topic") if isinstance(inner, dict) else None
    return topics if isinstance(topics, dict) else {}


def to_settings(table: dict[str, Any], *, of_home: bool = False) -> Settings:
    """A table as Settings. Only with `of_home` may it have those that a home has itself.

    Raises InvalidSettings.
    """
    for section in HOME_SECTIONS:
        if section in table and not of_home:
            detail = f"{section}: a home in a database has these settings itself; {_HOME_ADVICE}"
            raise InvalidSettings((section,), detail)
    for name, topic in topics_in(table).items():
        path = ("kb", "topic", name)
        if not re.fullmatch(_TOPIC_ID, name):
            raise InvalidSettings(
                path, f"kb.topic.{name}: an id has letters, digits, - and _, at most 64"
            )
        for key in FILLED_IN if isinstance(topic, dict) else ():
            if key in topic:
                raise InvalidSettings((*path, key), f"unknown setting kb.topic.{name}.{key}")
        # Each topic is converted by itself, because the message for all would lack its name.
        _convert(topic, TopicSettings, path)
    return _convert(table, Settings)


def _convert(table: Any, kind: type[_T], above: _KeyPath = ()) -> _T:
    try:
        return convert(table, kind, strict=True)
    except msgspec.ValidationError as error:
        detail, _, below = str(error).partition(" - at `$")
        unknown = re.search(r"unknown field `([^`]*)`", detail)
        inner = (*below.rstrip("`").split("."), unknown.group(1) if unknown else "")
        names = (*above, *filter(None, inner))
        key = ".".join(names)
        path = tuple(name.partition("[")[0] for name in names)
        contradicts = isinstance(error.__cause__, ValueError)
        said = f"{key}: {detail}"
        if unknown:
            said = f"unknown setting {key}{suggestion(key, above)}"
        elif not contradicts:
            from kb.model.config.wrong_value import sentence_of

            said = sentence_of(kind, table, names[len(above) :], key) or said
        raise InvalidSettings(path, said, is_final=not contradicts) from None


def suggestion(key: str, above: _KeyPath = ()) -> str:
    """The end of a message about an unknown setting: a similar name, if there is one."""
    import difflib

    setting_names = [
        f"{section}.{name}"
        for section, values in msgspec.to_builtins(Settings()).items()
        for name in values
    ]
    setting_names += [".".join((*above, name)) for name in TOPIC_KEYS if above]
    matches = difflib.get_close_matches(key, setting_names, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""
