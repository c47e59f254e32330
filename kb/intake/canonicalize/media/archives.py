"""Which files are in an archive? Those in the list of a zip, and those that a tar begins with."""

import io
import tarfile
import zlib
from typing import Final

from kb.intake.canonicalize.media.facts import MediaFacts, line, number

NAMES_MAX: Final = 500
_END, _ENTRY = b"PK\x05\x06", b"PK\x01\x02"
_ENTRY_BYTES: Final = 46
_UTF8_FLAG: Final = 0x800
_UNPACKED_BYTES_MAX: Final = 4 << 20
_GZIP_WBITS: Final = 31
_MEMBERS_MAX: Final = 20_000
# What macOS puts beside each file.
_NOISE: Final = ("__MACOSX/", ".DS_Store", "/.DS_Store")


def zip_facts(data: bytes) -> MediaFacts:
    """The names in the list at the end of a zip, and how many it says there are."""
    end = data.rfind(_END)
    if end < 0:
        return MediaFacts()
    count, size = number("<H", data, end + 10), number("<I", data, end + 12)
    at = max(0, end - size)
    if data[at : at + 4] != _ENTRY:
        # Only the end of a long list is here.
        at = data.find(_ENTRY, at, end)
    names: list[str] = []
    for _ in range(_MEMBERS_MAX):
        if at < 0 or data[at : at + 4] != _ENTRY or len(names) >= NAMES_MAX:
            break
        name_size, more, note = (number("<H", data, at + place) for place in (28, 30, 32))
        stored = data[at + _ENTRY_BYTES : at + _ENTRY_BYTES + name_size]
        codec = "utf-8" if number("<H", data, at + 8) & _UTF8_FLAG else "cp437"
        _note(names, stored.decode(codec, "replace"))
        at += _ENTRY_BYTES + name_size + more + note
    return MediaFacts(members=tuple(names), members_count=count)


def tar_facts(data: bytes) -> MediaFacts:
    """The names that these bytes of a tar still show; what follows a large file is not seen."""
    names: list[str] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for _, member in zip(range(_MEMBERS_MAX), archive, strict=False):
                if not member.isdir():
                    _note(names, member.name)
                if len(names) >= NAMES_MAX:
                    break
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError):
        pass
    return MediaFacts(members=tuple(names))


def gzip_facts(data: bytes) -> MediaFacts:
    """Of a packed tar what its first bytes show; nothing of another file."""
    try:
        opened = zlib.decompressobj(_GZIP_WBITS).decompress(data, _UNPACKED_BYTES_MAX)
    except zlib.error:
        return MediaFacts()
    return tar_facts(opened) if opened[257:262] == b"ustar" else MediaFacts()


def _note(names: list[str], name: str) -> None:
    is_file = not name.endswith(("/", *_NOISE[1:])) and not name.startswith(_NOISE[0])
    if is_file and (said := line(name)):
        names.append(said)
