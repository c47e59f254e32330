"""Exports docs of a home as a portable pack."""

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
from kb.intake.chunks import has_current_title
from kb.knowledge.packs.build import first_paragraph
from kb.knowledge.packs.keys import public_of
from kb.knowledge.packs.load import DOCS_MAX
from kb.knowledge.packs.manifest import KIND_DEFAULT, PackDoc, derived_id
from kb.knowledge.packs.portable import (
    ARCHIVE_BYTES_MAX,
    CHUNKS_MAX,
    DOCS,
    GUARD,
    Portable,
    PortableChunk,
    PortableDocChunks,
    PortableManifest,
    is_pack_id,
    members_of,
)
from kb.knowledge.packs.tar import is_plain, packed
from kb.model.decoding import decode_json
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
    from nacl.signing import SigningKey
    from numpy.typing import NDArray

_NAME_CHARS_MAX: Final = 60
_TITLE_CHARS_MAX: Final = 1_000
_MARKDOWN: Final = ".md"
_TAGS_MAX: Final = 200
_TAG_CHARS_MAX: Final = 200


class NothingToExport(NotFound):
    """No doc is left that may go into an archive."""

    template = "{detail}"


class ArchiveSelection(Struct, frozen=True, kw_only=True):
    """The docs of an archive, and its id, title and version."""

    pack_id: str
    title: str
    version: str
    docs: tuple[Doc, ...]
    described: dict[DocId, PackDoc] = {}
    """The docs that a manifest describes already, by doc id."""


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
    """Docs that were requested but are not in it, and why."""


class _ExportDoc(Struct, frozen=True, kw_only=True):
    """A doc with all that the archive stores of it."""

    about: PackDoc
    body: bytes
    cut: PortableDocChunks
    vectors: "list[NDArray[np.float32]]"


def export(
    store: Store,
    content: ContentStore,
    request: ArchiveSelection,
    target: Path,
    *,
    key: "SigningKey | None" = None,
    force: bool = False,
) -> Exported:
    """Write an archive, whole or not at all; the same docs give the same bytes.

    Docs that are not indexed yet are left out. Raises UsageError if the id cannot name a folder, or
    the file exists and `force` is not given; TooLarge, StoreDamaged, NothingToExport.
    """
    if not is_pack_id(request.pack_id):
        raise UsageError(
            f"{request.pack_id!r} cannot be the id of an archive: "
            "letters, digits, dots, hyphens and underscores, at most 100"
        )
    if not force and os.path.lexists(target):
        raise UsageError(f"{display_name(target)} is there already; --force overwrites it")
    if len(request.docs) > DOCS_MAX:
        raise TooLarge(f"over {DOCS_MAX:,} docs", source=request.pack_id)
    with store.read() as txn:
        manifest, export_docs, left_out = _gather(txn, content, request)
    members = list(
        members_of(
            manifest,
            {doc.about.source_path: doc.body for doc in export_docs},
            (doc.cut for doc in export_docs),
            _matrix(export_docs, manifest.portable.dim),
            key,
        )
    )
    sealed = decode_json(members[0].data, PortableManifest)
    size = _write(target, packed(members), force=force)
    return Exported(
        pack_id=request.pack_id,
        version=request.version,
        docs=len(export_docs),
        passages=manifest.portable.passages,
        content_hash=sealed.content_hash,
        signed_by=public_of(key) if key else None,
        bytes=size,
        left_out=left_out,
    )


def _gather(
    txn: ReadTxn, content: ContentStore, request: ArchiveSelection
) -> tuple[PortableManifest, list[_ExportDoc], tuple[str, ...]]:
    embedder_set = embedders.in_use(txn)
    if embedder_set is None:
        raise NothingToExport("nothing is indexed yet; run `kb worker --drain`")
    model = embedder_set.active
    export_docs: list[_ExportDoc] = []
    left_out: list[str] = []
    canonicalizers: set[str] = set()
    for archive_doc in _archive_docs(request):
        if archive_doc.doc.by_name:
            left_out.append(f"{archive_doc.doc.source}: it has no text")
            continue
        export_doc = _export_doc(txn, content, archive_doc, request, model)
        if export_doc is None:
            left_out.append(
                f"{archive_doc.doc.source}: it is not indexed yet; run `kb worker --drain`"
            )
            continue
        canonicalizers.add(archive_doc.doc.canonicalizer)
        export_docs.append(export_doc)
    if not export_docs:
        raise NothingToExport("; ".join(left_out[:1]) or "no doc is meant")
    total = sum(len(export_doc.vectors) for export_doc in export_docs)
    if total > CHUNKS_MAX or total * model.dim * 4 > ARCHIVE_BYTES_MAX:
        raise TooLarge(f"{total:,} passages are too many", source=request.pack_id)
    manifest = PortableManifest(
        pack_id=request.pack_id,
        version=request.version,
        title=request.title,
        root_uri=f"pkg://{request.pack_id}/",
        docs=tuple(_with_known_edges(export_docs)),
        portable=Portable(
            canonicalizer=",".join(sorted(canonicalizers)),
            chunker=get_word(txn, CHUNKER),
            model=model.fingerprint,
            dim=model.dim,
            passages=total,
        ),
    )
    return manifest, export_docs, tuple(left_out)


