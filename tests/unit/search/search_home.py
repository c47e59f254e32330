"""A small home with a searcher over it, and docs of any owner in it."""

from pathlib import Path
from typing import Any, Final

import msgspec
from homes import SmallHome

from kb.intake.embed.protocol import Embedder
from kb.intake.ingest.request import IngestOptions
from kb.model.config import SearchSettings
from kb.model.doc import OPERATOR, Doc, Scope
from kb.model.search import SearchMode, SearchRequest, SearchResult
from kb.search.backends import DenseBackend, SearchBackends
from kb.search.engine import Searcher

MODES: Final[tuple[SearchMode, ...]] = ("hybrid", "lexical", "dense")


class SearchHome(SmallHome):
    """A home that can be asked."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.settings = SearchSettings()
        self.lock_wait_s = 5.0

    def give(self, name: str, text: str, *, work: bool = True, **ingest_options: Any) -> Doc:
        """Take a doc in with wishes: tags, visibility, owner, title."""
        request = msgspec.structs.replace(
            self.request(name, text), ingest_options=IngestOptions(**ingest_options)
        )
        doc_id = self.commit(self.ingestor.stage(request))
        if work:
            self.work()
        doc = self.doc(doc_id)
        assert doc is not None
        return doc

    def searcher(
        self, embedder: Embedder | None = None, kind: type[Searcher] = Searcher
    ) -> Searcher:
        """A searcher under the settings in force."""
        sources = SearchBackends(
            lexical=lambda: self.lexical,
            dense=lambda _: DenseBackend(embedder=embedder or self.embedder, index=self.dense),
        )
        return kind(self.store, self.content, sources, self.settings, self.lock_wait_s)

    def search(
        self,
        query: str,
        scope: Scope = OPERATOR,
        embedder: Embedder | None = None,
        **request: Any,
    ) -> SearchResult:
        """Ask."""
        return self.searcher(embedder).search(SearchRequest(query=query, **request), scope)


def titles(result: SearchResult) -> list[str]:
    """The titles of the hits in order."""
    return [hit.title for hit in result.hits]
