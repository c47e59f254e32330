"""The bytes that a doc was read from: the home's copy, or the file itself where none is kept."""

import os
import stat

from kb.errors import Unreadable
from kb.model.doc import Doc
from kb.model.ids import sha256_hex
from kb.model.source import path_of
from kb.store.content.files import ContentStore


def read_original(content: ContentStore, doc: Doc) -> bytes:
    """The bytes that a doc was read from.

    Raises:
        StoreDamaged: the home's copy is missing or fails its checksum.
        Unreadable: no copy is kept, and the file is gone or has other bytes now.
    """
    if doc.raw_path:
        return content.read(doc.raw_path, doc.raw_sha256)
    data = _read_file(doc, content.machine)
    if data is None or sha256_hex(data) != doc.raw_sha256:
        detail = "kb keeps no copy of such files, and this one is gone or has changed"
        raise Unreadable(detail, source=doc.source)
    return data


def _read_file(doc: Doc, machine: str) -> bytes | None:
    """The bytes of its file, if that still has its length."""
    path = path_of(doc.place, machine)
    if path is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size != doc.raw_bytes:
                return None
            return file.read(doc.raw_bytes + 1)
    except OSError:
        return None
