"""List the settings with where each is set, and change one in its file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from kb.errors import ConfigError, UsageError
from kb.home.spaces.homes import OWN_HOME, check_own_home
from kb.model.config import (
    HOME_CONFIGS,
    HOME_SECTIONS,
    SETTINGS_BYTES_MAX,
    ProjectFiles,
    SettingPlace,
    Settings,
    user_config,
)
from kb.model.config.wrong_value import without_password
from kb.operations.settings_file import read_text, write_text
from kb.store.content.layout import HomePaths

Level = Literal["user", "home"]
LEVELS: Final[tuple[Level, ...]] = ("user", "home")
"""Whose file a setting is written to."""
_SECRETS: Final = frozenset(("client.token",))
_VARIABLES: Final = (("client.server", "KB_SERVER"), ("client.token", "KB_TOKEN"))


class SettingsLayers(Struct, frozen=True, kw_only=True):
    """Where the settings of a home come from; `kb.model.config.load` says what each means."""

    home: Path
    data: Path | None = None
    files: tuple[Path, ...]
    overrides: tuple[str, ...] = ()
    load_path: tuple[Path, ...] = ()
    project: ProjectFiles | None = None
    server: str | None = None
    """What --server says."""


class SettingsFile(Struct, frozen=True, kw_only=True):
    """A settings file."""

    path: str
    exists: bool
    trusted: bool
    """Whether all of it counts; of a project's file that was not accepted only a part does."""


class SettingRow(Struct, frozen=True, kw_only=True):
    """A setting, its value, and where it is set."""

    key: str
    value: Any
    """None for a secret, which is never shown."""
    layer: Literal["default", "file", "environment", "option", "home"]
    place: str | None
    """FILE:LINE, the variable or option, or the address of a home that has it itself; None for a
    default."""
    secret: bool


class SettingsReport(Struct, frozen=True, kw_only=True):
    """The settings files in the order in which they are read, and every setting."""

    files: tuple[SettingsFile, ...]
    settings: tuple[SettingRow, ...]
    warnings: tuple[str, ...]


class KbFolders(Struct, frozen=True, kw_only=True):
    """Where kb keeps what it keeps."""

    config: str
    """The user's settings."""
    home: str
    """The home that is meant: its store, texts and indexes."""
    data: str
    """The user's home."""
    trust: str
    """Which homes count for the user."""
    server: str
    """The user's token for servers on this machine, and their locks."""
    cache: str
    """What kb makes again where it is missing."""


class SetResult(Struct, frozen=True, kw_only=True):
    """A setting as it is after a change."""

    file: str
    is_set: bool
    """Whether the file sets it now."""
    setting: SettingRow
    warnings: tuple[str, ...]


def list_settings(layers: SettingsLayers, env: Mapping[str, str]) -> SettingsReport:
    """Every setting, and where it is set. Raises ConfigError for a file that is wrong."""
    from kb.model.config.load import load_traced

    warnings: list[str] = []
    traced = load_traced(**_load_arguments(layers), env=env, warn=warnings.append)
    places = {**traced.places, **_from_surroundings(layers, env)}
    settings = traced.settings
    if (address := HomePaths(layers.home).database) is not None:
        from kb.home.shared_settings import settings_in

        settings, set_there = settings_in(address, settings, warnings.append)
        home = SettingPlace(layer="home", place=address.shown)
        places |= dict.fromkeys(set_there, home)
    return SettingsReport(
        files=tuple(_file(layers, path) for path in layers.files),
        settings=tuple(_rows(settings, places, layers, env)),
        warnings=tuple(warnings),
    )


def setting(layers: SettingsLayers, env: Mapping[str, str], key: str) -> SettingRow:
    """One setting. Raises ConfigError for a name that no setting has."""
    from kb.model.config.load import unknown_setting

    for row in list_settings(layers, env).settings:
        if row.key == key:
            return row
    raise unknown_setting(key)


