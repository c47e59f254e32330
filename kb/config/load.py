"""Layers become Settings, and what is wrong in one is named with its place.

Later layers win: defaults, the user's config.toml, the home's kb.toml and config.toml, KB_CFG,
--cfg. Tables are merged key by key, lists are replaced.
"""

import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

import msgspec

from kb.config.lines import line_of
from kb.config.sections import TOPIC_KEYS, KbSettings, Settings, TopicSettings
from kb.errors import ConfigError

_T = TypeVar("_T")
_KeyPath = tuple[str, ...]
_ASSIGNMENT: Final = re.compile(r"([A-Za-z0-9_.-]+?)(\+?=)(.*)", re.DOTALL)
# Where questions, notes and keys are sent, which addresses are reached, and who reaches this one.
_PERSONAL: Final = ("llm", "fetch", "serve", "client")
_PERSONAL_KEYS: Final = (("notebook", "push"), ("pack", "trusted_keys"))
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class _Wrong(Exception):
    """A table is not what settings look like."""

    def __init__(self, path: _KeyPath, detail: str, *, alone: bool = True) -> None:
        """Keep the key's path; `alone` is false where another layer may yet make it right."""
        super().__init__(detail)
        self.path = path
        self.alone = alone


def load(
    files: Iterable[Path],
    overrides: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    load_path: Sequence[Path] = (),
    foreign: Collection[Path] = (),
) -> Settings:
    """Read the layers into Settings.

    `files` that are absent are passed over; those that are `foreign`, which come with a project
    and so from whoever wrote that, may not say whom to talk to. `overrides` are KEY=VALUE,
    KEY+=VALUE, files, or names of files (without `.toml`) in the folders of `load_path`, the first
    one that has it; KB_CFG holds more of them, parted by newlines. Raises ConfigError that names
    the layer, the key and, in a file, the line.
    """
    env = os.environ if env is None else env
    layers = _Layers()
    for file in files:
        if file.is_file():
            layers.take_file(file, is_foreign=file in foreign)
    for override in (*filter(None, env.get("KB_CFG", "").split("\n")), *overrides):
        match = _ASSIGNMENT.fullmatch(override)
        if match is None:
            layers.take_file(_file_meant(override, load_path))
        else:
            layers.take_assignment(override, *match.groups())
    return layers.settings()


def _file_meant(override: str, load_path: Sequence[Path]) -> Path:
    file = os.path.expanduser(override)
    if os.path.exists(file) and not os.path.isdir(file):
        return Path(file)
    name = PurePosixPath(f"{override}.toml")
    # A name leads down from these folders, never up or away.
    if not name.is_absolute() and ".." not in name.parts:
        for folder in load_path:
            if os.path.isfile(folder / name):
                return folder / name
    if os.path.isdir(file):
        return Path(file)
    looked = "".join(f", nor {name} in {folder}" for folder in load_path)
    raise ConfigError(f"neither KEY=VALUE nor a file{looked}", place=f"--cfg {override}")


