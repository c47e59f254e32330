"""From docs of a home to a portable pack."""

import os
import secrets
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.errors import EmptySource, NotFound, StoreFull, TooLarge, UsageError
from kb.intake.canonicalize import CanonicalizeInput, canonicalize
from kb.intake.passages import is_of
from kb.knowledge.packs.build import first_paragraph
from kb.knowledge.packs.keys import public_of
from kb.knowledge.packs.load import DOCS_MAX
from kb.knowledge.packs.manifest import KIND_DEFAULT, PackDoc, derived_id
from kb.knowledge.packs.portable import (
    ARCHIVE_BYTES_MAX,
    DOCS,
    GUARD,
    PASSAGES_MAX,
    Portable,
    PortableChunk,
    PortableDocChunks,
    PortableManifest,
    is_pack_id,
    members_of,
)
from kb.knowledge.packs.tar import is_plain, packed
from kb.model.doc import Doc
from kb.model.embedder import EmbedderSpec
from kb.model.ids import DocId, sha256_hex
from kb.model.source import display_name
from kb.model.text import Chunk
from kb.store import chunks, embedders
from kb.store.content.files import ContentStore
from kb.store.content.layout import slug
from kb.store.kv import ReadTxn
from kb.store.meta import CHUNKER, get_word
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from numpy.typing import NDArray

_NAME_CHARS_MAX: Final = 60
_TITLE_CHARS_MAX: Final = 1_000
_MARKDOWN: Final = ".md"
_TAGS_MAX: Final = 200
_TAG_CHARS_MAX: Final = 200


class NothingToExport(NotFound):
    """No doc is left that may go into an archive."""

    template = "{detail}"


class ExportRequest(Struct, frozen=True, kw_only=True):
    """What goes into an archive, and what it is called."""

    pack_id: str
    title: str
    version: str
    docs: tuple[Doc, ...]
    described: dict[DocId, PackDoc] = {}
    """By doc id: what a manifest says of a doc already."""


class Exported(Struct, frozen=True, kw_only=True):
    """An archive as it was written."""

    pack_id: str
    version: str
    docs: int
    passages: int
    content_hash: str
    signed_by: str | None
    """The public key."""
    bytes: int
    left_out: tuple[str, ...]
    """Docs that were meant and are not in it, and why."""


class _ExportDoc(Struct, frozen=True, kw_only=True):
    """A doc with all that goes into the archive of it."""

    about: PackDoc
    body: bytes
    cut: PortableDocChunks
    vectors: "list[NDArray[np.float32]]"


def export(
    store: Store,
    content: ContentStore,
    wanted: ExportRequest,
    target: Path,
    *,
    key: "Ed25519PrivateKey | None" = None,
    force: bool = False,
) -> Exported:
    """Write an archive whole or not at all; the same docs give the same bytes.

    Docs that are not indexed yet are left out. Raises UsageError where the id can name no folder
    or the file is there already and `force` is not given, TooLarge, StoreDamaged, NothingToExport.
    """
    if not is_pack_id(wanted.pack_id):
        raise UsageError(
            f"{wanted.pack_id!r} cannot be the id of an archive: "
            "letters, digits, dots, hyphens and underscores, at most 100"
        )
    if not force and os.path.lexists(target):
        raise UsageError(f"{display_name(target)} is there already; --force overwrites it")
    if len(wanted.docs) > DOCS_MAX:
        raise TooLarge(f"over {DOCS_MAX:,} docs", source=wanted.pack_id)
    with store.read() as txn:
        manifest, whole, left_out = _gathered(txn, content, wanted)
    members = list(
        members_of(
            manifest,
            {one.about.source_path: one.body for one in whole},
            (one.cut for one in whole),
            _matrix(whole, manifest.portable.dim),
            key,
        )
    )
    sealed = msgspec.json.decode(members[0].data, type=PortableManifest)
    size = _write(target, packed(members), force=force)
    return Exported(
        pack_id=wanted.pack_id,
        version=wanted.version,
        docs=len(whole),
        passages=manifest.portable.passages,
        content_hash=sealed.content_hash,
        signed_by=public_of(key) if key else None,
        bytes=size,
        left_out=left_out,
    )


def _gathered(
    txn: ReadTxn, content: ContentStore, wanted: ExportRequest
) -> tuple[PortableManifest, list[_ExportDoc], tuple[str, ...]]:
    known = embedders.in_use(txn)
    if known is None:
        raise NothingToExport("nothing is indexed yet; run `kb worker --drain`")
    model = known.active
    whole: list[_ExportDoc] = []
    left_out: list[str] = []
    canonicalizers: set[str] = set()
    for place in _places(wanted):
        found = _whole(txn, content, place, wanted, model)
        if found is None:
            left_out.append(f"{place.doc.source}: it is not indexed yet; run `kb worker --drain`")
            continue
        canonicalizers.add(place.doc.canonicalizer)
        whole.append(found)
    if not whole:
        raise NothingToExport("; ".join(left_out[:1]) or "no doc is meant")
    total = sum(len(one.vectors) for one in whole)
    if total > PASSAGES_MAX or total * model.dim * 4 > ARCHIVE_BYTES_MAX:
        raise TooLarge(f"{total:,} passages are too many", source=wanted.pack_id)
    manifest = PortableManifest(
        pack_id=wanted.pack_id,
        version=wanted.version,
        title=wanted.title,
        root_uri=f"pkg://{wanted.pack_id}/",
        docs=tuple(_with_known_edges(whole)),
        portable=Portable(
            canonicalizer=",".join(sorted(canonicalizers)),
            chunker=get_word(txn, CHUNKER),
            model=model.fingerprint,
            dim=model.dim,
            passages=total,
        ),
    )
    return manifest, whole, tuple(left_out)


