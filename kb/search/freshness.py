"""Is the source still what was taken in?"""

import hashlib
import os
from pathlib import Path
from typing import Final, Literal

from kb.model.doc import Doc, SourceStamp
from kb.model.ids import Lsid
from kb.model.origin import origin_id
from kb.model.search import Freshness
from kb.model.source import name_of
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn
from kb.store.records import SEEN, SOURCES

# A file whose stamp moved is read to compare, up to this size.
_HASHED_BYTES_MAX: Final = 8 << 20

Stamp = tuple[int, int, int, int] | Literal["gone", "unknown"]
"""Size, times and number of a file, or why there are none."""


def freshness_of(txn: ReadTxn, doc: Doc) -> Freshness:
    """Compare a doc with its file now; of a page, say what the last look at it found."""
    name = file_of(doc)
    if name is None:
        return _page(txn, doc)
    return told_by(txn, doc, stamp_of(name)) or _compared(name, doc)


def file_of(doc: Doc) -> str | None:
    """The file that a doc is compared with; None of a page, of which the store alone tells."""
    name = name_of(doc.place)
    if name is None and doc.kind in ("topic", "pack", "entry"):
        # Named by what it is in its collection; its source is the file.
        name = name_of(Lsid(doc.source)) or doc.source
    return name


def stamp_of(name: str) -> Stamp:
    """What a look at a file tells without reading it."""
    try:
        found = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return "gone"
    except OSError:
        return "unknown"
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def told_by(txn: ReadTxn, doc: Doc, stamp: Stamp) -> Freshness | None:
    """What a file's stamp alone says of a doc; None where its bytes must be compared."""
    if isinstance(stamp, str):
        return stamp
    seen = SEEN.get(txn, lsid_key(doc.place))
    if seen is not None and seen.raw_sha256 == doc.raw_sha256 and _stamp_then(seen) == stamp:
        return "fresh"
    size_bytes = stamp[0]
    if size_bytes != doc.raw_bytes:
        return "changed"
    return "unknown" if size_bytes > _HASHED_BYTES_MAX else None


def _compared(name: str, doc: Doc) -> Freshness:
    try:
        digest = hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        return "unknown"
    return "fresh" if digest == doc.raw_sha256 else "changed"


def _page(txn: ReadTxn, doc: Doc) -> Freshness:
    origin = SOURCES.get(txn, origin_id("url", doc.source, doc.owner).encode())
    if origin is None:
        return "unknown"
    if origin.gone_since_ms:
        return "gone"
    return "unknown" if origin.failures or origin.synced_ms is None else "fresh"


def _stamp_then(seen: SourceStamp) -> Stamp:
    return seen.size_bytes, seen.mtime_ns, seen.ctime_ns, seen.inode
