"""Does a home count? Looked at before its store is opened and its settings are read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kb.store.content.layout import PROJECT_FOLDER, HomePaths, is_project_home
from kb.store.trust.folder import inner_link, link_out, look_of
from kb.store.trust.list import TrustList


class Verdict(Struct, frozen=True, kw_only=True):
    """What may be used of a home; `why` says what keeps the rest from it."""

    folder: bool = True
    """Its settings and texts may be read."""
    store: bool = True
    """Its store may be opened, or made where there is none."""
    why: str = ""
    may_count: bool = False
    """`kb trust` would let it."""


def verdict_of(home: Path, known: TrustList, mine: Path | None) -> Verdict:
    """What may be used of a home; `mine` is the user's own space, which counts unless others write.

    Costs a look at each name and opens nothing. Raises OSError where nobody may look.
    """
    said = link_out(home)
    if said is not None:
        return Verdict(folder=False, store=False, why=said)
    said = look_of(home)
    if said is not None and not known.has_folder(home):
        return Verdict(folder=False, store=False, why=f"{said}; {_ask(home)}", may_count=True)
    if not HomePaths(home).has_store:
        came = _came_along(home)
        # Looked at again: another process may have made all of it meanwhile.
        if not HomePaths(home).has_store:
            return Verdict(store=not came, why=came)
    if (mine is not None and _is_same(home, mine)) or _is_listed(home, known):
        return Verdict()
    why = f"this user's kb did not make the store in {home}, so it is not opened"
    return Verdict(store=False, why=f"{why}; {_ask(home)}", may_count=True)


def _is_listed(home: Path, known: TrustList) -> bool:
    if known.has_store(home):
        return True
    if known.is_begun(home):
        # Whoever made it was killed before it could say so, or is about to.
        known.put_store(home, "made")
        known.end(home)
    # Whoever made it may have said so just now.
    return known.has_store(home)


@contextmanager
def making(home: Path, known: TrustList) -> Iterator[None]:
    """Put a home on the list whose store the block makes. Raises ReadOnlyHome before it does."""
    if HomePaths(home).has_store:
        yield
        return
    with replacing(home, known):
        yield


@contextmanager
def replacing(home: Path, known: TrustList) -> Iterator[None]:
    """As `making`, where the block puts another store in the place of one that counts."""
    known.begin(home)
    try:
        yield
        known.put_store(home, "made")
    finally:
        known.end(home)


def _came_along(home: Path) -> str:
    """What lies in a project without a store, and is not of this kb's making; empty for nothing."""
    if not is_project_home(home):
        return ""
    said = inner_link(home)
    if said is not None:
        return said
    index = HomePaths(home).index
    try:
        strange = any(any(place.iterdir()) for place in index.iterdir() if place.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return ""
    # A home that has lost its store is refused as such.
    if not strange or HomePaths(home).left_over():
        return ""
    return f"{index} came with the folder, without the store that it is of; remove it"


def _ask(home: Path) -> str:
    place = home.parent if home.name == PROJECT_FOLDER else home
    return f"`kb trust {place}` lets it count, once you have made sure whose it is"


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