def _with_known_edges(export_docs: Iterable[_ExportDoc]) -> list[PackDoc]:
    """The docs, without links to docs that are not exported."""
    docs = [export_doc.about for export_doc in export_docs]
    names = {name for doc in docs for name in (doc.id, doc.selector, doc.source_path)}
    return [
        msgspec.structs.replace(
            doc, related=tuple(edge for edge in doc.related if edge.target in names)
        )
        for doc in docs
    ]


class _ArchiveDoc(Struct, frozen=True, kw_only=True):
    """A doc's path and selector in the archive."""

    doc: Doc
    path: str
    """Equal for every version of a source; it does not reveal the source's place."""
    selector: str


def _archive_docs(request: ArchiveSelection) -> list[_ArchiveDoc]:
    names = {doc.doc_id: _name(doc) for doc in request.docs}
    counted = Counter(names.values())
    places = []
    for doc in request.docs:
        described, name = request.described.get(doc.doc_id), names[doc.doc_id]
        unique = f"{name}--{sha256_hex(doc.lsid)[:12]}"
        path = described.source_path if described else ""
        if not (is_plain(path) and path.startswith(DOCS) and path.endswith(_MARKDOWN)):
            path = f"{DOCS}{unique}{_MARKDOWN}"
        selector = name if counted[name] == 1 else unique
        places.append(
            _ArchiveDoc(doc=doc, path=path, selector=described.selector if described else selector)
        )
    return sorted(places, key=lambda place: place.path)


def _name(doc: Doc) -> str:
    plain = slug(PurePosixPath(doc.source).stem).encode("ascii", "ignore").decode()
    return plain[:_NAME_CHARS_MAX].strip("-") or "doc"


def _export_doc(
    txn: ReadTxn,
    content: ContentStore,
    archive_doc: _ArchiveDoc,
    request: ArchiveSelection,
    model: EmbedderSpec,
) -> _ExportDoc | None:
    """A doc with its chunks and vectors; None if some of them are not made yet."""
    doc = archive_doc.doc
    rows = chunks.of_source(txn, doc.source_no)
    row_vectors = [
        chunks.get_vector(txn, model.fingerprint, row.text_hash, model.dim)
        for row in rows
        if row.doc_id == doc.doc_id and has_current_title(doc, row)
    ]
    vectors = [vector for vector in row_vectors if vector is not None]
    if not rows or len(vectors) < len(rows):
        return None
    # In a doc with pages a form feed separates them; a file of markdown has none, and is as long.
    markdown = content.read(doc.md_path, doc.md_sha256).decode().replace("\f", "\n")
    return _ExportDoc(
        about=_pack_doc(archive_doc, markdown, request),
        body=_guarded(markdown, archive_doc.path),
        cut=PortableDocChunks(doc=archive_doc.path, passages=tuple(_portable(row) for row in rows)),
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


def _pack_doc(archive_doc: _ArchiveDoc, markdown: str, request: ArchiveSelection) -> PackDoc:
    doc, described = archive_doc.doc, request.described.get(archive_doc.doc.doc_id)
    return PackDoc(
        id=described.id if described else derived_id(request.pack_id, archive_doc.selector),
        selector=archive_doc.selector,
        source_path=archive_doc.path,
        title=doc.label[:_TITLE_CHARS_MAX],
        summary=described.summary if described else first_paragraph(markdown),
        kind=described.kind if described else KIND_DEFAULT,
        tags=tuple(tag[:_TAG_CHARS_MAX] for tag in doc.tags[:_TAGS_MAX]),
        related=described.related if described else (),
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


def _matrix(export_docs: list[_ExportDoc], dim: int) -> "NDArray[np.float32]":
    import numpy as np

    rows = [vector for export_doc in export_docs for vector in export_doc.vectors]
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
