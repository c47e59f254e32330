"""The bytes that a doc was read from: the home's copy, or the file itself where none is kept."""

import os
import stat
from typing import Final

from kb.errors import Unreadable
from kb.model.doc import Doc
from kb.model.ids import sha256_hex
from kb.model.source import path_of
from kb.store.content.ends import ends_digest, ends_of, is_of_ends
from kb.store.content.files import ContentStore

_WHOLE_BYTES_MAX: Final = 64 << 20


def read_original(content: ContentStore, doc: Doc) -> bytes:
    """The bytes of a doc's source.

    Raises:
        StoreDamaged: the home's copy is missing or fails its checksum.
        Unreadable: no copy is kept, and the file is gone, has other bytes now, or is over 64 MiB.
    """
    data = read_parsed(content, doc)
    if not is_of_ends(doc.raw_sha256):
        return data
    whole = None
    if doc.raw_bytes <= _WHOLE_BYTES_MAX:
        whole = _read_file(doc, content.machine, ends=False)
    if whole is None:
        path = path_of(doc.place, content.machine)
        detail = f"kb keeps no copy of a file of {doc.raw_bytes:,} bytes; it lies at {path}"
        raise Unreadable(detail, source=doc.source)
    return whole


def read_parsed(content: ContentStore, doc: Doc) -> bytes:
    """The bytes that a doc's parser had: all, or the ends of a file. Raises as `read_original`."""
    if doc.raw_path:
        return content.read(doc.raw_path, doc.raw_sha256)
    of_ends = is_of_ends(doc.raw_sha256)
    data = _read_file(doc, content.machine, ends=of_ends)
    if data is None or _digest(doc, data) != doc.raw_sha256:
        detail = "kb keeps no copy of such files, and this one is gone or has changed"
        raise Unreadable(detail, source=doc.source)
    return data


def _digest(doc: Doc, data: bytes) -> str:
    is_part = is_of_ends(doc.raw_sha256)
    return ends_digest(doc.raw_bytes, data) if is_part else sha256_hex(data)


def _read_file(doc: Doc, machine: str, *, ends: bool) -> bytes | None:
    """The bytes of its file, or its ends, if that still has its length."""
    path = path_of(doc.place, machine)
    if path is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size != doc.raw_bytes:
                return None
            if ends:
                return ends_of(file.fileno(), status.st_size)
            return file.read(doc.raw_bytes + 1)
    except OSError:
        return None
