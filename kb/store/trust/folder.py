"""Checks of a home's folder, before anything in it is read: links, owner, permissions."""

import os
import stat
from pathlib import Path
from typing import Final

from kb.store.content.layout import is_project_home

# The fixed names under which kb reads or writes in a home.
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
    """A message about a link that leads out of a project's home; None if there is none."""
    if not is_project_home(home):
        return None
    if home.is_symlink():
        return f"{home} is a link; give --home the folder that it leads to"
    for name in _NAMES:
        place = home / name
        if place.is_symlink() and not Path(os.path.realpath(place)).is_relative_to(
            os.path.realpath(home)
        ):
            return f"{place} is a link that leads out of the project; remove it"
    return None


def inner_link(home: Path) -> str | None:
    """A message about a link in a folder that only kb fills; None if there is none.

    kb makes no links there, and would write through one. This walks every folder, so use it only
    for homes without a store.
    """
    for name in _FILLED_BY_KB:
        for folder, folders, files in os.walk(home / name):
            for inner in (*folders, *files):
                place = Path(folder) / inner
                if place.is_symlink():
                    return f"{place} is a link that kb did not make; remove it"
    return None


def ownership_problem(home: Path) -> str | None:
    """A message if others own or may write a home; None if only this user may, or it is missing."""
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
            return f"other users may write to {home / name}"
    return None


def _is_private(gid: int) -> bool:
    """Whether a group is this user's private group, which many systems create."""
    import grp
    import pwd

    try:
        me = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == me.pw_gid and group.gr_name == me.pw_name and set(group.gr_mem) <= {me.pw_name}
