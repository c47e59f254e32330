"""Loads Settings from layers; an error names the layer, the key and, in a file, the line.

Later layers win: defaults, the user's config.toml, the home's kb.toml and config.toml, KB_CFG,
--cfg. Tables are merged key by key, lists are replaced.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from kb.errors import ConfigError, UsageError
from kb.model.config.convert import InvalidSettings, suggestion, to_settings, topics_in
from kb.model.config.project import (
    BYTES_MAX,
    ProjectFiles,
    allowed_if_accepted,
    always_allowed,
    escaping_path,
    restricted_values,
)
from kb.model.config.sections import KbSettings, Settings, TopicAuthor, TopicSettings

_KeyPath = tuple[str, ...]
_Place = Callable[[_KeyPath], str]
PROGRAM: Final = "kb.open"
"""Where an error says that a program's settings are wrong."""
_ASSIGNMENT: Final = r"(?s)([A-Za-z0-9_.-]+?)(\+?=)(.*)"


def load(
    files: Iterable[Path],
    overrides: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    load_path: Sequence[Path] = (),
    project: ProjectFiles | None = None,
    warn: Callable[[str], None] | None = None,
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """Read the layers into Settings.

    Missing `files` are skipped. An override is KEY=VALUE, KEY+=VALUE, the name of a file (without
    `.toml`) in the first folder of `load_path` that has it, or a path; KB_CFG holds more overrides,
    separated by newlines. A file of the `project` is used in full if the user accepted it, else
    only its harmless keys; `warn` is called for ignored keys. `values` are what a program sets by
    whole names, and win. Raises ConfigError, which names the layer, the key and, in a file, the
    line.
    """
    layers = _layers(files, overrides, env, load_path, _Layers(project, warn))
    layers.add_values(values)
    return layers.settings()


class SettingPlace(Struct, frozen=True, kw_only=True):
    """Where a setting is set."""

    layer: Literal["file", "environment", "option", "home"]
    place: str
    """FILE:LINE, the name of the variable or the option, or the address of the home."""


class TracedSettings(Struct, frozen=True, kw_only=True):
    """Settings, and where each one that differs from its default is set."""

    settings: Settings
    places: Mapping[str, SettingPlace]
    """By the setting's whole name."""


def load_traced(
    files: Iterable[Path],
    overrides: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    load_path: Sequence[Path] = (),
    project: ProjectFiles | None = None,
    warn: Callable[[str], None] | None = None,
    contents: Mapping[Path, bytes] | None = None,
) -> TracedSettings:
    """As `load`, but also tells where each setting is set.

    `contents` holds the bytes of files, which are then not read; None means that there is no file.
    """
    layers = _layers(files, overrides, env, load_path, _Layers(project, warn, contents or {}))
    return TracedSettings(settings=layers.settings(), places=layers.places())


def _layers(
    files: Iterable[Path],
    overrides: Iterable[str],
    env: Mapping[str, str] | None,
    load_path: Sequence[Path],
    layers: "_Layers",
) -> "_Layers":
    env = os.environ if env is None else env
    for file in files:
        if layers.has(file):
            layers.add_file(file)
    from_env = [("environment", line) for line in env.get("KB_CFG", "").split("\n") if line]
    for layer, override in (*from_env, *(("option", override) for override in overrides)):
        match = re.fullmatch(_ASSIGNMENT, override)
        if match is None:
            layers.add_file(_override_file(override, load_path))
        else:
            layers.add_assignment(override, *match.groups(), is_option=layer == "option")
    return layers


def _override_file(override: str, load_path: Sequence[Path]) -> Path:
    file = os.path.expanduser(override)
    name = PurePosixPath(f"{override}.toml")
    # A name never leads out of these folders. They are searched before the working directory,
    # which may belong to somebody else.
    is_name = file == override and not (override.startswith("./") or name.is_absolute())
    if is_name and ".." not in name.parts:
        for folder in load_path:
            if os.path.isfile(folder / name):
                return folder / name
    if os.path.exists(file):
        return Path(file)
    searched = "".join(f", nor {name} in {folder}" for folder in load_path)
    raise ConfigError(f"neither KEY=VALUE nor a file{searched}", place=f"--cfg {override}")


class _Layers:
    """Merges the layers, and remembers where each topic was defined."""

    def __init__(
        self,
        project: ProjectFiles | None,
        warn: Callable[[str], None] | None,
        contents: Mapping[Path, bytes] = MappingProxyType({}),
    ) -> None:
        self._project = project
        self._warn = warn or (lambda _: None)
        self._contents = contents
        self._tables: list[tuple[dict[str, Any], Callable[[_KeyPath], SettingPlace]]] = []
        self._merged: dict[str, Any] = {}
        self._topics: dict[str, str] = {}
        self._subjects: dict[str, str] = {}
        self._authors: dict[str, TopicAuthor] = {}

    def has(self, file: Path) -> bool:
        """Whether the file exists."""
        return file in self._contents or file.is_file()

    def places(self) -> dict[str, SettingPlace]:
        """Where each setting that a layer sets is set."""
        return {
            ".".join(path): place(path) for table, place in self._tables for path in _leaves(table)
        }

    def add_file(self, file: Path) -> None:
        """Merge a file's tables. Raises ConfigError with the line."""
        project = self._project if self._project and self._project.has(file) else None
        if project and os.path.lexists(file):
            project.check_inside(file)
        data = self._contents[file] if file in self._contents else _read(file)
        table, place = _parse_file(file, data)
        if project is None:
            self._add_table(table, place, "user")
        elif project.accepts(data):
            allowed, ignored = allowed_if_accepted(table)
            if escaping_key := escaping_path(allowed):
                detail = (
                    f"{'.'.join(escaping_key)}: of a project it lies below its {project.home.name}"
                )
                raise ConfigError(detail, place=place(escaping_key))
            self._warn_ignored(
                file, ignored, "is for your own settings alone, so that it does not count"
            )
            self._add_table(allowed, place, "project")
        else:
            allowed, ignored = always_allowed(table)
            ignored += self._drop_usertopics_in(allowed)
            self._warn_ignored(file, ignored, project.hint(file))
            self._add_table(allowed, place, "stranger")

    def _drop_usertopics_in(self, table: dict[str, Any]) -> list[str]:
        """Remove the user's own topics from a project's table; returns their keys.

        Otherwise a project could show them to others, or make them read other folders.
        """
        topics = topics_in(table)
        merged = topics_in(self._merged)
        user_topics = [
            name
            for name in topics
            if self._authors.get(name, "user") == "user"
            and not {"subjects", "learned"}.isdisjoint(merged.get(name, ()))
        ]
        for name in user_topics:
            del topics[name]
        return [f"kb.topic.{name}" for name in user_topics]

    def _warn_ignored(self, file: Path, keys: list[str], why: str) -> None:
        if keys:
            self._warn(f"{file}: {', '.join(keys)} {why}")

    def add_assignment(
        self, whole: str, key: str, operator: str, raw: str, *, is_option: bool
    ) -> None:
        """Merge one KEY=VALUE or KEY+=VALUE. Raises ConfigError with the flag as typed."""
        parts = key.split(".")
        value = _value(raw)
        if operator == "+=":
            value = [
                *_current_list(self._merged, parts),
                *(value if isinstance(value, list) else [value]),
            ]
        table = _nested(parts, value)
        client = table.get("client")
        if isinstance(client, dict) and "token" in client:
            # Other users of the machine can see the arguments of a command.
            detail = (
                "other users can see the command line; set KB_TOKEN, or write the token to a file"
            )
            raise ConfigError(detail, place="--cfg client.token")

        def place(_: _KeyPath) -> str:
            return f"--cfg {whole}"

        _validate(table, place)
        setting_place = (
            SettingPlace(layer="option", place="--cfg")
            if is_option
            else SettingPlace(layer="environment", place="KB_CFG")
        )
        self._add_table(table, place, "user", lambda _: setting_place)

    def add_values(self, values: Mapping[str, Any]) -> None:
        """Merge what a program sets, by whole names. Raises ConfigError."""
        for key, value in values.items():
            table = _nested(str(key).split("."), value)
            _validate(table, lambda _: PROGRAM)
            self._add_table(table, lambda _: PROGRAM, "user")

    def _add_table(
        self,
        table: dict[str, Any],
        place: _Place,
        author: TopicAuthor,
        find_place: Callable[[_KeyPath], SettingPlace] | None = None,
    ) -> None:
        self._tables.append((table, find_place or (lambda path: _in_file(place, path))))
        for name, topic in topics_in(table).items():
            if name not in self._topics:
                self._topics[name] = place(("kb", "topic", name))
            if "subjects" in topic:
                self._subjects[name] = place(("kb", "topic", name, "subjects"))
            is_untrusted = self._authors.get(name) == "stranger"
            if "subjects" in topic if author == "user" else not is_untrusted:
                self._authors[name] = author
        _merge(self._merged, table)

    def settings(self) -> Settings:
        """The merged settings. Raises ConfigError if the layers contradict each other."""
        try:
            settings = to_settings(self._merged)
        except InvalidSettings as error:
            raise ConfigError(str(error), place="the settings") from None
        topics = {name: self._with_origin(name, topic) for name, topic in settings.kb.topic.items()}
        return msgspec.structs.replace(settings, kb=KbSettings(topic=topics))

    def _with_origin(self, name: str, topic: TopicSettings) -> TopicSettings:
        # A disabled topic may be incomplete: a layer may disable a topic that it does not define.
        if topic.enable and not topic.subjects:
            detail = (
                f"kb.topic.{name}.subjects is missing; set it to the folder of the topic's subjects"
            )
            raise ConfigError(detail, place=self._topics[name])
        author = self._authors.get(name, "user")
        return msgspec.structs.replace(
            topic, defined_at=self._subjects.get(name, ""), defined_by=author
        )


def parse_value(raw: str) -> Any:
    """The value of VALUE in KEY=VALUE: a value of TOML, or else the text itself."""
    return _value(raw)


def check_setting(key: str, value: Any) -> None:
    """Raise UsageError if a setting is unknown, or its value is not valid."""
    try:
        to_settings(_nested(key.split("."), value), of_home=True)
    except InvalidSettings as error:
        # Another layer may correct what only contradicts another setting.
        if error.is_final:
            raise UsageError(str(error)) from None


def unknown_setting(key: str) -> UsageError:
    """The error for a name that no setting has."""
    return UsageError(f"unknown setting {key}{suggestion(key)}")


def restricted_settings(file: Path, data: bytes) -> list[str]:
    """The settings in a project's file that are used only once the user accepts the file.

    Each is KEY = VALUE. `data` holds the bytes of the file. Raises ConfigError if it is invalid.
    """
    return restricted_values(_parse_file(file, data)[0])


def _parse_file(file: Path, data: bytes) -> tuple[dict[str, Any], _Place]:
    """A file's tables, and a function from a key to its line. Raises ConfigError with the line."""
    import tomllib

    try:
        text = data.decode()
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", place=file) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", place=file) from error

    def place(path: _KeyPath) -> str:
        from kb.model.config.lines import line_of

        line = line_of(text, path)
        return f"{file}:{line}" if line else str(file)

    _validate(table, place)
    return table, place


