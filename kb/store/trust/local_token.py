"""The local user's access token: created once, and accepted by every server of that user.

It is stored in the user's data folder, outside of homes and backups, readable only by the user. A
server also holds a lock there for the address that it listens at. So a command never sends the
token to another user's program that has taken the server's port.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kb.errors import ReadOnlyHome
from kb.model.config.places import user_folder

_FOLDER: Final = "kb-server"
_FILE: Final = "token"
_PREFIX: Final = "kb_own_"
_BYTES: Final = 32
_BYTES_MAX: Final = 200


class LocalToken:
    """One user's token, and the addresses at which that user's servers listen."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self) -> str | None:
        """The token; None if there is none, or if others can read or write it."""
        try:
            descriptor = os.open(self.root / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            is_own = status.st_uid == os.geteuid() and not status.st_mode & 0o077
            text = file.read(_BYTES_MAX).decode("ascii", "replace").strip() if is_own else ""
        return text if text.startswith(_PREFIX) and text.isascii() else None

    def read_or_create(self) -> str:
        """The token, created if there is none. Raises ReadOnlyHome."""
        token = self.read()
        if token is not None:
            return token
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.root.chmod(0o700)
            fresh = self.root / f".{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(fresh, flags, 0o600), "w", encoding="ascii") as file:
                file.write(f"{_PREFIX}{secrets.token_urlsafe(_BYTES)}\n")
                file.flush()
                os.fsync(file.fileno())
            self._place(fresh)
        except OSError as error:
            raise ReadOnlyHome(error.strerror or "", place=self.root) from error
        token = self.read()
        if token is None:
            raise ReadOnlyHome(
                "other users can read its token file; remove that file", place=self.root
            )
        return token

    def _place(self, fresh: Path) -> None:
        """Give the finished file its name, unless another process was first."""
        place = self.root / _FILE
        try:
            with contextlib.suppress(FileExistsError):
                os.link(fresh, place)
        except OSError:
            # Without hard links, two processes that create the token at once may briefly differ.
            fresh.replace(place)
        finally:
            fresh.unlink(missing_ok=True)

    @contextlib.contextmanager
    def listening(self, host: str, port: int) -> Iterator[None]:
        """Record, while the block runs, that a server of this user listens at an address."""
        with contextlib.ExitStack() as cleanup:
            with contextlib.suppress(OSError):
                descriptor = os.open(self._lock(host, port), _LOCK_FLAGS, 0o600)
                cleanup.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield

    def is_served(self, host: str, port: int) -> bool:
        """Whether a server of this user listens at an address now."""
        try:
            descriptor = os.open(self._lock(host, port), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False

    def _lock(self, host: str, port: int) -> Path:
        return self.root / f"{host.replace(':', '_')}-{port}.lock"


_LOCK_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def local_token() -> LocalToken:
    """This user's token; a user without a data folder has none and can create none."""
    data = user_folder("data")
    return LocalToken(data.with_name(_FOLDER) if data.is_absolute() else Path(os.devnull))
