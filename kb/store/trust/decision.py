"""Decides whether a home is trusted, before its store is opened and its settings are read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kb.store.content.layout import PROJECT_FOLDER, HomePaths, is_project_home
from kb.store.trust.folder import escaping_link, inner_link, ownership_problem
from kb.store.trust.trusted_homes import TrustList


class TrustDecision(Struct, frozen=True, kw_only=True):
    """What may be used of a home; `why` tells why the rest may not."""

    folder: bool = True
    """Its settings and texts may be read."""
    store: bool = True
    """Its store may be opened, or created if missing."""
    why: str = ""
    can_be_trusted: bool = False
    """Whether `kb trust` would allow the rest."""


def decide_trust(home: Path, trusted: TrustList, own_space: Path | None) -> TrustDecision:
    """Decide what may be used of a home; opens no file.

    `own_space` is the user's own space, which is trusted unless others may write to it. Raises
    OSError if the home's folder may not be read.
    """
    problem = escaping_link(home)
    if problem is not None:
        return TrustDecision(folder=False, store=False, why=problem)
    problem = ownership_problem(home)
    if problem is not None and not trusted.has_folder(home):
        return TrustDecision(
            folder=False, store=False, why=f"{problem}; {_trust_hint(home)}", can_be_trusted=True
        )
    if HomePaths(home).database is not None:
        # Its folder is one that this user's kb made; the database has logins of its own.
        return TrustDecision()
    if not HomePaths(home).has_store:
        foreign = _foreign_content(home)
        # Check again: another process may have made the store meanwhile.
        if not HomePaths(home).has_store:
            return TrustDecision(store=not foreign, why=foreign)
    if (own_space is not None and _is_same(home, own_space)) or _is_store_listed(home, trusted):
        return TrustDecision()
    why = f"this user's kb did not make the store in {home}, so it is not opened"
    return TrustDecision(store=False, why=f"{why}; {_trust_hint(home)}", can_be_trusted=True)


def _is_store_listed(home: Path, trusted: TrustList) -> bool:
    if trusted.has_store(home):
        return True
    if trusted.is_begun(home):
        # The process that made the store was killed before it listed it, or is about to list it.
        trusted.put_store(home, "made")
        trusted.end(home)
    # Check again: another process may have listed the store just now.
    return trusted.has_store(home)


@contextmanager
def trusting_new_store(home: Path, trusted: TrustList) -> Iterator[None]:
    """List a home whose store the block creates. Raises ReadOnlyHome before the block runs."""
    if HomePaths(home).has_store or HomePaths(home).database is not None:
        yield
        return
    with trusting_replaced_store(home, trusted):
        yield


@contextmanager
def trusting_replaced_store(home: Path, trusted: TrustList) -> Iterator[None]:
    """As `making`, where the block puts another store in the place of one that counts."""
    trusted.begin(home)
    try:
        yield
        trusted.put_store(home, "made")
    finally:
        trusted.end(home)


def _foreign_content(home: Path) -> str:
    """Why a project without a store holds data that this kb did not write; empty if it does not."""
    if not is_project_home(home):
        return ""
    problem = inner_link(home)
    if problem is not None:
        return problem
    index = HomePaths(home).index
    try:
        has_files = any(any(place.iterdir()) for place in index.iterdir() if place.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return ""
    # A home that lost its store is rejected elsewhere, with its own message.
    if not has_files or HomePaths(home).leftover_folders():
        return ""
    return f"{index} came with the folder but without its store; remove it"


def _trust_hint(home: Path) -> str:
    place = home.parent if home.name == PROJECT_FOLDER else home
    return f"`kb trust {place}` makes it count, once you have made sure whose it is"


def _is_same(left: Path, right: Path) -> bool:
    return os.path.realpath(left) == os.path.realpath(right)
