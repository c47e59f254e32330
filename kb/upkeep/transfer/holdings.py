"""What a home holds at one moment: its records, the content of its docs, and its own files."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from kb.errors import SourceError, StoreDamaged, Unreadable
from kb.model.ids import sha256_hex
from kb.store import home_files
from kb.store.bucket.bucket import Bucket
from kb.store.bucket.place import place_of
from kb.store.content.inside import read_inside
from kb.store.content.layout import HomePaths
from kb.store.keys import lsid_key
from kb.store.kv import TABLES, ReadTxn, prefix_stop
from kb.store.records import CONTENT, DOCS, HOME_FILE_PARTS, HOME_FILES, HomeFile
from kb.store.store import Store
from kb.upkeep.transfer.reading import extra_files, open_regular, pieces_of

_FILES_TABLES: Final = frozenset((CONTENT.name, HOME_FILES.name, HOME_FILE_PARTS.name))
TABLES_OF_RECORDS: Final = tuple(name for name in TABLES if name not in _FILES_TABLES)
"""The tables that every home has, wherever its content lies."""
_BATCH_PATHS_MAX: Final = 64
_BATCH_BYTES: Final = 8 << 20
_CONTENT_BYTES_MAX: Final = 4 << 30
_PARTS_MAX: Final = 1 << 20


class ContentBytes(Struct, frozen=True):
    """The bytes of a content path of a doc."""

    path: str
    data: bytes


class WantedContent(Struct, frozen=True):
    """A content path that a doc names, and the hash of its bytes."""

    path: str
    sha256: str


class Holdings(Protocol):
    """What a home holds at one moment. What cannot be read is told to `amiss`, and left out."""

    @property
    def txn(self) -> ReadTxn:
        """The view of its records."""
        ...

    @property
    def active_docs(self) -> int:
        """How many docs are active; known once the contents are read."""
        ...

    def contents(self, amiss: Callable[[str], None]) -> Iterator[list[ContentBytes]]:
        """The content of all docs, in batches of some megabytes; a path may come again."""
        ...

    def files(self, amiss: Callable[[str], None]) -> Iterator[tuple[HomeFile, Iterable[bytes]]]:
        """Its own files and symbolic links; the bytes of one are to be read before the next."""
        ...


def holdings_of(store: Store, txn: ReadTxn, paths: HomePaths) -> Holdings:
    """What a home holds as a transaction of its store sees it.

    Of a home in a folder the caller holds `compact.lock`, so that no content goes meanwhile.
    """
    return DatabaseHoldings(txn) if store.is_shared else FolderHoldings(txn, paths)


class _RecordedHoldings:
    def __init__(self, txn: ReadTxn) -> None:
        self.txn = txn
        self.active_docs = 0

    def _wanted(self, amiss: Callable[[str], None]) -> Iterator[list[WantedContent]]:
        """The content that docs name, in batches of about 8 MB."""
        batch: dict[str, WantedContent] = {}
        size_bytes = 0
        for key, stored in self.txn.scan(DOCS.name):
            try:
                doc = DOCS.decode(key, stored)
            except StoreDamaged:
                amiss(f"docs/{key.decode('ascii', 'replace')}: cannot be read")
                continue
            self.active_docs += doc.status == "active"
            pairs = [(doc.raw_path, doc.raw_sha256)] if doc.raw_path else []
            for path, sha256 in (*pairs, (doc.md_path, doc.md_sha256)):
                if path not in batch:
                    batch[path] = WantedContent(path, sha256)
                    size_bytes += doc.raw_bytes
            if size_bytes >= _BATCH_BYTES or len(batch) >= _BATCH_PATHS_MAX:
                yield list(batch.values())
                batch, size_bytes = {}, 0
        if batch:
            yield list(batch.values())


class FolderHoldings(_RecordedHoldings):
    """What a home in a folder holds."""

    def __init__(self, txn: ReadTxn, paths: HomePaths) -> None:
        super().__init__(txn)
        self._paths = paths

    def contents(self, amiss: Callable[[str], None]) -> Iterator[list[ContentBytes]]:
        """Read the content files."""
        for batch in self._wanted(amiss):
            contents: list[ContentBytes] = []
            for wanted in batch:
                try:
                    data = read_inside(self._paths.root, wanted.path, _CONTENT_BYTES_MAX)
                except SourceError as error:
                    amiss(str(error))
                    continue
                contents += _whole(wanted, data, amiss)
            yield contents

    def files(self, amiss: Callable[[str], None]) -> Iterator[tuple[HomeFile, Iterable[bytes]]]:
        """Read everything in its folder but store, content, caches and locks."""
        for extra in extra_files(self._paths):
            try:
                yield _file_at(self._paths.root, extra.path, is_link=extra.is_link)
            except Unreadable as error:
                # A file that was removed since it was listed is no problem of the home.
                if os.path.lexists(self._paths.root / extra.path):
                    amiss(str(error))


class DatabaseHoldings(_RecordedHoldings):
    """What a home in a database holds."""

    def contents(self, amiss: Callable[[str], None]) -> Iterator[list[ContentBytes]]:
        """Read the content records, a batch in a round trip, and the objects that they name."""
        place = place_of(self.txn)
        bucket = Bucket(place) if place.url else None
        for batch in self._wanted(amiss):
            prefixes = [lsid_key(wanted.path) for wanted in batch]
            ranges = [(prefix, prefix_stop(prefix)) for prefix in prefixes]
            contents: list[ContentBytes] = []
            found = self.txn.scan_many(CONTENT.name, ranges, _PARTS_MAX)
            for wanted, pairs in zip(batch, found, strict=True):
                try:
                    parts = [CONTENT.decode(key, stored) for key, stored in pairs]
                except StoreDamaged as error:
                    amiss(f"{wanted.path}: {error.fields['detail']}")
                    continue
                if not parts:
                    amiss(f"{wanted.path}: its content is missing")
                    continue
                data = b"".join(part.data for part in parts)
                if parts[0].object:
                    size_bytes = parts[0].size_bytes
                    data = (bucket and bucket.get(parts[0].object, size_bytes)) or b""
                contents += _whole(wanted, data, amiss)
            yield contents

    def files(
        self,
        amiss: Callable[[str], None],  # noqa: ARG002  what is damaged is found when it is read
    ) -> Iterator[tuple[HomeFile, Iterable[bytes]]]:
        """Read the records of files."""
        for file in home_files.listed(self.txn):
            yield file, home_files.pieces(self.txn, file.path)


def _whole(
    wanted: WantedContent, data: bytes, amiss: Callable[[str], None]
) -> Iterator[ContentBytes]:
    if sha256_hex(data) == wanted.sha256:
        yield ContentBytes(wanted.path, data)
    else:
        amiss(f"{wanted.path}: the file is not what was written")


def _file_at(root: Path, path: str, *, is_link: bool) -> tuple[HomeFile, Iterable[bytes]]:
    """A file of a folder, hashed; its bytes are read again. Raises Unreadable."""
    readable = as_utf8(path)
    if readable != path:
        raise Unreadable("its name is not UTF-8", source=readable)
    if is_link:
        try:
            link = os.readlink(root / path)
        except OSError as error:
            raise Unreadable(f"cannot be read ({error.strerror})", source=path) from error
        if link != as_utf8(link):
            raise Unreadable("the path that it links to is not UTF-8", source=path)
        return HomeFile(path=path, link=link, sha256=sha256_hex(b"")), ()
    digest, size_bytes = hashlib.sha256(), 0
    with open_regular(root / path, path) as source:
        mode = os.fstat(source).st_mode
    for piece in pieces_of(root, path):
        digest.update(piece)
        size_bytes += len(piece)
    file = HomeFile(
        path=path,
        size_bytes=size_bytes,
        sha256=digest.hexdigest(),
        # The owner's execute bit: a script stays a script.
        executable=bool(mode & 0o100),
    )
    return file, pieces_of(root, path)


def as_utf8(path: str) -> str:
    """A path as it can be stored: bytes that are not UTF-8 become U+FFFD."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
