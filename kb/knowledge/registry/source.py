"""Reads a registry from a web server or a folder, with the same results."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from kb.errors import Refused, SourceError, TooLarge
from kb.knowledge.registry.index import INDEX, INDEX_BYTES_MAX
from kb.model.ids import sha256_hex
from kb.store.content.inside import read_inside

if TYPE_CHECKING:
    from kb.intake.sync.fetch import Fetcher


class IndexFile(Struct, frozen=True, kw_only=True):
    """The present index."""

    data: bytes | None
    """None if it has not changed."""
    cursor: str


class RegistrySource(Protocol):
    """Reads files of one registry. Methods raise SourceError's children."""

    def index(self, cursor: str, known_sha256: str | None) -> IndexFile:
        """The index, or the news that it has not changed; at most one request."""
        ...

    def file(self, path: str, bytes_max: int) -> bytes:
        """A file by its path, of at most `bytes_max` bytes."""
        ...


class WebSource:
    """A registry on a web server; several threads may use it."""

    def __init__(self, url: str, fetcher: "Fetcher") -> None:
        self._url = url
        self._fetcher = fetcher

    def index(self, cursor: str, known_sha256: str | None) -> IndexFile:
        """Send the server's last validator; without one, compare hashes."""
        from kb.intake.sync.url import PageChanged, UrlSyncer

        state = UrlSyncer(self._fetcher).check(f"{self._url}/{INDEX}", cursor, known_sha256)
        data = state.data if isinstance(state, PageChanged) else None
        return IndexFile(data=data, cursor=state.cursor)

    def file(self, path: str, bytes_max: int) -> bytes:
        """Read no further than `bytes_max`."""
        from kb.intake.sync.body import OverLimit

        url = f"{self._url}/{path}"
        try:
            return self._fetcher.get(url, bytes_max=bytes_max).data
        except OverLimit as error:
            raise _too_long(path, bytes_max) from error


class FolderSource:
    """A registry in a folder; links that lead out of it are refused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def index(self, cursor: str, known_sha256: str | None) -> IndexFile:
        """Read it, and compare hashes."""
        try:
            data = read_inside(self._folder, INDEX, INDEX_BYTES_MAX)
        except SourceError as error:
            raise type(error)(error.reason, source=str(self._folder / INDEX)) from error
        is_same = sha256_hex(data) == known_sha256
        return IndexFile(data=None if is_same else data, cursor=cursor)

    def file(self, path: str, bytes_max: int) -> bytes:
        """Read no further than `bytes_max`."""
        try:
            return read_inside(self._folder, path, bytes_max)
        except TooLarge as error:
            raise _too_long(path, bytes_max) from error


def whole_file(source: RegistrySource, path: str, size: int, sha256: str) -> bytes:
    """A file with the size and the hash in the index.

    Raises Refused if it differs, and what the source raises.
    """
    data = source.file(path, size)
    if len(data) != size or sha256_hex(data) != sha256:
        raise Refused("its content does not match the index", source=path)
    return data


def _too_long(path: str, bytes_max: int) -> Refused:
    detail = f"it is over {bytes_max:,} bytes, the size in the index or fetch.bytes_max"
    return Refused(detail, source=path)
