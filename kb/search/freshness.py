"""Freshness: whether a doc's source has changed since the doc was ingested."""

import hashlib
import os
from collections.abc import Iterable
from typing import Final, Literal, Protocol

from kb.model.doc import Doc, SourceStamp
from kb.model.ids import Lsid
from kb.model.origin import SITES, origin_id
from kb.model.search import Freshness
from kb.model.source import file_of, file_of_source, name_of, part_lsid
from kb.store.content.ends import ends_digest, ends_of, is_of_ends
from kb.store.keys import lsid_key, site_page_key
from kb.store.kv import ReadTxn
from kb.store.records import SEEN, SITE_PAGES, SOURCES

# A file whose state changed is read and compared up to this size.
_HASHED_BYTES_MAX: Final = 8 << 20
KEPT_BY_THE_HOME: Final = ("notebook", "entry")
"""Kinds of docs whose files lie in the folder of a home, and with the records in a database."""

FileState = tuple[int, int, int, int] | Literal["gone", "unknown"]
"""Size, mtime, ctime and inode of a file, or why there are none."""


class Keeper(Protocol):
    """What keeps the docs of a home: its store or its content."""

    @property
    def machine(self) -> str:
        """This machine's name in the places of files; empty where they have none."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether machines may share the home."""
        ...


def freshness_of(txn: ReadTxn, doc: Doc, keeper: Keeper) -> Freshness:
    """Compare a doc with its file now; of a web page, report what the last sync saw.

    Of a file of another machine nothing is known, nor of a note or an entry of a home that machines
    share.
    """
    name = compared_file(doc, keeper)
    if name is None:
        return _page_freshness(txn, doc) if doc.kind == "url" else "unknown"
    return freshness_by_state(txn, doc, file_state(name)) or _freshness_by_bytes(name, doc)


def expect_freshness(txn: ReadTxn, docs: Iterable[Doc], keeper: Keeper) -> None:
    """Say that `freshness_of` is asked for these docs next."""
    places = (doc.place for doc in docs if name_of(doc.place, keeper.machine) is not None)
    txn.expect("seen", map(lsid_key, places))


def compared_file(doc: Doc, keeper: Keeper) -> str | None:
    """The file that a doc is compared with; None for a web page, whose state is in the store.

    None for a file of another machine, too, and for what was handed in; and for notes and entries
    of a home that machines share: their places may be those of a folder that it was copied from.
    """
    if keeper.is_shared and doc.kind in KEPT_BY_THE_HOME:
        return None
    name = name_of(doc.place, keeper.machine)
    if name is None and doc.kind in ("topic", "pack", "entry"):
        # The place of such a doc is its name in its collection; its source is the file.
        path = file_of_source(doc.source, keeper.machine)
        name = os.fspath(path) if path else None
    return name


def file_state(name: str) -> FileState:
    """The state of a file, without reading it."""
    try:
        stat = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return "gone"
    except OSError:
        return "unknown"
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def freshness_by_state(txn: ReadTxn, doc: Doc, state: FileState) -> Freshness | None:
    """The freshness as far as a file's state tells it; None where its bytes must be compared."""
    if isinstance(state, str):
        return state
    if (file := file_of(doc.place)) is not None:
        return _part_freshness(txn, file, state)
    seen = SEEN.get(txn, lsid_key(doc.place))
    if seen is not None and seen.raw_sha256 == doc.raw_sha256 and _seen_state(seen) == state:
        return "fresh"
    size_bytes = state[0]
    if size_bytes != doc.raw_bytes:
        return "changed"
    is_long = size_bytes > _HASHED_BYTES_MAX and not is_of_ends(doc.raw_sha256)
    return "unknown" if is_long else None


def _part_freshness(txn: ReadTxn, file: Lsid, state: FileState) -> Freshness:
    """Of a mail in a mailbox, or an attachment: whether its file is as it was read."""
    # A mailbox is seen by the docs in it; another file that holds some is a doc itself.
    for place in (part_lsid(file), file):
        seen = SEEN.get(txn, lsid_key(place))
        if seen is not None:
            return "fresh" if _seen_state(seen) == state else "changed"
    return "unknown"


def _freshness_by_bytes(name: str, doc: Doc) -> Freshness:
    try:
        with open(name, "rb") as file:
            if is_of_ends(doc.raw_sha256):
                digest = ends_digest(doc.raw_bytes, ends_of(file.fileno(), doc.raw_bytes))
            else:
                digest = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return "unknown"
    return "fresh" if digest == doc.raw_sha256 else "changed"


def _page_freshness(txn: ReadTxn, doc: Doc) -> Freshness:
    origin = SOURCES.get(txn, origin_id("url", doc.source, doc.owner).encode())
    if origin is None:
        return _site_freshness(txn, doc)
    if origin.gone_since_ms:
        return "gone"
    return "unknown" if origin.failures or origin.synced_ms is None else "fresh"


def _site_freshness(txn: ReadTxn, doc: Doc) -> Freshness:
    """What the last look at the site or the feed saw that the page belongs to."""
    for _, origin in SOURCES.scan(txn):
        if origin.kind not in SITES:
            continue
        page = SITE_PAGES.get(txn, site_page_key(origin.origin_id, doc.source))
        if page is None or page.doc != "own":
            continue
        if page.state not in ("found", "taken"):
            return "gone"
        return "unknown" if origin.failures or page.failures else "fresh"
    return "unknown"


def _seen_state(seen: SourceStamp) -> FileState:
    return seen.size_bytes, seen.mtime_ns, seen.ctime_ns, seen.inode
