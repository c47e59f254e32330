"""Hits made by hand."""

from typing import Any, Final

from kb.model.ids import ChunkId, DocId
from kb.model.search import Hit, Legs, SearchResult

TEA: Final = "Green tea is brewed at 70 degrees for two minutes. Black tea needs boiling water."
MILL: Final = "The mill in Graz roasts on Tuesdays. Its owner is Ann."


def hit(text: str, **changes: Any) -> Hit:
    """A hit of one passage."""
    said: dict[str, Any] = {
        "rank": 1,
        "score": 1.0,
        "chunk_id": ChunkId("c1"),
        "doc_id": DocId("d1"),
        "title": "A",
        "source": "/notes/a.md",
        "kind": "file",
        "tags": (),
        "heading": (),
        "text": text,
        "start": 0,
        "end": len(text),
        "page": None,
        "line": 3,
        "freshness": "fresh",
        "legs": Legs(lexical=1, dense=None),
    }
    return Hit(**{**said, **changes})


def found(*hits: Hit, warnings: tuple[str, ...] = (), truncated: str | None = None) -> SearchResult:
    """What a search brings."""
    return SearchResult(
        query="q",
        mode="hybrid",
        hits=hits,
        entity_alignment=(),
        warnings=warnings,
        truncated=truncated,
    )
