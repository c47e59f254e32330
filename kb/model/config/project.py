"""The limits of a project's settings: which keys are used before and after `kb trust`."""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from kb.errors import ConfigError

BYTES_MAX: Final = 1 << 20

# Keys that only affect how the project's own text is cut, ranked and listed. Keys that send, reach,
# run or remove something, or lift a limit, are not here.
_HARMLESS: Final = frozenset(
    (
        "ingest.extensions",
        "chunk.tokens_max",
        "chunk.overlap_tokens",
        "entry.tokens_max",
        "entry.overlap_tokens",
        "search.fusion",
        "search.rrf_k",
        "search.lexical_weight",
        "search.lexical_top_share",
        "search.feedback_passages",
        "search.feedback_weight",
        "search.mmr_similarity",
        "search.mmr_crowd",
        "search.entity_boost",
    )
)
# Without `learned`, which puts texts into system prompts, and without `visibility`, which could
# show the user's own files in the project's folder to others.
_HARMLESS_TOPIC_KEYS: Final = frozenset(
    ("enable", "title", "introduction", "description", "subjects", "disabled", "index")
)
_USER_ONLY: Final = frozenset(
    (
        "pack.trusted_keys",
        "notebook.token_host",
        "fetch.git_token_host",
        "embed.base_url",
        "spaces.user",
    )
)


class ProjectFiles(Struct, frozen=True, kw_only=True):
    """The settings files of a project, which come from whoever wrote the project."""

    home: Path
    """The project's `.kb`."""
    root: Path
    """The project's folder, as a real path."""
    accepts: Callable[[bytes], bool]
    """Whether the user has accepted a file with these bytes."""

    def has(self, file: Path) -> bool:
        """Whether a file belongs to the project, by its path or its real path."""
        return file.is_relative_to(self.home) or _real_path(file).is_relative_to(self.root)

    def hint(self, file: Path) -> str:
        """Why a key in a file of the project is ignored, and what changes that."""
        if _real_path(file).is_relative_to(_real_path(self.home)):
            return f"comes with the project, and counts only after `kb trust {self.home.parent}`"
        return f"lies in a project, and counts only from {self.home}/config.d after `kb trust`"

    def check_inside(self, file: Path) -> None:
        """Raise ConfigError unless a file is regular and its real path is in the project."""
        if not _real_path(file).is_relative_to(self.root):
            raise ConfigError("a link that leads out of the project", place=file)
        if not file.is_file():
            raise ConfigError("not a regular file", place=file)


def _real_path(file: Path) -> Path:
    return Path(os.path.realpath(file))


def always_allowed(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Split a project's table into the part that is always used, and the other keys."""
    allowed, left_out = _split(table, lambda key: key in _HARMLESS or key == "kb.topic")
    for name, topic in allowed.get("kb", {}).get("topic", {}).items():
        for key in sorted(topic.keys() - _HARMLESS_TOPIC_KEYS):
            left_out.append(f"kb.topic.{name}.{key}")
            del topic[key]
    return allowed, left_out


def allowed_if_accepted(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Split a project's table into the part used once accepted, and the keys never used."""
    return _split(table, lambda key: key not in _USER_ONLY)


def escaping_path(table: dict[str, Any]) -> tuple[str, ...] | None:
    """The key of a path that leads out of the project's `.kb`, or None.

    Links are not resolved here, but when the folder is opened.
    """
    path = table.get("notebook", {}).get("path", "")
    is_out = os.path.isabs(path) or path.startswith("~") or ".." in Path(path).parts
    return ("notebook", "path") if is_out else None


def restricted_values(table: dict[str, Any]) -> list[str]:
    """The settings of a project's table that are used only once accepted, as KEY = VALUE."""
    allowed, _ = allowed_if_accepted(table)
    _, left_out = always_allowed(copy.deepcopy(allowed))
    return [f"{key} = {_value(allowed, key.split('.'))!r}" for key in left_out]


def _value(table: dict[str, Any], path: list[str]) -> Any:
    value: Any = table
    for name in path:
        value = value[name]
    return value


def _split(
    table: dict[str, Any], is_allowed: Callable[[str], bool]
) -> tuple[dict[str, Any], list[str]]:
    allowed: dict[str, Any] = {}
    left_out: list[str] = []
    for section, keys in table.items():
        for key, value in keys.items():
            if is_allowed(f"{section}.{key}"):
                allowed.setdefault(section, {})[key] = value
            else:
                left_out.append(f"{section}.{key}")
    return allowed, left_out
