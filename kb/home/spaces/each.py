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
    StoreDenied,
    StoreFull,
)
from kb.home.open_home import OpenHome
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
    StoreDenied,
    StoreFull,
)


class FailedSpace(Struct, frozen=True, kw_only=True):
    """A space that did not answer, and why."""

    name: SpaceName | None
    error: Exception


def ask_each(
    homes: Sequence[OpenHome], question: Callable[[OpenHome], T], failed: list[FailedSpace]
) -> list[tuple[OpenHome, T]]:
    """What each home answers, at least one; those that cannot are added to `failed`.

    Raises the first error where none can answer.
    """
    answers: list[tuple[OpenHome, T]] = []
    for home in homes:
        try:
            answers.append((home, question(home)))
        except FAILURES as error:
            failed.append(FailedSpace(name=home.name, error=error))
    if not answers:
        raise failed[0].error
    return answers


def warnings_of(failed: Sequence[FailedSpace], scope: Scope) -> tuple[str, ...]:
    """A line for each space that was left out; only an operator hears of causes and places."""
    first = {space.name: space.error for space in reversed(failed)}
    if not scope.operator:
        return tuple(f"the {name} space cannot be read at the moment" for name in first)
    return tuple(
        f"the {name} space is left out: {_in_words(error)}; `kb --space {name} check` looks at it"
        for name, error in first.items()
    )


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def has_docs(home: OpenHome, scope: Scope) -> bool:
    """Whether a home has docs that a scope may see."""
    from kb.search.filters import readable_audiences

    with home.store.read() as txn:
        return bool(readable_audiences(txn, home.scope(scope)))


def homes_with_docs(
    homes: Sequence[OpenHome], scope: Scope, failed: list[FailedSpace]
) -> list[OpenHome]:
    """The homes that have docs for a scope; the first one where none has. Raises as `ask_each`."""
    if len(homes) == 1:
        return [*homes]
    each = ask_each(homes, lambda home: has_docs(home, scope), failed)
    return [home for home, has_any in each if has_any] or [each[0][0]]
