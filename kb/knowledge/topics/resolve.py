"""Turns settings into topics: resolves their folders, and leaves out disabled ones."""

import os
from pathlib import Path, PurePosixPath

from kb.errors import ConfigError, Refused
from kb.knowledge.topics.records import Topic
from kb.model.config import KbSettings, TopicSettings
from kb.model.doc import LOCAL_USER, Scope, audience_of
from kb.store.content.inside import resolve_inside
from kb.store.content.layout import is_kept_by_kb


def resolved(
    settings: KbSettings, root: Path, scope: Scope, *, owner: str = LOCAL_USER
) -> tuple[Topic, ...]:
    """The enabled topics that a scope may know of, in the order of the settings.

    Paths are relative to `root`. Raises ConfigError, with the place of the setting, if a folder
    does not exist. Folders of topics that the scope may not know of are not read.
    """
    return tuple(
        _topic(name, topic, root)
        for name, topic in settings.topic.items()
        if topic.enable and scope.reads(audience_of(topic.visibility, owner))
    )


def _topic(name: str, settings: TopicSettings, root: Path) -> Topic:
    key = f"kb.topic.{name}.subjects"
    place = settings.defined_at or "the settings"
    try:
        folder = _folder(settings, root)
    except RuntimeError as error:
        raise ConfigError(
            f"{key}: {settings.subjects} names no user's folder", place=place
        ) from error
    except Refused as error:
        detail = f"{key}: {settings.subjects} is not a folder of the project ({error.reason})"
        raise ConfigError(detail, place=place) from error
    if not os.path.isdir(folder):
        raise ConfigError(f"{key}: there is no folder {folder}", place=place)
    return Topic(
        id=name,
        folder=folder,
        title=_line(settings.title),
        introduction=_line(settings.introduction),
        description=settings.description,
        learned=settings.learned,
        disabled=settings.disabled,
        index=settings.index,
        visibility=settings.visibility,
        is_strange=settings.defined_by == "stranger",
    )


def _folder(settings: TopicSettings, root: Path) -> Path:
    """The folder of the subjects; that of a project must be inside it, links followed."""
    if settings.defined_by == "user":
        return root / Path(settings.subjects).expanduser()
    named = str(PurePosixPath(settings.subjects))
    if named.startswith("~"):
        raise Refused("it starts from a user's folder", source=named)
    place = resolve_inside(root, named) if named != "." else Path()
    if is_kept_by_kb(place):
        raise Refused("kb keeps its own files there", source=named)
    return Path(os.path.realpath(root)) / place


def _line(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None
