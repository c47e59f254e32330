"""A minimal tar: regular files only, each header exactly as this module writes it. Pure.

Reading compares every byte that is not content with what writing would have produced. So each list
of members has exactly one archive, and no other program can read it differently: it has no links,
devices, extended headers, holes or trailing data.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kb.errors import Refused, TooLarge, Unparsable

NAME_CHARS_MAX: Final = 100

_BLOCK: Final = 512
_END: Final = bytes(2 * _BLOCK)
_SIZE: Final = re.compile(rb"[0-7]{11}\0")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_KINDS: Final = {
    b"1": "a link",
    b"2": "a link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a pipe",
}


class TarMember(Struct, frozen=True):
    """A file by its name in the archive."""

    name: str
    data: bytes | memoryview


def is_plain(name: str) -> bool:
    """Whether a member may have this name: relative, with plain characters, not hidden."""
    return len(name) <= NAME_CHARS_MAX and _PLAIN_NAME.fullmatch(name) is not None


def packed(members: Iterable[TarMember]) -> Iterator[bytes | memoryview]:
    """The archive in parts; equal members give equal bytes. Names must be plain."""
    for member in members:
        yield _header(member.name, len(member.data))
        yield member.data
        yield bytes(-len(member.data) % _BLOCK)
    yield _END


def _header(name: str, size: int) -> bytes:
    import tarfile

    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.USTAR_FORMAT)


def unpacked(data: bytes, source: str, *, members_max: int, bytes_max: int) -> list[TarMember]:
    """The members in order, without copies.

    `bytes_max` returns the limit of a member. Raises Refused for an entry that an archive may not
    have, TooLarge, and Unparsable if it is cut short or not as written.
    """
    view = memoryview(data)
    members: list[TarMember] = []
    names: set[str] = set()
    at = 0
    while view[at : at + _BLOCK] != _END[:_BLOCK]:
        name, size = _read_header(bytes(view[at : at + _BLOCK]), source)
        if name in names:
            raise Refused(f"it has {name} twice", source=source)
        if size > bytes_max:
            raise TooLarge(f"{name} is over the limit of {bytes_max:,} bytes", source=source)
        if len(members) == members_max:
            raise TooLarge(f"it has over {members_max:,} files", source=source)
        start, end = at + _BLOCK, at + _BLOCK + size
        at = end + -size % _BLOCK
        if at > len(view):
            raise Unparsable("it is cut short", source=source)
        if any(view[end:at]):
            raise Unparsable(f"bytes follow {name}", source=source)
        names.add(name)
        members.append(TarMember(name, view[start:end]))
    if view[at:] != _END:
        raise Unparsable("its end is missing, or bytes follow it", source=source)
    return members


def _read_header(block: bytes, source: str) -> tuple[str, int]:
    if len(block) < _BLOCK:
        raise Unparsable("it is cut short, or not the archive of a pack", source=source)
    if block[257:262] != b"ustar":
        raise Unparsable("it is damaged, or not a plain tar archive", source=source)
    name = block[:NAME_CHARS_MAX].rstrip(b"\0").decode("latin-1")
    if (kind := _KINDS.get(block[156:157])) is not None:
        raise Refused(f"{name!r} is {kind}", source=source)
    if not is_plain(name):
        raise Refused(f"{name!r} is not a plain relative path", source=source)
    size_field = block[124:136]
    size = int(size_field[:11], 8) if _SIZE.fullmatch(size_field) else -1
    if size < 0 or block != _header(name, size):
        raise Unparsable(f"the header of {name} is damaged", source=source)
    return name, size
