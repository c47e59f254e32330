"""The body of a request: received within bounds of size and time, or refused."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Final

from kb.errors import StoreFull
from kb.model.config import ServeSettings
from kb.serve.http_reply import BINARY, JSON, RETRY_AFTER, Refusal
from kb.serve.http_streams import Receive
from kb.serve.shared import Places, SharedCount

_CLOSE: Final = ("connection", "close")
# So much more than is allowed is read and dropped, for a client that sends it hears no answer.
_DROPPED_SHARE: Final = 3
# Each may take the largest file's room on the disk, and its parsing that of memory.
_FILES_MAX: Final = 4
# A file takes longer than what a person wrote.
_FILE_TIMES: Final = 10
# A file that comes slower than this, counted from its first bytes, gives way to another.
_BYTES_S_MIN: Final = 16 << 10
_GRACE_S: Final = 1.0

Header = Callable[[str], str]


class _Coming:
    """A file that is being received, and when that has to end."""

    def __init__(self, wait_s: float) -> None:
        self.deadline = asyncio.timeout(wait_s)
        self.bytes = 0
        self.began_s = 0.0
        self.is_whole = False

    def gives_way(self, now_s: float) -> bool:
        """Whether others need not wait for it."""
        took_s = now_s - self.began_s
        return not self.is_whole and took_s > _GRACE_S and self.bytes < took_s * _BYTES_S_MIN


class Bodies:
    """Receives the bodies of one server's requests."""

    def __init__(
        self, settings: ServeSettings, folder: Path, taken: SharedCount | None = None
    ) -> None:
        """`folder` is where files lie while they are worked on; they have no name there.

        `taken` counts the places for files of all processes.
        """
        self._settings = settings
        self._folder = folder
        self._taken = taken or Places().of("files")
        self._files: set[_Coming] = set()

    async def json(self, header: Header, receive: Receive) -> bytes:
        """A body of JSON, not looked into. Raises Refusal for another type, size or slowness."""
        _check_type(header, JSON)
        body = bytearray()
        await self._small(receive, body)
        return bytes(body)

    async def nothing(self, header: Header, receive: Receive) -> None:
        """A body that says nothing: none, or an empty object. Raises Refusal for any other."""
        if header("content-type"):
            _check_type(header, JSON)
        body = bytearray()
        await self._small(receive, body)
        if bytes(body).strip() not in (b"", b"{}"):
            raise Refusal(422, "invalid_input", "this request takes no body")

    @contextlib.asynccontextmanager
    async def file(self, header: Header, receive: Receive) -> AsyncIterator[IO[bytes]]:
        """The bytes of a file, in a temporary one that stands at its start; the user closes it.

        It holds one of a few places from its first bytes on until the block ends. A file that
        hardly comes gives its place to another one. Raises Refusal as `json` does and where there
        is no place, and StoreFull.
        """
        _check_type(header, BINARY)
        coming = _Coming(self._settings.body_s * _FILE_TIMES)
        try:
            yield await self._file(receive, coming)
        finally:
            self._files.discard(coming)
            self._taken.set(len(self._files))

    async def _file(self, receive: Receive, coming: _Coming) -> IO[bytes]:
        try:
            with contextlib.ExitStack() as held:
                file = held.enter_context(tempfile.TemporaryFile(dir=self._folder))

                def take(part: bytes) -> None:
                    self._have_place(coming)
                    coming.bytes += len(part)
                    file.write(part)

                await self._parts(receive, take, self._settings.upload_bytes_max, coming.deadline)
                self._have_place(coming)
                coming.is_whole = True
                file.seek(0)
                held.pop_all()
        except OSError as error:
            raise StoreFull(error.strerror or "", place=self._folder) from error
        return file

    def _have_place(self, coming: _Coming) -> None:
        """Take a place, from a file that hardly comes if need be. Raises Refusal."""
        now_s = asyncio.get_running_loop().time()
        if coming in self._files:
            return
        if coming.began_s:
            raise _too_slow()
        if len(self._files) + self._taken.others >= _FILES_MAX:
            slow = next((file for file in self._files if file.gives_way(now_s)), None)
            if slow is None:
                detail = "too many uploads at once; try again"
                raise Refusal(503, "busy", detail, headers=(RETRY_AFTER, _CLOSE))
            self._files.remove(slow)
            slow.deadline.reschedule(now_s)
        coming.began_s = now_s
        self._files.add(coming)
        self._taken.set(len(self._files))

    async def _small(self, receive: Receive, body: bytearray) -> None:
        deadline = asyncio.timeout(self._settings.body_s)
        await self._parts(receive, body.extend, self._settings.body_bytes_max, deadline)

    async def _parts(
        self,
        receive: Receive,
        sink: Callable[[bytes], object],
        bytes_max: int,
        deadline: asyncio.Timeout,
    ) -> None:
        """Give `sink` all parts of a body, unless they are too many, or too late."""
        dropped_max = bytes_max + _DROPPED_SHARE * self._settings.body_bytes_max
        try:
            async with deadline:
                count = 0
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "cut_short", "the client left", headers=(_CLOSE,))
                    part = message.get("body", b"")
                    count += len(part)
                    if part and count <= bytes_max:
                        sink(part)
                    is_last = not message.get("more_body", False)
                    if count > bytes_max and (is_last or count > dropped_max):
                        raise _too_large(bytes_max, headers=(_CLOSE,))
                    if is_last:
                        return
        except TimeoutError as error:
            raise _too_slow() from error


def check_length(header: Header, bytes_max: int) -> None:
    """Raise Refusal for a body that is said to be longer, before any of it is read.

    The connection is kept: what the client sends meanwhile is dropped, so that it hears the answer.
    """
    length = header("content-length")
    if length.isdecimal() and int(length) > bytes_max:
        raise _too_large(bytes_max)


def _check_type(header: Header, media_type: str) -> None:
    media = header("content-type").partition(";")[0].strip().lower()
    if media != media_type:
        detail = f"the body must be {media_type}"
        raise Refusal(415, "unsupported_media", detail, headers=(_CLOSE,))
    if header("content-encoding"):
        detail = "the body must not be compressed"
        raise Refusal(415, "unsupported_media", detail, headers=(_CLOSE,))


def _too_large(bytes_max: int, headers: tuple[tuple[str, str], ...] = ()) -> Refusal:
    return Refusal(413, "too_large", f"the body is over {bytes_max} bytes", headers=headers)


def _too_slow() -> Refusal:
    return Refusal(408, "too_slow", "the body took too long", headers=(_CLOSE,))
