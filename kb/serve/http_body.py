"""The body of a request: received within bounds of size and time, or refused."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Final

from kb.config import ServeSettings
from kb.errors import StoreFull
from kb.serve.http_reply import BINARY, JSON, RETRY_AFTER, Refusal
from kb.serve.http_streams import Receive

_CLOSE: Final = ("connection", "close")
# So much more than is allowed is read and dropped, for a client that sends it hears no answer.
_DROPPED_SHARE: Final = 3
# Each may take the largest file's room on the disk, and its parsing that of memory.
_FILES_MAX: Final = 4
# A file takes longer than what a person wrote.
_FILE_TIMES: Final = 10

Header = Callable[[str], str]


class Bodies:
    """Receives the bodies of one server's requests."""

    def __init__(self, said: ServeSettings, folder: Path) -> None:
        """`folder` is where files lie while they are worked on; they have no name there."""
        self._said = said
        self._folder = folder
        self._files = 0

    async def json(self, header: Header, receive: Receive) -> bytes:
        """A body of JSON, not looked into. Raises Refusal for another type, size or slowness."""
        _check_type(header, JSON)
        body = bytearray()
        await self._receive(header, receive, body.extend, self._said.body_bytes_max)
        return bytes(body)

    async def nothing(self, header: Header, receive: Receive) -> None:
        """A body that says nothing: none, or an empty object. Raises Refusal for any other."""
        if header("content-type"):
            _check_type(header, JSON)
        body = bytearray()
        await self._receive(header, receive, body.extend, self._said.body_bytes_max)
        if bytes(body).strip() not in (b"", b"{}"):
            raise Refusal(422, "invalid_input", "nothing is said in the body of this")

    @contextlib.asynccontextmanager
    async def file(self, header: Header, receive: Receive) -> AsyncIterator[IO[bytes]]:
        """The bytes of a file, in a temporary one that stands at its start; the user closes it.

        It holds one of a few places until the block ends. Raises Refusal as `json` does and where
        there is no place, and StoreFull.
        """
        _check_type(header, BINARY)
        if self._files >= _FILES_MAX:
            detail = "too many files are handed in at once; try again"
            raise Refusal(503, "busy", detail, headers=(RETRY_AFTER, _CLOSE))
        self._files += 1
        try:
            yield await self._file(header, receive)
        finally:
            self._files -= 1

    async def _file(self, header: Header, receive: Receive) -> IO[bytes]:
        try:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  handed on
            await self._receive(
                header, receive, file.write, self._said.upload_bytes_max, times=_FILE_TIMES
            )
            file.seek(0)
        except OSError as error:
            raise StoreFull(error.strerror or "", place=self._folder) from error
        return file

    async def _receive(
        self,
        header: Header,
        receive: Receive,
        sink: Callable[[bytes], object],
        bytes_max: int,
        times: int = 1,
    ) -> None:
        """Give `sink` all parts of a body, unless they are too many, or too late."""
        dropped_max = bytes_max + _DROPPED_SHARE * self._said.body_bytes_max
        if header("expect") and int(header("content-length") or 0) > bytes_max:
            # Whoever asks first has sent nothing yet, and hears it.
            raise _too_large(bytes_max)
        try:
            async with asyncio.timeout(self._said.body_s * times):
                count = 0
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "cut_short", "the client left", headers=(_CLOSE,))
                    part = message.get("body", b"")
                    count += len(part)
                    if count <= bytes_max:
                        sink(part)
                    is_last = not message.get("more_body", False)
                    if count > bytes_max and (is_last or count > dropped_max):
                        raise _too_large(bytes_max)
                    if is_last:
                        return
        except TimeoutError as error:
            raise Refusal(408, "too_slow", "the body took too long", headers=(_CLOSE,)) from error


def _check_type(header: Header, wanted: str) -> None:
    media = header("content-type").partition(";")[0].strip().lower()
    if media != wanted:
        detail = f"the body must be {wanted}"
        raise Refusal(415, "unsupported_media", detail, headers=(_CLOSE,))
    if header("content-encoding"):
        detail = "the body must not be packed"
        raise Refusal(415, "unsupported_media", detail, headers=(_CLOSE,))


def _too_large(bytes_max: int) -> Refusal:
    detail = f"the body is over {bytes_max} bytes"
    return Refusal(413, "too_large", detail, headers=(_CLOSE,))
