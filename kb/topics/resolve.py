"""From settings to topics: folders are found, and what is off is left out."""

import os
from pathlib import Path

from kb.config import KbSettings, TopicSettings
from kb.errors import ConfigError
from kb.topics.records import Topic


def resolved(settings: KbSettings, root: Path) -> tuple[Topic, ...]:
    """The topics that are enabled, in the order of the settings; `root` is where paths start.

    Raises ConfigError, with the place where it was said, for a folder that is not there.
    """
    return tuple(_topic(name, said, root) for name, said in settings.topic.items() if said.enable)


def _topic(name: str, said: TopicSettings, root: Path) -> Topic:
    key = f"kb.topic.{name}.subjects"
    place = said.said_at or "the settings"
    try:
        folder = root / Path(said.subjects).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{key}: {said.subjects} names no user's folder", place=place) from error
    if not os.path.isdir(folder):
        raise ConfigError(f"{key}: there is no folder {folder}", place=place)
    return Topic(
        id=name,
        folder=folder,
        title=_line(said.title),
        introduction=_line(said.introduction),
        description=said.description,
        learned=said.learned,
        disabled=said.disabled,
        index=said.index,
    )


def _line(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None
