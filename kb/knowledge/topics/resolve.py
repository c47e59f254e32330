"""From settings to topics: folders are found, and what is off is left out."""

import os
from pathlib import Path, PurePosixPath

from kb.errors import ConfigError, Refused
from kb.knowledge.topics.records import Topic
from kb.model.config import KbSettings, TopicSettings
from kb.model.doc import LOCAL_USER, Scope, audience_of
from kb.store.content.inside import resolve_inside
from kb.store.content.layout import is_kept_by_kb


def resolved(settings: KbSettings, root: Path, scope: Scope) -> tuple[Topic, ...]:
    """The topics that are enabled and that a scope may know of, in the order of the settings.

    `root` is where paths start. Raises ConfigError, with the place where it was said, for a folder
    that is not there; of a topic that the scope may not know of, nothing is looked at.
    """
    return tuple(
        _topic(name, said, root)
        for name, said in settings.topic.items()
        if said.enable and scope.reads(audience_of(said.visibility, LOCAL_USER))
    )


def _topic(name: str, said: TopicSettings, root: Path) -> Topic:
    key = f"kb.topic.{name}.subjects"
    place = said.defined_at or "the settings"
    try:
        folder = _folder(said, root)
    except RuntimeError as error:
        raise ConfigError(f"{key}: {said.subjects} names no user's folder", place=place) from error
    except Refused as error:
        detail = f"{key}: {said.subjects} is no folder of the project ({error.reason})"
        raise ConfigError(detail, place=place) from error
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
        visibility=said.visibility,
        is_strange=said.defined_by == "stranger",
    )


def _folder(said: TopicSettings, root: Path) -> Path:
    """Where subjects lie; those that a project names lie below it, links followed."""
    if said.defined_by == "user":
        return root / Path(said.subjects).expanduser()
    named = str(PurePosixPath(said.subjects))
    if named.startswith("~"):
        raise Refused("it starts from a user's folder", source=named)
    place = resolve_inside(root, named) if named != "." else Path()
    if is_kept_by_kb(place):
        raise Refused("kb keeps its own files there", source=named)
    return Path(os.path.realpath(root)) / place


def _line(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None
