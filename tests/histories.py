"""What people do with their files and their home.

A history is a list of operations. `histories_disk` does those that concern files;
`histories_library` knows what the home must hold after each, and judges what it shows. Neither
knows how a home is asked, so that any driver can use them.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, structs

from kb.model.doc import Visibility

FOLDERS: Final = ("a", "b", "a/sub")
NAMES: Final = ("one.md", "two.md", "One.md")
# Fewer than the fuse of a sync cares about.
PLACES: Final = tuple(f"{folder}/{name}" for folder in FOLDERS for name in NAMES)
PACK: Final = "pack"
PACKED: Final = ("pack/one.md", "pack/two.md")
PACK_TITLE: Final = "Packed"
MINUTE_MS: Final = 60_000
DAY_MS: Final = 86_400_000
YEAR_MS: Final = 365 * DAY_MS

# The operations. Those on files:


class Write(Struct, frozen=True):
    """A file gets a new text; an empty heading leaves the title to its name."""

    place: str
    heading: str


class Copy(Struct, frozen=True):
    """A file gets the text of another one."""

    place: str
    to: str


class Rename(Struct, frozen=True):
    """A file gets another name, perhaps that of another file."""

    place: str
    to: str


class Swap(Struct, frozen=True):
    """Two files take each other's name."""

    place: str
    to: str


class RenameFolder(Struct, frozen=True):
    """All files of a folder go to another one, over what is there."""

    folder: str
    to: str


class Delete(Struct, frozen=True):
    """A file goes."""

    place: str


class BringBack(Struct, frozen=True):
    """A file says again what it said before it was deleted or written over."""

    place: str


# Those on the home:


class Add(Struct, frozen=True):
    """`kb add FILE`."""

    place: str
    visibility: Visibility | None = None
    wait: bool = True


class AddAll(Struct, frozen=True):
    """`kb add -r FOLDER`."""

    folder: str
    visibility: Visibility | None = None
    wait: bool = True


class Forget(Struct, frozen=True):
    """`kb sources --rm FOLDER`."""

    folder: str


class Remove(Struct, frozen=True):
    """`kb rm ID`."""

    place: str


class Show(Struct, frozen=True):
    """`kb visibility ID V`."""

    place: str
    visibility: Visibility


class Sync(Struct, frozen=True):
    """`kb sync-all --interval-min 0`."""

    accept_deletions: bool = False


class Compact(Struct, frozen=True):
    """`kb compact --grace-min N`."""

    grace_min: int


class Tick(Struct, frozen=True):
    """The clock goes on, or back."""

    ms: int


class Month(Struct, frozen=True):
    """A month goes by, under cron: see `parts`."""


class Work(Struct, frozen=True):
    """`kb worker --drain`."""


class Repair(Struct, frozen=True):
    """`kb check --repair`."""


class LoseIndex(Struct, frozen=True):
    """Somebody deletes `index/`."""


class BackUp(Struct, frozen=True):
    """`kb backup create`."""


class Restore(Struct, frozen=True):
    """`kb backup restore`; the restored home takes the place of the one there was."""


class MoveHome(Struct, frozen=True):
    """The home's folder gets another name."""


class ChangeModel(Struct, frozen=True):
    """`kb embedder set`."""

    model: Literal["one", "other"]


class PackAdd(Struct, frozen=True):
    """`kb pack add`."""

    visibility: Visibility | None = None


class PackRemove(Struct, frozen=True):
    """`kb pack rm`."""


OnFiles: TypeAlias = Write | Copy | Rename | Swap | RenameFolder | Delete | BringBack
OnSources: TypeAlias = Add | AddAll | Forget | Remove | Show | Sync | PackAdd | PackRemove
OnWhole: TypeAlias = (
    Compact | Tick | Month | Work | Repair | LoseIndex | BackUp | Restore | MoveHome | ChangeModel
)
OnHome: TypeAlias = OnSources | OnWhole
Op: TypeAlias = OnFiles | OnHome

AGAIN: Final = ""
"""The place of the operation before: what goes wrong does so at one place, step after step."""
_SOME: Final = (*PLACES, *[AGAIN] * (2 * len(PLACES)))
_ANY: Final = (*_SOME, *PACKED)
_SHOWN: Final[tuple[Visibility | None, ...]] = (None, None, "public", "shared")
_WAIT: Final = (True, True, True, False)
# Of what kind, how often, and with which arguments.
RULES: Final[tuple[tuple[int, Callable[..., Op], dict[str, tuple[Any, ...]]], ...]] = (
    (8, Write, {"place": _ANY, "heading": ("Same", "", "one", "Own")}),
    (3, Copy, {"place": _SOME, "to": _SOME}),
    (6, Rename, {"place": _SOME, "to": _SOME}),
    (3, Swap, {"place": _SOME, "to": _SOME}),
    (1, RenameFolder, {"folder": FOLDERS[1:], "to": FOLDERS[1:]}),
    (4, Delete, {"place": _ANY}),
    (3, BringBack, {"place": _ANY}),
    (4, Add, {"place": _SOME, "visibility": _SHOWN, "wait": _WAIT}),
    (5, AddAll, {"folder": FOLDERS, "visibility": _SHOWN, "wait": _WAIT}),
    (1, Forget, {"folder": FOLDERS}),
    (3, Remove, {"place": _ANY}),
    (2, Show, {"place": _ANY, "visibility": ("public", "shared", "private")}),
    (8, Sync, {"accept_deletions": (False, False, True)}),
    (6, Compact, {"grace_min": (0, 0, 60)}),
    (3, Tick, {"ms": (MINUTE_MS, 2 * 60 * MINUTE_MS, 31 * DAY_MS, 10 * YEAR_MS, -DAY_MS)}),
    (2, Month, {}),
    (1, Work, {}),
    (1, Repair, {}),
    (1, LoseIndex, {}),
    (1, BackUp, {}),
    (1, Restore, {}),
    (1, MoveHome, {}),
    (1, ChangeModel, {"model": ("one", "other")}),
    (1, PackAdd, {"visibility": _SHOWN}),
    (1, PackRemove, {}),
)


def parts(op: OnHome) -> tuple[OnHome, ...]:
    """What is done, one after the other."""
    if not isinstance(op, Month):
        return (op,)
    night = (Sync(), Compact(0))
    return (*night, *night, Tick(31 * DAY_MS), *night, *night)


# What comes of what was done to a file, most often at once.
THEN: Final[tuple[tuple[OnHome, ...], ...]] = (
    (),
    (Sync(),),
    (Sync(),),
    (Sync(accept_deletions=True),),
    (Sync(accept_deletions=True), Compact(0)),
)


def at(op: Op, last: str) -> tuple[Op, str]:
    """An operation with AGAIN put in, `last` being the last place; and what is the last one now."""
    said = {name: last for name in ("place", "to") if getattr(op, name, None) == AGAIN}
    op = structs.replace(op, **said)
    place = getattr(op, "place", None)
    return op, place if place in PLACES else last


def drawn(rng: random.Random) -> Iterator[Op]:
    """Operations by chance, without end."""
    last = PLACES[0]
    while True:
        _, make, fields = rng.choices(RULES, [weight for weight, _, _ in RULES])[0]
        op = make(**{name: rng.choice(values) for name, values in fields.items()})
        op, last = at(op, last)
        yield op
        if isinstance(op, OnFiles):
            yield from rng.choice(THEN)
