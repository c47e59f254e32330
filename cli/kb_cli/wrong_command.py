"""What to say of a command that kb, or a group of its commands, does not have."""

import difflib
from collections.abc import Collection
from typing import Final

import click

from kb_cli.main import COMMANDS
from kb_cli.synonyms import ALIKE, DONE_BY

_NEAR: Final = 0.6
_NEAR_ALIKE: Final = 0.8
GROUPS: Final = (
    *("backup", "config", "embedder", "note", "pack", "registry", "signals", "sources", "token"),
)
"""The commands that are groups of commands."""


def sentence_of(name: str, commands: Collection[str], others: Collection[str] = ()) -> str:
    """That kb has no such command, and what was probably meant: a command, or an other word."""
    said = f"there is no command {name!r}"
    if name in DONE_BY:
        return f"{said}; {DONE_BY[name]}"
    inner = [f"{group} {name}" for group in GROUPS if name in _commands_in(group)]
    return said + _meant([*_alike(name, commands), *inner] or _near(name, commands, others))


def sentence_in_group(name: str, group: click.Group, path: str) -> str:
    """The same of a group of commands, which is called by `path`."""
    commands = group.commands
    near = _alike(name, commands) or _near(name, commands)
    if not near and group.invoke_without_command and _alike(name, ("ls",)):
        near = [path]
    outside = [f"kb {command}" for command in _exact(name, COMMANDS)]
    return f"there is no command {name!r}" + _meant(near or outside)


def _exact(name: str, commands: Collection[str]) -> list[str]:
    return [name] if name in commands else _alike(name, commands)


def _meant(names: Collection[str]) -> str:
    said = " or ".join(map(repr, dict.fromkeys(names)))
    return f"; did you mean {said}?" if said else ""


def _alike(word: str, commands: Collection[str]) -> list[str]:
    """The commands that people call by this word."""
    return [command for words in ALIKE if word in words for command in words if command in commands]


def _near(name: str, commands: Collection[str], others: Collection[str] = ()) -> list[str]:
    """What is spelled nearly so: commands and other words, else words for commands."""
    words = (*commands, *others)
    starts = [command for command in commands if command.startswith(name)]
    near = starts or difflib.get_close_matches(name, words, n=2, cutoff=_NEAR)
    if near:
        return near
    called = {word for words in ALIKE for word in words}
    likely = difflib.get_close_matches(name, sorted(called), n=2, cutoff=_NEAR_ALIKE)
    return [command for word in likely for command in _alike(word, commands)]


def _commands_in(group: str) -> Collection[str]:
    import importlib

    commands: dict[str, object] = importlib.import_module(f"kb_cli.{group}").command.commands
    return commands
