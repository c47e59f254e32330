"""What is wrong with a folder, before anything in it is read?"""

import os
import stat
from pathlib import Path
from typing import Final

from kb.store.content.layout import is_project_home

# Where kb reads or writes by a name of its own.
_NAMES: Final = (
    "store",
    "store/data.mdb",
    "store/lock.mdb",
    "raw",
    "md",
    "index",
    "index/lexical",
    "index/dense",
    "tmp",
    "run",
    "run/kb.sock",
    "run/kb.lock",
    "backups",
    "packs",
    "knowledge",
    "notebook",
    "config.d",
    "compact.lock",
    "push.lock",
)
_FILLED_BY_KB: Final = ("store", "raw", "md", "index", "tmp", "run")
_OWNER_CHECKED: Final = ("", "store", "store/data.mdb")


def escaping_link(home: Path) -> str | None:
    """What of a project's home is a link that leads out of it, in words; None where nothing is."""
    if not is_project_home(home):
        return None
    if home.is_symlink():
        return f"{home} is a link; name the home it leads to by --home"
    for name in _NAMES:
        place = home / name
        if place.is_symlink() and not Path(os.path.realpath(place)).is_relative_to(
            os.path.realpath(home)
        ):
            return f"{place} is a link that leads out of the project; remove it"
    return None


def inner_link(home: Path) -> str | None:
    """A link in a folder that kb alone fills, in words; None where there is none.

    kb makes no links there: it would write through one. Reads every folder, so this is for homes in
    which nothing has been made yet.
    """
    for name in _FILLED_BY_KB:
        for folder, folders, files in os.walk(home / name):
            for inner in (*folders, *files):
                place = Path(folder) / inner
                if place.is_symlink():
                    return f"{place} is a link, and kb makes none there; remove it"
    return None


def ownership_problem(home: Path) -> str | None:
    """Why a folder is not this user's alone, in words; None where it is, or is not there."""
    for name in _OWNER_CHECKED:
        try:
            status = os.stat(home / name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            return f"{home / name} belongs to another user"
        if status.st_mode & stat.S_IWOTH or (
            status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid)
        ):
            return f"others may write to {home / name}"
    return None


def _is_private(gid: int) -> bool:
    """Whether a group is the one that this user has alone, as many systems make it."""
    import grp
    import pwd

    try:
        me = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == me.pw_gid and group.gr_name == me.pw_name and set(group.gr_mem) <= {me.pw_name}
