"""Each space is asked by itself: what one cannot answer, the others still can."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from kb.errors import (
    ConfigError,
    EmbedError,
    ModelMissing,
    ReadOnlyHome,
    StoreBusy,
    StoreDamaged,
    StoreFull,
)
from kb.home.app import App
from kb.model.doc import Scope
from kb.model.search import SpaceName

T = TypeVar("T")

# What keeps one space from answering and says nothing of the others.
FAILURES: Final = (
    ConfigError,
    EmbedError,
    ModelMissing,
    OSError,
    ReadOnlyHome,
    StoreBusy,
    StoreDamaged,
    StoreFull,
)


class OpenSpace(Struct, frozen=True, kw_only=True):
    """A home by the name of its space."""

    name: SpaceName
    app: App


class FailedSpace(Struct, frozen=True, kw_only=True):
    """A space that did not answer, and why."""

    name: SpaceName
    error: Exception


def ask(
    spaces: Sequence[OpenSpace], asked: Callable[[OpenSpace], T], failed: list[FailedSpace]
) -> list[tuple[OpenSpace, T]]:
    """What each space answers, at least one; those that cannot are added to `failed`.

    Raises the first error where none can answer.
    """
    given: list[tuple[OpenSpace, T]] = []
    for space in spaces:
        try:
            given.append((space, asked(space)))
        except FAILURES as error:
            failed.append(FailedSpace(name=space.name, error=error))
    if not given:
        raise failed[0].error
    return given


def warnings_of(failed: Sequence[FailedSpace], scope: Scope) -> tuple[str, ...]:
    """A line for each space that was left out; only an operator hears of causes and places."""
    first = {one.name: one.error for one in reversed(failed)}
    if not scope.operator:
        return tuple(f"the {name} space cannot be read at the moment" for name in first)
    return tuple(
        f"the {name} space is left out: {_said(error)}; `kb --space {name} check` looks at it"
        for name, error in first.items()
    )


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
