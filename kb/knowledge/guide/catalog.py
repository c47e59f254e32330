"""Which sections of entries answer a question? Every store is searched, the best sections win.

Only entries are searched, whoever wrote them. Of an entry that several stores have, the copy of
the first store counts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import EmbedError, KbError, ModelMissing
from kb.knowledge.guide.answers import CatalogName, Guidance, GuideChunk
from kb.knowledge.guide.background import background_of
from kb.knowledge.guide.score import nearness, score_min, score_of, share
from kb.model.doc import Scope
from kb.model.search import Hit, SearchRequest
from kb.model.source import entry_lsid
from kb.search.index.analysis import terms
from kb.store import chunks, docs
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.search.engine import EmbeddedQuery, Searcher

CHUNKS_MAX: Final = 3
_CHUNKS: Final = 50
_DIGITS: Final = 4
_OWN: Final = "read `content`; `kb init` puts kb's own entries into your space, to be read whole"
_READ: Final = "read `content`; `kb show {id}` has the whole entry and what it refers to"
_MESSAGE: Final = "no entry answers this"
_SUGGESTION: Final = (
    "ask in other words, or search the docs; what should be known here can be written with `kb new`"
)


class EntryCatalog(Struct, frozen=True, kw_only=True):
    """The entries of one store."""

    name: CatalogName
    store: Callable[[], Store]
    """Opens the store on first use; raises what opening raises."""
    searcher: "Callable[[], Searcher]"


class ScoredSections(Struct, frozen=True, kw_only=True):
    """The best section of each entry of one store, with scores above and below the threshold."""

    chunks: tuple[GuideChunk, ...]
    score_min: float
    """The least score of a section that answers, under the store's model."""


def ask(
    catalogs: Sequence[EntryCatalog], question: str, scope: Scope, backgrounds: dict[str, float]
) -> Guidance:
    """The sections that answer a question for a scope, one of an entry, at most three.

    The first catalog's copy of an entry wins. `backgrounds` caches the background similarity of
    each model, by fingerprint. A catalog that cannot be read is left out with a warning; where
    none can be read, the first error is raised.
    """
    answering: list[GuideChunk] = []
    warnings: list[str] = []
    errors: list[Exception] = []
    for place, catalog in enumerate(catalogs):
        try:
            sections = scored(catalog, question, scope, backgrounds)
        except (KbError, OSError) as error:
            errors.append(error)
            reason = f": {error}" if scope.operator else ""
            warnings.append(f"the entries of {catalog.name} are left out{reason}")
        else:
            answering += [
                chunk
                for chunk in sections.chunks
                if chunk.score >= sections.score_min
                and not _is_in_earlier(catalogs[:place], chunk, scope)
            ]
    if errors and len(errors) == len(catalogs):
        raise errors[0]
    answering.sort(key=lambda chunk: (-chunk.score, chunk.zettel_id))
    if answering:
        suggestion = (
            _OWN if answering[0].source == "kb" else _READ.format(id=answering[0].zettel_id)
        )
        best = tuple(answering[:CHUNKS_MAX])
        return Guidance(found=True, chunks=best, suggestion=suggestion, warnings=tuple(warnings))
    return Guidance(found=False, message=_MESSAGE, suggestion=_SUGGESTION, warnings=tuple(warnings))


def scored(
    catalog: EntryCatalog, question: str, scope: Scope, backgrounds: dict[str, float]
) -> ScoredSections:
    """The best section of each entry that the search finds, in no order."""
    store = catalog.store()
    with store.read() as txn:
        if not any(True for _ in docs.with_facet(txn, "kind", "entry")):
            return ScoredSections(chunks=(), score_min=1.0)
    searcher = catalog.searcher()
    request = SearchRequest(
        query=question, verbatim=True, k=_CHUNKS, kinds=("entry",), rerank=False
    )
    hits = searcher.search(request, scope.within(store.caller)).hits
    embedded = searcher.embed_query(question)
    similarities = _nearness(catalog, hits, embedded, backgrounds)
    query_terms = terms(question)
    hit_terms = [frozenset(terms(f"{hit.title} {hit.text}")) for hit in hits]
    coverage = share(query_terms, frozenset[str]().union(*hit_terms))
    threshold = score_min(embedded.embedder.fingerprint if embedded else None)
    best: dict[str, GuideChunk] = {}
    for hit, section_terms in zip(hits, hit_terms, strict=True):
        similarity = similarities.get(hit.chunk_id, 0.0)
        score = round(score_of(similarity, coverage, share(query_terms, section_terms)), _DIGITS)
        previous = best.get(hit.doc_id)
        if previous is None or score > previous.score:
            best[hit.doc_id] = _chunk(catalog, hit, score)
    return ScoredSections(chunks=tuple(best.values()), score_min=threshold)


def _chunk(catalog: EntryCatalog, hit: Hit, score: float) -> GuideChunk:
    return GuideChunk(
        zettel_id=hit.zettel_id or "",
        title=hit.title,
        content=hit.text,
        score=score,
        source="kb" if catalog.name == "kb" else hit.source,
    )


def _nearness(
    catalog: EntryCatalog,
    hits: Sequence[Hit],
    embedded: "EmbeddedQuery | None",
    backgrounds: dict[str, float],
) -> Mapping[str, float]:
    """By chunk id, its similarity to the question; chunks without a vector are left out."""
    if embedded is None:
        return {}
    embedder = embedded.embedder
    fingerprint = embedder.fingerprint
    if fingerprint not in backgrounds:
        try:
            backgrounds[fingerprint] = background_of(embedder)
        except (ModelMissing, EmbedError):
            return {}
    similarities: dict[str, float] = {}
    with catalog.store().read() as txn:
        for hit in hits:
            chunk = chunks.by_id(txn, hit.chunk_id)
            if chunk is None:
                continue
            vector = chunks.get_vector(txn, fingerprint, chunk.text_hash, embedder.dim)
            if vector is not None:
                cosine = float(vector @ embedded.vector)
                similarities[hit.chunk_id] = nearness(cosine, backgrounds[fingerprint])
    return similarities


def _is_in_earlier(earlier: Sequence[EntryCatalog], chunk: GuideChunk, scope: Scope) -> bool:
    """Whether an earlier store has the entry too, for this scope."""
    for catalog in earlier:
        try:
            store = catalog.store()
            with store.read() as txn:
                doc = docs.latest_of(txn, entry_lsid(chunk.zettel_id))
        except (KbError, OSError):
            continue
        if (
            doc is not None
            and doc.status == "active"
            and doc.visible_to(scope.within(store.caller))
        ):
            return True
    return False
