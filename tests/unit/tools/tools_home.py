"""A small home whose tools can be called, by anybody."""

from pathlib import Path
from typing import Any, Final

import msgspec
from homes import SmallHome

from kb.home.open_home import OpenHome
from kb.home.spaces.spaces import Spaces
from kb.intake.ingest.request import IngestOptions
from kb.model.config import SearchSettings
from kb.model.doc import OPERATOR, Coverage, Doc, Scope
from kb.model.text import Chunk
from kb.operations.table import call
from kb.search.backends import DenseBackend, SearchBackends
from kb.search.engine import Searcher
from kb.store import chunks

NOBODY: Final = Scope(user=None)
BOB: Final = Scope(user="bob")
SCOPES: Final = (NOBODY, BOB, OPERATOR)


class ToolsHome(SmallHome):
    """A home with a kit over it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        sources = SearchBackends(
            lexical=lambda: self.lexical,
            dense=lambda _: DenseBackend(embedder=self.embedder, index=self.dense),
        )
        searcher = Searcher(self.store, self.content, sources, SearchSettings(), 5.0)
        self.kit = Spaces(
            [OpenHome(store=self.store, content=self.content, searcher=lambda: searcher)]
        )

    def give(self, name: str, text: str, *, work: bool = True, **ingest_options: Any) -> Doc:
        """Take a doc in with wishes: tags, visibility, owner, title."""
        ingest_options.setdefault("visibility", "public")
        request = msgspec.structs.replace(
            self.request(name, text), ingest_options=IngestOptions(**ingest_options)
        )
        return self._taken(request, work=work)

    def give_pages(self, name: str, pages: list[str]) -> Doc:
        """Take a public doc in that has pages."""
        request = self.request(name, "# Paged\n\n" + "\n".join(pages))
        canonical = msgspec.structs.replace(
            request.canonical,
            markdown="\n\f\n".join(pages) + "\n",
            coverage=Coverage(pages=len(pages), pages_with_text=len(pages)),
        )
        ingest_options = IngestOptions(visibility="public")
        request = msgspec.structs.replace(
            request, canonical=canonical, ingest_options=ingest_options
        )
        return self._taken(request, work=True)

    def _taken(self, request: Any, *, work: bool) -> Doc:
        doc_id = self.commit(self.ingestor.stage(request))
        if work:
            self.work()
        doc = self.doc(doc_id)
        assert doc is not None
        return doc

    def markdown(self, doc: Doc) -> str:
        return self.content.read(doc.md_path, doc.md_sha256).decode()

    def passages(self, doc: Doc) -> list[Chunk]:
        with self.store.read() as txn:
            return chunks.of_source(txn, doc.source_no)

    def raw(self, name: str, scope: Scope = OPERATOR, /, **arguments: object) -> bytes:
        """Call a tool."""
        return call(name, arguments, self.kit, scope)

    def ask(self, name: str, scope: Scope = OPERATOR, /, **arguments: object) -> Any:
        """Call a tool, and read its answer, which is none of an error."""
        said = msgspec.json.decode(self.raw(name, scope, **arguments))
        assert "error" not in said, said
        return said

    def error(self, name: str, scope: Scope = OPERATOR, /, **arguments: object) -> Any:
        """Call a tool, and read its error."""
        return msgspec.json.decode(self.raw(name, scope, **arguments))["error"]


def long_text(count: int, *, word: str = "kettle", title: str = "Long") -> str:
    """A markdown of many paragraphs, each of which is about a passage long."""
    lines = (
        " ".join(f"{word}{number} boils water for tea number {place}." for place in range(6))
        for number in range(count)
    )
    return f"# {title}\n\n" + "\n\n".join(lines) + "\n"
