"""Keys of the tables: short texts stay readable, long ones are replaced by a hash."""

import hashlib
from typing import Final

from kb.store.codec import u64

_TEXT_BYTES_MAX: Final = 400
_HASHED: Final = b"\x02"


def text_key(text: str) -> bytes:
    """The text as UTF-8; a mark and its hash if it is empty, too long or not plain.

    A plain text has no NUL and does not start with the mark. So different texts have different
    keys, and no key followed by a NUL is a prefix of another.
    """
    raw = text.encode("utf-8", "surrogatepass")
    if 1 <= len(raw) <= _TEXT_BYTES_MAX and b"\0" not in raw and not raw.startswith(_HASHED):
        return raw
    return _HASHED + hashlib.sha256(raw).digest()


def text_of(key: bytes) -> str | None:
    """The text of a key made by `text_key`; None if the key is a hash."""
    return None if key.startswith(_HASHED) else key.decode("utf-8", "surrogatepass")


def lsid_key(lsid: str) -> bytes:
    """A key of 16 bytes for a logical source id of any length."""
    return hashlib.sha256(lsid.encode("utf-8", "surrogatepass")).digest()[:16]


def site_prefix(origin_id: str) -> bytes:
    """The prefix of all pages of one source."""
    return origin_id.encode() + b"\0"


def site_page_key(origin_id: str, url: str) -> bytes:
    """The key of a page of one source."""
    return site_prefix(origin_id) + lsid_key(url)


def facet_prefix(name: str, value: str) -> bytes:
    """The prefix of all keys of one facet value."""
    return name.encode("ascii") + b"\0" + text_key(value) + b"\0"


def facet_key(name: str, value: str, source_no: int) -> bytes:
    """The key of one source under one facet value."""
    return facet_prefix(name, value) + u64(source_no)


def entity_prefix(key: str) -> bytes:
    """The prefix of all edges of one entity."""
    return text_key(key) + b"\0"


def vector_key(fingerprint: str, text_hash: str) -> bytes:
    """The key of a vector: 8 bytes for the model, 16 for the text."""
    return hashlib.sha256(fingerprint.encode()).digest()[:8] + bytes.fromhex(text_hash)
