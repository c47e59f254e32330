"""The socket in the home, by which its user's own programs on this machine ask the server.

File permissions are what lets somebody in, and the kernel says who it is. One server of a home has
the socket: whoever holds the lock beside it, which dies with its holder.
"""

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kb.errors import StoreBusy
from kb.store.content.lock import file_lock

logger = logging.getLogger(__name__)

# What every system has room for, the byte at the end not counted.
_PATH_BYTES_MAX: Final = 103
_BACKLOG: Final = 64

OWN: Final = "kb.own"
"""In a connection's state: it came by this socket."""


@contextlib.contextmanager
def own_socket(path: Path) -> Iterator[socket.socket | None]:
    """A socket that listens at `path` for the length of the block, for this user alone.

    None, and a warning, where none can be had; None without one where another server of the home
    has it. What a killed server left is replaced.
    """
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        logger.warning("the home's path is too long for a socket in it; kb search does without")
        yield None
        return
    with contextlib.ExitStack() as held:
        try:
            listener = held.enter_context(_bound(path, held))
        except StoreBusy:
            listener = None
        except OSError as error:
            logger.warning(
                "no socket in the home (%s); kb search does without", type(error).__name__
            )
            listener = None
        yield listener


def _bound(path: Path, held: contextlib.ExitStack) -> socket.socket:
    """Raises StoreBusy where another server has it, and OSError."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    _keep_to_owner(path.parent)
    held.enter_context(file_lock(path.with_suffix(".lock"), 0.0))
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(os.fspath(path))
        # Removed before the lock is given back, so that it is never another server's.
        held.callback(path.unlink, missing_ok=True)
        held.callback(listener.close)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _keep_to_owner(folder: Path) -> None:
    """Let nobody else into a folder. Raises OSError for a link: what it leads to is not ours."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(fd, 0o700)
    finally:
        os.close(fd)
