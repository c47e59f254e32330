"""Portable packs made by hand, whole or with one thing wrong in them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from kb.intake.canonicalize import fingerprint_of
from kb.knowledge.packs.manifest import PackDoc
from kb.knowledge.packs.portable import (
    Portable,
    PortableChunk,
    PortableDocChunks,
    PortableManifest,
    members_of,
)
from kb.knowledge.packs.tar import TarMember, packed

if TYPE_CHECKING:
    from nacl.signing import SigningKey

DIM: Final = 4
TEXTS: Final = {
    "docs/pear.md": "# Pear\n\nA ripe pear.\n",
    "docs/quince.md": "# Quince\n\nA hard quince.\n\nAnd another one.\n",
}


def manifest(**said: Any) -> PortableManifest:
    """What is said of the two docs; `portable` as its changes."""
    portable = Portable(
        canonicalizer=fingerprint_of("text/markdown"),
        chunker="chunk-x",
        model="model-x",
        dim=DIM,
        passages=3,
    )
    changes = said.pop("portable", {})
    docs = tuple(
        PackDoc(
            id=f"fruit.{name}",
            selector=name,
            source_path=f"docs/{name}.md",
            title=name.title(),
            summary="",
            kind="reference",
            tags=("fruit",),
            related=(),
        )
        for name in ("pear", "quince")
    )
    known = {"pack_id": "fruit", "docs": docs, **said}
    return PortableManifest(portable=msgspec.structs.replace(portable, **changes), **known)


def passage(start: int, end: int, **said: Any) -> PortableChunk:
    return PortableChunk(start=start, end=end, line=1, tokens=3, **said)


def cuts() -> list[PortableDocChunks]:
    """The passages of both docs."""
    quince = (passage(0, 24, heading=("Quince",)), passage(26, 42, heading=("Quince",)))
    return [
        PortableDocChunks(doc="docs/pear.md", passages=(passage(0, 20),)),
        PortableDocChunks(doc="docs/quince.md", passages=quince),
    ]


def vectors() -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Three unit vectors."""
    return np.eye(3, DIM, dtype=np.float32)


def members(key: "SigningKey | None" = None, **said: Any) -> list[TarMember]:
    """The members of an archive, each part as it should be unless `said` has another."""
    parts: dict[str, Any] = {
        "manifest": manifest(),
        "docs": {name: text.encode() for name, text in TEXTS.items()},
        "cuts": cuts(),
        "vectors": vectors(),
        **said,
    }
    return list(members_of(key=key, **parts))


def archive(key: "SigningKey | None" = None, **said: Any) -> bytes:
    """The bytes of one."""
    return joined(members(key, **said))


def joined(rows: list[TarMember]) -> bytes:
    """These members as an archive, whatever they are."""
    return b"".join(bytes(part) for part in packed(rows))


def written(folder: Path, name: str, data: bytes) -> Path:
    """An archive in a file."""
    path = folder / name
    path.write_bytes(data)
    return path
