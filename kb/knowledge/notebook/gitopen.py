"""Opens `.git` safely, because a stranger may have made it: nothing in it may lead elsewhere.

Of git's settings only these count: the committer, the address of `origin`, and settings that kb
refuses. No file is included. No part that kb reads or writes may be a link, a pipe or a device, and
no objects may come from another repository.
"""

import os
import stat
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kb.errors import NotebookUnfit

if TYPE_CHECKING:
    from dulwich.config import ConfigFile
    from dulwich.objects import ShaFile
    from dulwich.repo import Repo

OBJECT_BYTES_MAX: Final = 512 << 20
_CONFIG_BYTES_MAX: Final = 1 << 20
# The files that kb reads in `.git`; it does not look at hooks, logs and the like.
_FILES: Final = ("HEAD", "config", "index", "packed-refs", "shallow")
_FOLDERS: Final = ("objects", "refs", "info", "kb")
_ELSEWHERE: Final = {
    "commondir": "its refs and objects lie in another folder (commondir)",
    "objects/info/alternates": (
        "it takes objects from another repository (objects/info/alternates); "
        "`git repack -a -d`, then remove that file"
    ),
}
# The settings that count, by section; the others have no effect.
_COUNT: Final = {
    b"core": (b"repositoryformatversion", b"bare", b"worktree"),
    b"user": (b"name", b"email"),
    b"remote": (b"url", b"pushurl"),
    b"url": (b"insteadof", b"pushinsteadof"),
}


def check_bounds(git: Path, root: Path) -> None:
    """Raise NotebookUnfit if a part of `.git` leads elsewhere or is not a regular file."""
    if git.is_symlink() or not git.is_dir():
        raise NotebookUnfit("its .git is not a folder of its own", place=root)
    for name, why in _ELSEWHERE.items():
        if os.path.lexists(git / name):
            raise NotebookUnfit(why, place=root)
    odd = next(_odd(git), None)
    if odd is not None:
        detail = f"{odd} in its .git is a link, or neither a file nor a folder"
        raise NotebookUnfit(detail, place=root)


def _odd(git: Path) -> Iterator[str]:
    """The name in `.git` of a part that is not as it should be.

    Of loose objects only the folders are checked.
    """
    for name in _FILES:
        if not _is_plain(git / name, stat.S_ISREG):
            yield name
    pending = [name for name in _FOLDERS if os.path.lexists(git / name)]
    yield from (name for name in pending if not _is_plain(git / name, stat.S_ISDIR))
    while pending:
        folder = pending.pop()
        # There are too many objects to check here; each is checked when it is read.
        is_objects = folder == "objects"
        with os.scandir(git / folder) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    is_loose = is_objects and len(entry.name) == 2
                    pending += [] if is_loose else [name]
                elif entry.is_symlink() or not entry.is_file():
                    yield name


def _is_plain(path: Path, is_kind: Callable[[int], bool]) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return True
    return is_kind(mode)


def settings_of(git: Path, root: Path) -> "ConfigFile":
    """The settings of a repository that count. Raises NotebookUnfit, or ValueError if not valid."""
    from dulwich.config import ConfigFile

    config = ConfigFile.from_file(
        BytesIO(_bounded(git / "config", root, _CONFIG_BYTES_MAX)), expand_includes=False
    )
    settings = ConfigFile()
    for section in config.sections():
        names = _COUNT.get(section[0].lower(), ())
        for name, value in config.items(section):
            if section[0].lower() == b"extensions" or name.lower() in names:
                settings.add(section, name, value)
    # Caches beside the objects, which may contradict them.
    for name in (b"commitGraph", b"multiPackIndex"):
        settings.set((b"core",), name, b"false")
    return settings


def _bounded(path: Path, root: Path, bytes_max: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    with os.fdopen(fd, "rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise NotebookUnfit(f"its .git/{path.name} is over {bytes_max:,} bytes", place=root)
    return data


def opened(root: Path) -> "Repo":
    """The repository of a folder. Raises NotebookUnfit, and the library's errors."""
    from dulwich.config import ConfigFile
    from dulwich.object_store import DiskObjectStore
    from dulwich.objects import ObjectID, ShaFile
    from dulwich.repo import Repo

    git = root / ".git"
    check_bounds(git, root)
    settings = settings_of(git, root)

    class Objects(DiskObjectStore):
        """Reads loose objects, but only from regular files."""

        def _get_loose_object(self, sha: ObjectID) -> ShaFile | None:
            name = sha.decode("ascii") if len(sha) == 40 else sha.hex()
            return loose_object(git, name)

    class Bounded(Repo):
        """A repository in which only some settings count."""

        def get_config(self) -> ConfigFile:
            return settings

    return Bounded(os.fspath(root), object_store=Objects.from_config(git / "objects", settings))


def loose_object(git: Path, name: str) -> "ShaFile | None":
    """A loose object by its id in hexadecimal; None if there is no such regular file."""
    from dulwich.objects import ObjectID, ShaFile

    path = git / "objects" / name[:2] / name[2:]
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("a loose object is not a regular file")
        if status.st_size > OBJECT_BYTES_MAX:
            raise ValueError("a loose object is too large")
        return ShaFile.from_file(file, ObjectID(name.encode()), max_size=OBJECT_BYTES_MAX)