def _with_known_edges(whole: Iterable[_ExportDoc]) -> list[PackDoc]:
    """The docs, without links to docs that stay behind."""
    found = [one.about for one in whole]
    names = {name for doc in found for name in (doc.id, doc.selector, doc.source_path)}
    return [
        msgspec.structs.replace(
            doc, related=tuple(edge for edge in doc.related if edge.target in names)
        )
        for doc in found
    ]


class _ArchiveDoc(Struct, frozen=True, kw_only=True):
    """Where a doc lies in the archive, and what it goes by there."""

    doc: Doc
    path: str
    """The same for every version of a source, and telling nothing of where that lies."""
    selector: str


def _places(wanted: ExportRequest) -> list[_ArchiveDoc]:
    names = {doc.doc_id: _name(doc) for doc in wanted.docs}
    counted = Counter(names.values())
    places = []
    for doc in wanted.docs:
        known, name = wanted.described.get(doc.doc_id), names[doc.doc_id]
        unique = f"{name}--{sha256_hex(doc.lsid)[:12]}"
        path = known.source_path if known else ""
        if not (is_plain(path) and path.startswith(DOCS) and path.endswith(_MARKDOWN)):
            path = f"{DOCS}{unique}{_MARKDOWN}"
        selector = name if counted[name] == 1 else unique
        places.append(
            _ArchiveDoc(doc=doc, path=path, selector=known.selector if known else selector)
        )
    return sorted(places, key=lambda place: place.path)


def _name(doc: Doc) -> str:
    plain = slug(PurePosixPath(doc.source).stem).encode("ascii", "ignore").decode()
    return plain[:_NAME_CHARS_MAX].strip("-") or "doc"


def _whole(
    txn: ReadTxn,
    content: ContentStore,
    place: _ArchiveDoc,
    wanted: ExportRequest,
    model: EmbedderSpec,
) -> _ExportDoc | None:
    """A doc ready to go; None where its passages or vectors are still to be made."""
    doc = place.doc
    rows = chunks.of_source(txn, doc.source_no)
    found = [
        chunks.get_vector(txn, model.fingerprint, row.text_hash, model.dim)
        for row in rows
        if row.doc_id == doc.doc_id and is_of(doc, row)
    ]
    vectors = [vector for vector in found if vector is not None]
    if not rows or len(vectors) < len(rows):
        return None
    # Where it has pages, a form feed parts them; a file of markdown has none, and is as long.
    markdown = content.read(doc.md_path, doc.md_sha256).decode().replace("\f", "\n")
    return _ExportDoc(
        about=_about(place, markdown, wanted),
        body=_guarded(markdown, place.path),
        cut=PortableDocChunks(doc=place.path, passages=tuple(_portable(row) for row in rows)),
        vectors=vectors,
    )


def _guarded(markdown: str, path: str) -> bytes:
    data = markdown.encode()
    source = CanonicalizeInput(data=data, mime="text/markdown", name=path)
    try:
        is_itself = canonicalize(source).markdown == markdown
    except EmptySource:
        is_itself = False
    return data if is_itself else GUARD.encode() + data


def _about(place: _ArchiveDoc, markdown: str, wanted: ExportRequest) -> PackDoc:
    doc, known = place.doc, wanted.described.get(place.doc.doc_id)
    return PackDoc(
        id=known.id if known else derived_id(wanted.pack_id, place.selector),
        selector=place.selector,
        source_path=place.path,
        title=doc.label[:_TITLE_CHARS_MAX],
        summary=known.summary if known else first_paragraph(markdown),
        kind=known.kind if known else KIND_DEFAULT,
        tags=tuple(tag[:_TAG_CHARS_MAX] for tag in doc.tags[:_TAGS_MAX]),
        related=known.related if known else (),
        updated_at=doc.date or "",
    )


def _portable(row: Chunk) -> PortableChunk:
    return PortableChunk(
        start=row.start,
        end=row.end,
        heading=row.heading,
        line=row.line,
        page=row.page,
        tokens=row.tokens,
        entities=row.entities,
    )


def _matrix(whole: list[_ExportDoc], dim: int) -> "NDArray[np.float32]":
    import numpy as np

    rows = [vector for one in whole for vector in one.vectors]
    return np.array(rows, dtype=np.float32).reshape(len(rows), dim)


def _write(target: Path, parts: Iterable[bytes | memoryview], *, force: bool) -> int:
    """Write a file beside its place, durably, and move it there; returns its bytes."""
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    try:
        with open(beside, "xb") as file:
            size = sum(file.write(part) for part in parts)
            file.flush()
            os.fsync(file.fileno())
        if force:
            os.replace(beside, target)
        else:
            os.link(beside, target)
            beside.unlink()
    except FileExistsError as error:
        beside.unlink(missing_ok=True)
        raise UsageError(
            f"{display_name(target)} is there already; --force overwrites it"
        ) from error
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StoreFull(error.strerror or "", place=display_name(target)) from error
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return size
