"""Is the source still what was taken in?"""

import hashlib
import os
from pathlib import Path
from typing import Final

from kb.model.doc import Doc, Seen
from kb.model.ids import Lsid
from kb.model.origin import origin_id
from kb.model.search import Freshness
from kb.model.source import name_of
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn
from kb.store.records import SEEN, SOURCES

# A file whose stamp moved is read to compare, up to this size.
_HASHED_BYTES_MAX: Final = 8 << 20


def freshness_of(txn: ReadTxn, doc: Doc) -> Freshness:
    """Compare a doc with its file now; of a page, say what the last look at it found."""
    name = name_of(doc.place)
    if name is None and doc.kind in ("topic", "pack", "entry"):
        # Named by what it is in its collection; its source is the file.
        name = name_of(Lsid(doc.source)) or doc.source
    if name is None:
        return _page(txn, doc)
    try:
        found = os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return "gone"
    except OSError:
        return "unknown"
    seen = SEEN.get(txn, lsid_key(doc.place))
    if seen is not None and seen.raw_sha256 == doc.raw_sha256 and _same_stamp(seen, found):
        return "fresh"
    if found.st_size != doc.raw_bytes:
        return "changed"
    if found.st_size > _HASHED_BYTES_MAX:
        return "unknown"
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


def _same_stamp(seen: Seen, found: os.stat_result) -> bool:
    return (seen.size_bytes, seen.mtime_ns, seen.ctime_ns, seen.inode) == (
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
    )
