"""The stages of a source before the ingest: an item, skipped with a reason, or its bytes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.intake.ingest.request import FileStamp, IngestOptions
from kb.intake.sync.walk import SkippedFile, WalkedFile
from kb.model.doc import Kind
from kb.model.ids import DocId, Lsid, sha256_hex
from kb.model.source import display_name, is_indexed_mailbox, owned_lsid

if TYPE_CHECKING:
    from kb.intake.chunks import PrecomputedChunks


_EXTENSIONS: Final = {"text/html": "html", "application/pdf": "pdf", "text/markdown": "md"}


class CollectionMember(Struct, frozen=True, kw_only=True):
    """A file of a collection, such as a subject of a topic or a doc of a pack."""

    lsid: Lsid
    kind: Kind
    path: Path
    ingest_options: IngestOptions
    remark: str | None = None
    """A warning about it; it is ingested nevertheless."""
    ready: "PrecomputedChunks | None" = None
    """Its chunks, if they came with it."""
    name: str = ""
    """What people call it; empty for its path."""


class SourceItem(Struct, frozen=True):
    """A source to ingest; `is_explicit` if the user named it itself and not its folder."""

    name: str
    file: str | None
    """The path, as a string since most files need no more."""
    is_explicit: bool
    url: str | None = None
    member: CollectionMember | None = None
    """Set if it belongs to a collection."""
    is_walked: bool = False
    """A walk found it, and no symbolic link leads to it."""

    @property
    def path(self) -> Path | None:
        """The path, made anew each time."""
        return None if self.file is None else Path(self.file)


class SkippedItem(Struct, frozen=True):
    """A source that is left out, and why."""

    name: str
    reason: str
    failed: bool


class SourceBytes(Struct, frozen=True, kw_only=True):
    """The bytes of a source, and their origin."""

    item: SourceItem
    lsid: Lsid
    kind: Kind
    data: bytes
    """All of it, or the ends of a file that is read no further."""
    raw_sha256: str
    stamp: FileStamp | None
    mime: str | None = None
    """As the server declares; None to detect it from the bytes."""
    charset: str | None = None
    """As the server declares; None if it declares none or there is no server."""
    file_name: str | None = None
    read_after: DocId | None = None
    cursor: str | None = None
    """For the next conditional request of a page."""


def as_member(
    item: SourceItem,
    member_at: Callable[[str], CollectionMember | None],
    ingest_options: IngestOptions,
) -> SourceItem:
    """The item as a collection's member, if `member_at` returns one for its path.

    Visibility and owner come from `ingest_options`; title and tags come from the collection.
    """
    if item.file is None or item.member is not None:
        return item
    member = member_at(item.file)
    if member is None:
        return item
    options = msgspec.structs.replace(
        member.ingest_options, visibility=ingest_options.visibility, owner=ingest_options.owner
    )
    return msgspec.structs.replace(
        item, member=msgspec.structs.replace(member, ingest_options=options)
    )


def extension_of(path: Path | None, mime: str) -> str:
    """The file extension under which the bytes of a source are stored."""
    return path.suffix.lstrip(".") if path else _EXTENSIONS.get(mime, "txt")


def stdin_bytes(
    item: SourceItem, data: bytes, ingest_options: IngestOptions, file_name: str | None
) -> SourceBytes:
    """The bytes from standard input: a file if there is a name, otherwise a text.

    A file's name or a text's title identifies the source over edits; a text without a title is
    identified by its content.
    """
    digest = sha256_hex(data)
    key = f"upload:{item.name}" if file_name else f"stdin:{ingest_options.title or digest}"
    return SourceBytes(
        item=item,
        lsid=owned_lsid(ingest_options.owner, key),
        kind="file" if file_name else "stdin",
        data=data,
        raw_sha256=digest,
        stamp=None,
        file_name=file_name,
    )


def walked_item(entry: WalkedFile | SkippedFile, name: str) -> SourceItem | SkippedItem:
    """An entry of a walk as an item with this name."""
    if isinstance(entry, WalkedFile):
        return SourceItem(name, entry.name, is_explicit=False, is_walked=True)
    return SkippedItem(name, entry.reason, entry.failed)


def walked_name(entry: WalkedFile | SkippedFile, machine: str) -> str:
    """What people call an entry of a walk."""
    return display_name(entry.name if isinstance(entry, WalkedFile) else entry.path, machine)


def is_mailbox(file: str) -> bool:
    """Whether a file's name says that it is a mailbox, or Thunderbird's index beside it does."""
    return file.lower().endswith((".mbox", "/mbox")) or is_indexed_mailbox(file)
