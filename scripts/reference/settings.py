"""The page of the settings, from the records that hold them."""

import json
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec

from kb.model.config import Settings, TopicSettings
from kb.model.config.sections import TOPIC_KEYS
from reference.markdown import flat, meanings, page, part, table, type_name

_HEAD = ("setting", "default", "what it takes", "what it does")


def pages() -> Iterator[tuple[str, str]]:
    """The one page."""
    blocks = [part("settings")]
    for name, section in get_type_hints(Settings).items():
        blocks += [f"## `[{name}]`", flat(section.__doc__), _table(section, f"{name}.")]
    blocks += [
        "## `[kb.topic.ID]`",
        f"{flat(TopicSettings.__doc__)} See [topics](../how-to/topics.md).",
        _table(TopicSettings, "", TOPIC_KEYS),
    ]
    yield "settings.md", page("Settings", *blocks)


def _table(section: type[Any], before: str, only: tuple[str, ...] | None = None) -> str:
    hints = get_type_hints(section, include_extras=True)
    defaults = msgspec.to_builtins(section())
    texts = meanings(section)
    rows = []
    for key, hint in hints.items():
        if only is None or key in only:
            default = f"`{json.dumps(defaults[key])}`"
            rows.append([f"`{before}{key}`", default, type_name(hint), texts[key]])
    return table(_HEAD, rows)