def setting_names() -> tuple[str, ...]:
    """The name of every setting but those of topics."""
    sections = msgspec.to_builtins(Settings())
    return tuple(
        f"{section}.{name}"
        for section, names in sections.items()
        if section != "kb"
        for name in names
    )


def allowed_words(key: str) -> tuple[str, ...]:
    """The values that a setting may have, where these are a few words; else none."""
    from typing import get_args, get_origin, get_type_hints

    section, _, name = key.partition(".")
    record = get_type_hints(Settings).get(section)
    hint = get_type_hints(record).get(name) if record else None
    if hint is bool:
        return ("true", "false")
    return get_args(hint) if get_origin(hint) is Literal else ()


def set_value(
    layers: SettingsLayers, env: Mapping[str, str], level: Level, key: str, raw: str
) -> SetResult:
    """Write a setting into the user's file or the home's, whose comments and order stay.

    The text that results is checked with all other layers before it is written. What a home in a
    database sets itself goes there. Raises ConfigError, UsageError, and what the database raises.
    """
    from kb.model.config.load import check_setting, parse_value, unknown_setting

    if key not in setting_names() and not key.startswith("kb.topic."):
        raise unknown_setting(key)
    if key in _SECRETS:
        raise UsageError(
            f"{key} does not belong on the command line, which other users can see; "
            "set KB_TOKEN, or use `kb config edit`"
        )
    value = parse_value(raw)
    try:
        check_setting(key, value)
    except UsageError:
        # Text that looks like a number is text where text is wanted.
        if isinstance(value, str) or not _is_allowed(key, raw):
            raise
        value = raw
    if _is_of_home(key):
        return _changed_in_home(layers, env, key, value)
    if key == OWN_HOME:
        check_own_home(value, is_own=level == "user")
    return _changed(layers, env, level, key, value)


def unset_value(
    layers: SettingsLayers, env: Mapping[str, str], level: Level, key: str
) -> SetResult:
    """Take a setting out of the user's file or the home's. Raises ConfigError, UsageError."""
    if _is_of_home(key):
        return _changed_in_home(layers, env, key, "")
    return _changed(layers, env, level, key, None)


def file_of(layers: SettingsLayers, level: Level, key: str | None = None) -> Path:
    """The file of a level; of the home's two the last one that sets the key, else kb.toml."""
    if level == "user":
        return user_config()
    files = [layers.home / name for name in HOME_CONFIGS]
    setting = [file for file in files if key is not None and _sets(file, key)]
    existing = [file for file in files if file.is_file()]
    return (setting or existing[:1] or files)[-1 if setting else 0]


def check_text(layers: SettingsLayers, env: Mapping[str, str], file: Path, text: str) -> None:
    """Check what a settings file would say, with all other layers. Raises ConfigError."""
    from kb.model.config.load import load_traced

    data = text.encode()
    if len(data) > SETTINGS_BYTES_MAX:
        raise ConfigError(f"over the limit of {SETTINGS_BYTES_MAX:,} bytes", place=file)
    load_traced(**_load_arguments(layers), env=env, contents={file: data})


def folders(layers: SettingsLayers) -> KbFolders:
    """Where kb keeps what it keeps, whether it is there yet or not."""
    from kb.home.core import cache_folder
    from kb.store.trust import trust_list
    from kb.store.trust.local_token import local_token

    return KbFolders(
        config=str(user_config().parent),
        home=str(layers.home),
        data=str(layers.data or ""),
        trust=str(trust_list().root),
        server=str(local_token().root),
        cache=str(cache_folder() or ""),
    )


