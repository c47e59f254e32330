"""Records with every field filled, for tests that care about one or two of them."""

from typing import Any

import msgspec

from kb.model.doc import Doc
from kb.model.ids import ChunkNo, DocId, Lsid, SourceNo, chunk_id, doc_id, sha256_hex
from kb.model.text import Chunk, Mention


def make_doc(source_no: int = 1, version: int = 1, **changes: Any) -> Doc:
    """An active public doc of the source that `source_no` numbers."""
    lsid = Lsid(f"file:///notes/{source_no}.md")
    doc = Doc(
        doc_id=doc_id(lsid, version),
        lsid=lsid,
        source_no=SourceNo(source_no),
        version=version,
        title=f"Note {source_no}",
        source=f"/notes/{source_no}.md",
        kind="file",
        mime="text/markdown",
        tags=(),
        date=None,
        visibility="public",
        owner="local",
        status="active",
        raw_sha256=sha256_hex(f"raw {source_no} {version}"),
        raw_path="raw/00/00.md",
        md_path="md/file/note.md",
        md_sha256=sha256_hex(f"md {source_no} {version}"),
        raw_bytes=10,
        md_chars=10,
        coverage=None,
        canonicalizer="markdown-1",
        added_ms=1,
        updated_ms=1,
    )
    return msgspec.structs.replace(doc, **changes)


def make_chunk(
    no: int, text: str, *, source_no: int = 1, ordinal: int = 0, mentions: tuple[Mention, ...] = ()
) -> Chunk:
    """A passage of a source, numbered `no`, mentioning what `mentions` says."""
    lsid = Lsid(f"file:///notes/{source_no}.md")
    return Chunk(
        chunk_id=chunk_id(lsid, text, 0),
        no=ChunkNo(no),
        doc_id=DocId("d0"),
        lsid=lsid,
        ordinal=ordinal,
        text=text,
        start=0,
        end=len(text),
        heading=(),
        page=None,
        line=1,
        text_hash=sha256_hex(text)[:32],
        tokens=len(text.split()),
        source_no=SourceNo(source_no),
        entities=tuple(mention.key for mention in mentions),
    )