def _validate(table: dict[str, Any], place: _Place) -> None:
    try:
        to_settings(table)
    except InvalidSettings as error:
        # Values may still contradict each other: a later layer may change one.
        if error.is_final:
            raise ConfigError(str(error), place=place(error.path)) from None


def _read(file: Path) -> bytes:
    try:
        with open(file, "rb") as opened:
            data = opened.read(BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", place=file) from error
    if len(data) > BYTES_MAX:
        raise ConfigError(f"over the limit of {BYTES_MAX:,} bytes", place=file)
    return data


def _value(raw: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw


def _current_list(merged: dict[str, Any], parts: list[str]) -> list[Any]:
    current: Any = msgspec.to_builtins(Settings())
    _merge(current, merged)
    for part in parts:
        current = current.get(part, []) if isinstance(current, dict) else []
    return list(current) if isinstance(current, list | tuple) else [current]


def _nested(parts: Sequence[str], value: Any) -> dict[str, Any]:
    """The table that has one value, under a name of several parts."""
    *above, name = parts
    table: dict[str, Any] = {name: value}
    for part in reversed(above):
        table = {part: table}
    return table


def _merge(into: dict[str, Any], table: dict[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _in_file(place: _Place, path: _KeyPath) -> SettingPlace:
    return SettingPlace(layer="file", place=place(path))


def _leaves(table: dict[str, Any], above: _KeyPath = ()) -> Iterator[_KeyPath]:
    """The names of all values in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name)
