"""Keys that fit: what is short stays readable, what is long becomes its hash."""

import hashlib
from typing import Final

from kb.store.codec import u64

_TEXT_BYTES_MAX: Final = 400
_HASHED: Final = b"\x02"


def text_key(text: str) -> bytes:
    """The text as UTF-8; its hash behind a mark where it is empty, too long or not plain.

    Plain is what has no NUL and does not start with the mark, so different texts have different
    keys and none followed by a NUL is the start of another's.
    """
    raw = text.encode("utf-8", "surrogatepass")
    if 1 <= len(raw) <= _TEXT_BYTES_MAX and b"\0" not in raw and not raw.startswith(_HASHED):
        return raw
    return _HASHED + hashlib.sha256(raw).digest()


def text_of(key: bytes) -> str | None:
    """The text that such a key is of; None where only its hash was kept."""
    return None if key.startswith(_HASHED) else key.decode("utf-8", "surrogatepass")


def lsid_key(lsid: str) -> bytes:
    """A fixed-size key for a logical source id, which may be any length."""
    return hashlib.sha256(lsid.encode("utf-8", "surrogatepass")).digest()[:16]


def facet_prefix(name: str, value: str) -> bytes:
    """Start of every key of one facet value."""
    return name.encode("ascii") + b"\0" + text_key(value) + b"\0"


def facet_key(name: str, value: str, source_no: int) -> bytes:
    """One source under one facet value."""
    return facet_prefix(name, value) + u64(source_no)


def entity_prefix(key: str) -> bytes:
    """Start of every edge of one entity."""
    return text_key(key) + b"\0"


def vector_key(fingerprint: str, text_hash: str) -> bytes:
    """A vector's key: which model, which text. 8 + 16 bytes."""
    return hashlib.sha256(fingerprint.encode()).digest()[:8] + bytes.fromhex(text_hash)
