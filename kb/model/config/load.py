"""Loads Settings from layers; an error names the layer, the key and, in a file, the line.

Later layers win: defaults, the user's config.toml, the home's kb.toml and config.toml, KB_CFG,
--cfg. Tables are merged key by key, lists are replaced.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

import msgspec

from kb.errors import ConfigError
from kb.model.config.project import (
    BYTES_MAX,
    ProjectFiles,
    allowed_if_accepted,
    always_allowed,
    escaping_path,
    restricted_values,
)
from kb.model.config.sections import (
    FILLED_IN,
    TOPIC_KEYS,
    KbSettings,
    Settings,
    TopicAuthor,
    TopicSettings,
)

_T = TypeVar("_T")
_KeyPath = tuple[str, ...]
_Place = Callable[[_KeyPath], str]
_ASSIGNMENT: Final = re.compile(r"([A-Za-z0-9_.-]+?)(\+?=)(.*)", re.DOTALL)
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class _InvalidSettings(Exception):
    """A table has unknown keys or invalid values."""

    def __init__(self, path: _KeyPath, detail: str, *, is_final: bool = True) -> None:
        """Keep the key's path; `alone` is false where another layer may yet make it right."""
        super().__init__(detail)
        self.path = path
        self.is_final = is_final


def load(
    files: Iterable[Path],
    overrides: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    load_path: Sequence[Path] = (),
    project: ProjectFiles | None = None,
    warn: Callable[[str], None] | None = None,
) -> Settings:
    """Read the layers into Settings.

    Missing `files` are skipped. An override is KEY=VALUE, KEY+=VALUE, the name of a file (without
    `.toml`) in the first folder of `load_path` that has it, or a path; KB_CFG holds more overrides,
    separated by newlines. A file of the `project` is used in full if the user accepted it, else
    only its harmless keys; `warn` is called for ignored keys. Raises ConfigError, which names the
    layer, the key and, in a file, the line.
    """
    env = os.environ if env is None else env
    layers = _Layers(project, warn or (lambda _: None))
    for file in files:
        if file.is_file():
            layers.add_file(file)
    for override in (*filter(None, env.get("KB_CFG", "").split("\n")), *overrides):
        match = _ASSIGNMENT.fullmatch(override)
        if match is None:
            layers.add_file(_override_file(override, load_path))
        else:
            layers.add_assignment(override, *match.groups())
    return layers.settings()


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

    def __init__(self, project: ProjectFiles | None, warn: Callable[[str], None]) -> None:
        self._project = project
        self._warn = warn
        self._merged: dict[str, Any] = {}
        self._topics: dict[str, str] = {}
        self._subjects: dict[str, str] = {}
        self._authors: dict[str, TopicAuthor] = {}

    def add_file(self, file: Path) -> None:
        """Merge a file's tables. Raises ConfigError with the line."""
        project = self._project if self._project and self._project.has(file) else None
        if project:
            project.check_inside(file)
        data = _read(file)
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
            ignored += self._drop_user_topics(allowed)
            self._warn_ignored(file, ignored, project.hint(file))
            self._add_table(allowed, place, "stranger")

    def _drop_user_topics(self, table: dict[str, Any]) -> list[str]:
        """Remove the user's own topics from a project's table; returns their keys.

        Otherwise a project could show them to others, or make them read other folders.
        """
        topics = _topics(table)
        merged = _topics(self._merged)
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

    def add_assignment(self, whole: str, key: str, operator: str, raw: str) -> None:
        """Merge one KEY=VALUE or KEY+=VALUE. Raises ConfigError with the flag as typed."""
        parts = key.split(".")
        value = _value(raw)
        if operator == "+=":
            value = [
                *_current_list(self._merged, parts),
                *(value if isinstance(value, list) else [value]),
            ]
        table: dict[str, Any] = {}
        inner = table
        for part in parts[:-1]:
            inner = inner.setdefault(part, {})
        inner[parts[-1]] = value
        client = table.get("client")
        if isinstance(client, dict) and "token" in client:
            # Other users of the machine can see the arguments of a command.
            detail = "a token is not for the command line; set KB_TOKEN, or say it in a file"
            raise ConfigError(detail, place="--cfg client.token")

        def place(_: _KeyPath) -> str:
            return f"--cfg {whole}"

        _validate(table, place)
        self._add_table(table, place, "user")

    def _add_table(self, table: dict[str, Any], place: _Place, author: TopicAuthor) -> None:
        for name, topic in _topics(table).items():
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
            settings = _to_settings(self._merged)
        except _InvalidSettings as error:
            raise ConfigError(str(error), place="the settings") from None
        topics = {name: self._with_origin(name, topic) for name, topic in settings.kb.topic.items()}
        return msgspec.structs.replace(settings, kb=KbSettings(topic=topics))

    def _with_origin(self, name: str, topic: TopicSettings) -> TopicSettings:
        # A disabled topic may be incomplete: a layer may disable a topic that it does not define.
        if topic.enable and not topic.subjects:
            detail = f"kb.topic.{name}.subjects: say the folder in which its subjects lie"
            raise ConfigError(detail, place=self._topics[name])
        author = self._authors.get(name, "user")
        return msgspec.structs.replace(
            topic, defined_at=self._subjects.get(name, ""), defined_by=author
        )


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
        _to_settings(table)
    except _InvalidSettings as error:
        # Values that contradict each other are no error yet: a later layer may change one.
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


def _to_settings(table: dict[str, Any]) -> Settings:
    """A table as Settings. Raises _Wrong."""
    for name, topic in _topics(table).items():
        path = ("kb", "topic", name)
        if not _TOPIC_ID.fullmatch(name):
            raise _InvalidSettings(
                path, f"kb.topic.{name}: an id has letters, digits, - and _, at most 64"
            )
        for key in FILLED_IN if isinstance(topic, dict) else ():
            if key in topic:
                raise _InvalidSettings((*path, key), f"unknown setting kb.topic.{name}.{key}")
        # Converted separately, because the message for the whole would lack the topic's name.
        _convert(topic, TopicSettings, path)
    return _convert(table, Settings)


def _convert(table: Any, kind: type[_T], above: _KeyPath = ()) -> _T:
    try:
        return msgspec.convert(table, kind, strict=True)
    except msgspec.ValidationError as error:
        detail, _, below = str(error).partition(" - at `$")
        unknown = re.search(r"unknown field `([^`]*)`", detail)
        names = (*above, *below.rstrip("`").split("."), unknown.group(1) if unknown else "")
        key = ".".join(filter(None, names))
        path = tuple(name.partition("[")[0] for name in names if name)
        raise _InvalidSettings(
            path,
            f"unknown setting {key}{_suggestion(key, above)}" if unknown else f"{key}: {detail}",
            is_final=not isinstance(error.__cause__, ValueError),
        ) from None


def _suggestion(key: str, above: _KeyPath) -> str:
    import difflib

    setting_names = [
        f"{section}.{name}"
        for section, values in msgspec.to_builtins(Settings()).items()
        for name in values
    ]
    setting_names += [".".join((*above, name)) for name in TOPIC_KEYS if above]
    matches = difflib.get_close_matches(key, setting_names, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""