class _Layers:
    """What the layers so far say together, and where each topic was said."""

    def __init__(self) -> None:
        self._merged: dict[str, Any] = {}
        self._topics: dict[str, str] = {}
        self._subjects: dict[str, str] = {}

    def take_file(self, file: Path, *, is_foreign: bool = False) -> None:
        """A file's tables. Raises ConfigError with its line."""
        try:
            text = file.read_text("utf-8")
            table = tomllib.loads(text)
        except OSError as error:
            raise ConfigError(f"cannot be read ({error.strerror})", place=file) from error
        except UnicodeDecodeError as error:
            raise ConfigError("not UTF-8", place=file) from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not TOML: {error}", place=file) from error

        def place(path: _KeyPath) -> str:
            line = line_of(text, path)
            return f"{file}:{line}" if line else str(file)

        for section in _PERSONAL if is_foreign else ():
            if section in table:
                said = f"{section} is not for a project to say; set it in your own settings"
                raise ConfigError(said, place=place((section,)))
        for section, key in _PERSONAL_KEYS if is_foreign else ():
            if isinstance(table.get(section), dict) and key in table[section]:
                said = f"{section}.{key} is not for a project to say; set it in your own settings"
                raise ConfigError(said, place=place((section, key)))
        self._take(table, place)

    def take_assignment(self, whole: str, key: str, operator: str, raw: str) -> None:
        """One KEY=VALUE or KEY+=VALUE. Raises ConfigError with the flag as it was typed."""
        parts = key.split(".")
        value = _value(raw)
        if operator == "+=":
            value = [
                *_looked_up(self._merged, parts),
                *(value if isinstance(value, list) else [value]),
            ]
        table: dict[str, Any] = {}
        inner = table
        for part in parts[:-1]:
            inner = inner.setdefault(part, {})
        inner[parts[-1]] = value
        client = table.get("client")
        if isinstance(client, dict) and "token" in client:
            # Others on the machine see the arguments of a command.
            detail = "a token is not for the command line; set KB_TOKEN, or say it in a file"
            raise ConfigError(detail, place="--cfg client.token")
        self._take(table, lambda _: f"--cfg {whole}")

    def _take(self, table: dict[str, Any], place: Callable[[_KeyPath], str]) -> None:
        try:
            _typed(table)
        except _Wrong as wrong:
            # Settings that do not go together: another layer may yet change one of them.
            if wrong.alone:
                raise ConfigError(str(wrong), place=place(wrong.path)) from None
        for name, said in _topics(table).items():
            if name not in self._topics:
                self._topics[name] = place(("kb", "topic", name))
            if "subjects" in said:
                self._subjects[name] = place(("kb", "topic", name, "subjects"))
        _merge(self._merged, table)

    def settings(self) -> Settings:
        """All of it. Raises ConfigError where the layers are wrong together."""
        try:
            said = _typed(self._merged)
        except _Wrong as wrong:
            raise ConfigError(str(wrong), place="the settings") from None
        topics = {name: self._placed(name, topic) for name, topic in said.kb.topic.items()}
        return msgspec.structs.replace(said, kb=KbSettings(topic=topics))

    def _placed(self, name: str, topic: TopicSettings) -> TopicSettings:
        # One that is off may be half said: it can be turned off where it is not defined.
        if topic.enable and not topic.subjects:
            detail = f"kb.topic.{name}.subjects: say the folder in which its subjects lie"
            raise ConfigError(detail, place=self._topics[name])
        return msgspec.structs.replace(topic, said_at=self._subjects.get(name, ""))


def _value(raw: str) -> Any:
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw


def _looked_up(merged: dict[str, Any], parts: list[str]) -> list[Any]:
    found: Any = msgspec.to_builtins(Settings())
    _merge(found, merged)
    for part in parts:
        found = found.get(part, []) if isinstance(found, dict) else []
    return list(found) if isinstance(found, list | tuple) else [found]


def _merge(into: dict[str, Any], table: dict[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _topics(table: dict[str, Any]) -> dict[str, Any]:
    inner = table.get("kb")
    topics = inner.get("topic") if isinstance(inner, dict) else None
    return topics if isinstance(topics, dict) else {}


def _typed(table: dict[str, Any]) -> Settings:
    """A table as Settings. Raises _Wrong."""
    for name, said in _topics(table).items():
        path = ("kb", "topic", name)
        if not _TOPIC_ID.fullmatch(name):
            raise _Wrong(path, f"kb.topic.{name}: an id has letters, digits, - and _, at most 64")
        if isinstance(said, dict) and "said_at" in said:
            raise _Wrong((*path, "said_at"), f"unknown setting kb.topic.{name}.said_at")
        # By itself, for in the whole its name would be missing from the message.
        _converted(said, TopicSettings, path)
    return _converted(table, Settings)


def _converted(said: Any, kind: type[_T], above: _KeyPath = ()) -> _T:
    try:
        return msgspec.convert(said, kind, strict=True)
    except msgspec.ValidationError as error:
        detail, _, below = str(error).partition(" - at `$")
        unknown = re.search(r"unknown field `([^`]*)`", detail)
        names = (*above, *below.rstrip("`").split("."), unknown.group(1) if unknown else "")
        key = ".".join(filter(None, names))
        path = tuple(name.partition("[")[0] for name in names if name)
        raise _Wrong(
            path,
            f"unknown setting {key}{_meant(key, above)}" if unknown else f"{key}: {detail}",
            alone=not isinstance(error.__cause__, ValueError),
        ) from None


def _meant(key: str, above: _KeyPath) -> str:
    import difflib

    known = [
        f"{section}.{name}"
        for section, said in msgspec.to_builtins(Settings()).items()
        for name in said
    ]
    known += [".".join((*above, name)) for name in TOPIC_KEYS if above]
    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
