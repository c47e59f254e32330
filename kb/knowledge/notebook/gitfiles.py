"""Files inside `.git`: objects, locks and refs, each written whole or not at all.

Git's lock files stay behind when their holder dies, and then block everybody. kb's locks are hard
links to a file in `.git/kb/`: the next kb process recognises a stale one by its inode and removes
it. It never removes locks of other programs.
"""

import os
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from kb.errors import StoreBusy

if TYPE_CHECKING:
    from dulwich.objects import ShaFile

_OWN: Final = "kb"
_POLL_S: Final = 0.02
_LOCK: Final = ".lock"


class GitFolder:
    """One `.git` folder. The caller holds the notebook's own lock while anything is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own = path / _OWN

    @property
    def intent(self) -> Path:
        """The file that names the commit to which the work tree is being brought."""
        return self.own / "intent"

    def write_objects(self, objects: "Iterable[ShaFile]") -> None:
        """Write objects durably, each into a file of its own; existing ones stay."""
        folders: set[Path] = set()
        for obj in objects:
            name = obj.id.decode("ascii")
            target = self.path / "objects" / name[:2] / name[2:]
            if target.exists():
                continue
            target.parent.mkdir(exist_ok=True)
            # git ignores files of this name, and removes old ones.
            temporary = target.parent / f"tmp_obj_kb{os.getpid()}"
            write_synced(temporary, obj.as_legacy_object(), 0o444)
            os.rename(temporary, target)
            folders |= {target.parent, target.parent.parent}
        for folder in folders:
            sync_folder(folder)

    @contextmanager
    def locked(self, name: str, deadline: float) -> Iterator[Path]:
        """Hold git's lock of `.git/<name>`; yields the empty lock file, to fill and rename.

        Raises StoreBusy if another program holds it until `deadline` (monotonic seconds).
        """
        target = self.path / name
        lock = target.with_name(target.name + _LOCK)
        own = self.own / urllib.parse.quote(name, safe="")
        self.own.mkdir(mode=0o700, exist_ok=True)
        own.unlink(missing_ok=True)
        os.close(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            _link(own, lock, deadline)
            yield lock
        finally:
            _let_go(own, lock)

    def wait_until_free(self, name: str, deadline: float) -> None:
        """Wait while another program holds the lock of `.git/<name>`. Raises StoreBusy."""
        lock = self.path / f"{name}{_LOCK}"
        while os.path.lexists(lock):
            _pause(lock, deadline)

    def free_stale_locks(self) -> None:
        """Remove the locks of kb processes that were killed, and no others."""
        if not self.own.is_dir():
            return
        for own in list(self.own.iterdir()):
            name = PurePosixPath(urllib.parse.unquote(own.name))
            is_inside = not name.is_absolute() and ".." not in name.parts
            if own != self.intent and is_inside and not own.is_dir():
                target = self.path / name
                _let_go(own, target.with_name(target.name + _LOCK))

    def temporary(self) -> Path:
        """A name for an unfinished file; the next kb process removes one that is left behind."""
        return self.own / "new"


def _link(own: Path, lock: Path, deadline: float) -> None:
    while True:
        try:
            os.link(own, lock)
            return
        except FileExistsError:
            _pause(lock, deadline)


def _pause(lock: Path, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise StoreBusy(place=lock)
    time.sleep(min(_POLL_S, left))


def _let_go(own: Path, lock: Path) -> None:
    with suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(own), os.lstat(lock)):
            os.unlink(lock)
    own.unlink(missing_ok=True)


def write_synced(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write these bytes to a file, durably, in place of its content."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def fill(lock: Path, data: bytes) -> None:
    """Write the content that our lock file will have after its rename, durably."""
    with open(lock, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_git_folder(root: Path, branch: str) -> None:
    """Make `.git` in a folder, whole or not at all; removes the rest of an earlier attempt."""
    import shutil

    staging = root / STAGING
    shutil.rmtree(staging, ignore_errors=True)
    with suppress(FileNotFoundError):
        # A link leads elsewhere.
        os.unlink(staging)
    for inner in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (staging / inner).mkdir(parents=True)
    config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    files = {
        "HEAD": f"ref: refs/heads/{branch}\n",
        "config": config,
        "description": "kb notebook\n",
    }
    for name, text in files.items():
        write_synced(staging / name, text.encode())
    os.rename(staging, root / ".git")
    sync_folder(root)


STAGING: Final = ".git.kb-new"