def _changed(
    layers: SettingsLayers, env: Mapping[str, str], level: Level, key: str, value: Any
) -> SetResult:
    from kb.model.config import edit

    file = file_of(layers, level, key)
    before = read_text(file)
    # What is not TOML cannot be changed by a rule.
    check_text(layers, env, file, before)
    path = tuple(key.split("."))
    try:
        if value is None and not _sets(file, key):
            raise UsageError(f"{file} does not set {key}")
        after = (
            edit.without_value(before, path)
            if value is None
            else edit.with_value(before, path, value)
        )
    except edit.TextTooComplex as error:
        raise UsageError(
            f"{file} sets {key} in a form that kb does not change; use `kb config edit`"
        ) from error
    check_text(layers, env, file, after)
    write_text(file, after, before=before)
    report = list_settings(layers, env)
    row = next((row for row in report.settings if row.key == key), None)
    row = row or SettingRow(key=key, value=None, layer="default", place=None, secret=False)
    return SetResult(
        file=str(file), is_set=value is not None, setting=row, warnings=report.warnings
    )


def _is_of_home(key: str) -> bool:
    return key.partition(".")[0] in HOME_SECTIONS and key in setting_names()


def _changed_in_home(
    layers: SettingsLayers, env: Mapping[str, str], key: str, value: str
) -> SetResult:
    """Write a setting into the database of the home; empty takes it out."""
    from kb.home.shared_settings import put_setting

    address = HomePaths(layers.home).database
    if address is None:
        raise UsageError(f"{key} is for homes in a database; this one keeps content in its folder")
    put_setting(address, key.partition(".")[2], value)
    report = list_settings(layers, env)
    row = next(row for row in report.settings if row.key == key)
    return SetResult(file=address.shown, is_set=bool(value), setting=row, warnings=report.warnings)


def _is_allowed(key: str, value: Any) -> bool:
    from kb.model.config.load import check_setting

    try:
        check_setting(key, value)
    except UsageError:
        return False
    return True


def _sets(file: Path, key: str) -> bool:
    import tomllib

    from kb.model.config.edit import value_at

    try:
        table = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError:
        return False
    return value_at(table, tuple(key.split("."))) is not None


def _load_arguments(layers: SettingsLayers) -> dict[str, Any]:
    return {
        "files": layers.files,
        "overrides": layers.overrides,
        "load_path": layers.load_path,
        "project": layers.project,
    }


def _file(layers: SettingsLayers, path: Path) -> SettingsFile:
    is_there = path.is_file()
    project = layers.project if layers.project and layers.project.has(path) else None
    trusted = not is_there or project is None or project.accepts(path.read_bytes())
    return SettingsFile(path=str(path), exists=is_there, trusted=trusted)


def _from_surroundings(layers: SettingsLayers, env: Mapping[str, str]) -> dict[str, SettingPlace]:
    """Settings that a variable or an option of its own stands in for."""
    places = {
        key: SettingPlace(layer="environment", place=name)
        for key, name in _VARIABLES
        if env.get(name)
    }
    if layers.server is not None:
        places["client.server"] = SettingPlace(layer="option", place="--server")
    return places


def _rows(
    settings: Settings,
    places: Mapping[str, SettingPlace],
    layers: SettingsLayers,
    env: Mapping[str, str],
) -> Iterator[SettingRow]:
    sections: dict[str, dict[str, Any]] = msgspec.to_builtins(settings)
    topics = sections.pop("kb")["topic"]
    server = env.get("KB_SERVER", "") if layers.server is None else layers.server
    sections["client"]["server"] = server or sections["client"]["server"]
    sections["client"]["token"] = env.get("KB_TOKEN") or sections["client"]["token"]
    for section, values in sections.items():
        for name, value in values.items():
            yield _row(f"{section}.{name}", value, places)
    for topic, values in topics.items():
        for name, value in values.items():
            if (key := f"kb.topic.{topic}.{name}") in places:
                yield _row(key, value, places)


def _row(key: str, value: Any, places: Mapping[str, SettingPlace]) -> SettingRow:
    place = places.get(key)
    is_secret = key in _SECRETS
    shown = without_password(value) if isinstance(value, str) else value
    return SettingRow(
        key=key,
        value=None if is_secret else shown,
        layer=place.layer if place else "default",
        place=place.place if place else None,
        secret=is_secret,
    )
