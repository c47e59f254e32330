"""Which parts does a zipped document have? Its members and their XML, within bounds."""

import io
import lzma
import posixpath
import re
import zipfile
import zlib
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from kb.errors import Encrypted, Unparsable

if TYPE_CHECKING:
    from lxml.etree import _Element

MEMBERS_MAX: Final = 20_000
UNPACKED_BYTES_MAX: Final = 256 * 1024 * 1024
# Below this size no ratio is suspicious: a sheet of empty cells packs well.
_RATIO_FREE_BYTES: Final = 32 * 1024 * 1024
_RATIO_MAX: Final = 200
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BAD_ZIP: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    KeyError,
    IndexError,
)


class ZippedDocument:
    """The members of one zipped document; what is unpacked of them is counted and bounded."""

    def __init__(self, data: bytes, name: str) -> None:
        """Open it; raise Encrypted for a password, Unparsable for what is no sound zip."""
        self.name = name
        self._left = min(UNPACKED_BYTES_MAX, max(_RATIO_FREE_BYTES, _RATIO_MAX * len(data)))
        if data.startswith(_OLE):
            raise Encrypted(
                "it needs a password, or is of an office before 2007; "
                "save it without a password in today's format and add the result",
                source=name,
            )
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _BAD_ZIP:
            raise self._damaged() from None
        self.names = {info.filename: info for info in self._zip.infolist()}
        if len(self._zip.infolist()) > MEMBERS_MAX:
            raise Unparsable(f"it has more than {MEMBERS_MAX} members; split it", source=name)

    def bytes_of(self, part: str) -> bytes | None:
        """The unpacked member; None if there is none of this name."""
        info = self.names.get(part)
        if info is None:
            return None
        if info.flag_bits & 1:
            raise Encrypted("it needs a password; remove it and add the result", source=self.name)
        try:
            with self._zip.open(info) as member:
                unpacked = member.read(self._left + 1)
        except NotImplementedError:
            raise self._damaged() from None
        except RuntimeError:
            raise Encrypted(
                "it needs a password; remove it and add the result", source=self.name
            ) from None
        except _BAD_ZIP:
            raise self._damaged() from None
        self._left -= len(unpacked)
        if self._left < 0:
            raise Unparsable(
                "it unpacks to far more than its size; split it into smaller files",
                source=self.name,
            )
        return unpacked

    def xml(self, part: str) -> "_Element | None":
        """The root of the member; None if there is none. Raises Unparsable, also for a DOCTYPE."""
        data = self.bytes_of(part)
        return None if data is None else parse_xml(data, self.name)

    def need_xml(self, part: str) -> "_Element":
        """The root of a member without which it is no such document."""
        root = self.xml(part)
        if root is None:
            raise Unparsable(
                f"it has no {part}, so it is not what its name says; save it again",
                source=self.name,
            )
        return root

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """By id, the last word of the type and the target of what `part` refers to inside."""
        folder, _, base = part.rpartition("/")
        root = self.xml(f"{folder}/_rels/{base}.rels" if folder else f"_rels/{base}.rels")
        found: dict[str, tuple[str, str]] = {}
        for relation in () if root is None else root:
            if relation.get("TargetMode") != "External":
                kind = relation.get("Type", "").rpartition("/")[2]
                found[relation.get("Id", "")] = (kind, inside(folder, relation.get("Target", "")))
        return found

    def _damaged(self) -> Unparsable:
        return Unparsable(
            "it is damaged; open it where it was made and save it again", source=self.name
        )


def inside(folder: str, target: str) -> str:
    """The member that `target` names, seen from `folder`."""
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(folder, unquote(target.partition("#")[0])))


def parse_xml(data: bytes, name: str) -> "_Element":
    """The root element, with no entity, DTD or address followed.

    Raises:
        Unparsable: it is not XML, is nested over 256 levels, or has a DOCTYPE.
    """
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        raise Unparsable(
            "its XML is damaged or nested too deeply; save it again where it was made", source=name
        ) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise Unparsable("its XML has a DOCTYPE, which is not read; save it without", source=name)
    return root


def without_doctype(data: bytes) -> bytes:
    """XML without the DOCTYPE that its program writes; one with declarations of its own stays."""
    return re.sub(rb"<!DOCTYPE[^<>\[]{0,1000}>", b"", data, count=1)


def local(element: "_Element") -> str:
    """The element's name without its namespace."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: "_Element", name: str) -> str:
    """The first attribute of this name in any namespace; empty if there is none."""
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), "")
