"""Which sections of entries answer a question? Every store is asked, and the best ones are given.

Only entries are asked, whoever wrote them. Of an entry that several stores have, the copy of the
first one counts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import EmbedError, KbError, ModelMissing
from kb.knowledge.guide.answers import Guidance, GuideChunk, ShelfName
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
_PASSAGES: Final = 50
_DIGITS: Final = 4
_OWN: Final = "read `content`; `kb init` puts kb's own entries into your space, to be read whole"
_READ: Final = "read `content`; `kb show {id}` has the whole entry and what it refers to"
_MESSAGE: Final = "no entry answers this"
_SUGGESTION: Final = (
    "ask in other words, or search the docs; what should be known here can be written with `kb new`"
)


class Shelf(Struct, frozen=True, kw_only=True):
    """The entries of one store."""

    name: ShelfName
    store: Callable[[], Store]
    """Opened when it is first asked; may raise what opening raises."""
    searcher: "Callable[[], Searcher]"


class Scored(Struct, frozen=True, kw_only=True):
    """The best section of each entry that one store brings, sure or not."""

    chunks: tuple[GuideChunk, ...]
    score_min: float
    """From where on they answer, under the store's model."""


def ask(
    shelves: Sequence[Shelf], question: str, scope: Scope, backgrounds: dict[str, float]
) -> Guidance:
    """The sections that answer a question for a scope, one of an entry, at most three.

    The first shelf's copy of an entry wins. `backgrounds` keeps what was measured of models, by
    fingerprint. A shelf that cannot be read is left out with a warning; raises its error where
    none can.
    """
    sure: list[GuideChunk] = []
    warnings: list[str] = []
    errors: list[Exception] = []
    for place, shelf in enumerate(shelves):
        try:
            found = scored(shelf, question, scope, backgrounds)
        except (KbError, OSError) as error:
            errors.append(error)
            reason = f": {error}" if scope.operator else ""
            warnings.append(f"the entries of {shelf.name} are left out{reason}")
        else:
            sure += [
                chunk
                for chunk in found.chunks
                if chunk.score >= found.score_min and not _is_held(shelves[:place], chunk, scope)
            ]
    if errors and len(errors) == len(shelves):
        raise errors[0]
    sure.sort(key=lambda chunk: (-chunk.score, chunk.zettel_id))
    if sure:
        said = _OWN if sure[0].source == "kb" else _READ.format(id=sure[0].zettel_id)
        best = tuple(sure[:CHUNKS_MAX])
        return Guidance(found=True, chunks=best, suggestion=said, warnings=tuple(warnings))
    return Guidance(found=False, message=_MESSAGE, suggestion=_SUGGESTION, warnings=tuple(warnings))


def scored(shelf: Shelf, question: str, scope: Scope, backgrounds: dict[str, float]) -> Scored:
    """The best section of each of the entries that come into question, in no order."""
    with shelf.store().read() as txn:
        if not any(True for _ in docs.with_facet(txn, "kind", "entry")):
            return Scored(chunks=(), score_min=1.0)
    searcher = shelf.searcher()
    request = SearchRequest(query=question, k=_PASSAGES, kinds=("entry",))
    hits = searcher.search(request, scope).hits
    embedded = searcher.embed_query(question)
    near = _nearness(shelf, hits, embedded, backgrounds)
    asked = terms(question)
    said = [frozenset(terms(f"{hit.title} {hit.text}")) for hit in hits]
    known = share(asked, frozenset[str]().union(*said))
    least = score_min(embedded.embedder.fingerprint if embedded else None)
    best: dict[str, GuideChunk] = {}
    for hit, words in zip(hits, said, strict=True):
        near_by = near.get(hit.chunk_id, 0.0)
        score = round(score_of(near_by, known, share(asked, words)), _DIGITS)
        held = best.get(hit.doc_id)
        if held is None or score > held.score:
            best[hit.doc_id] = _chunk(shelf, hit, score)
    return Scored(chunks=tuple(best.values()), score_min=least)


def _chunk(shelf: Shelf, hit: Hit, score: float) -> GuideChunk:
    return GuideChunk(
        zettel_id=hit.zettel_id or "",
        title=hit.title,
        content=hit.text,
        score=score,
        source="kb" if shelf.name == "kb" else hit.source,
    )


def _nearness(
    shelf: Shelf,
    hits: Sequence[Hit],
    embedded: "EmbeddedQuery | None",
    backgrounds: dict[str, float],
) -> Mapping[str, float]:
    """By passage id, how near it is in meaning; nothing of one without a vector."""
    if embedded is None:
        return {}
    embedder = embedded.embedder
    fingerprint = embedder.fingerprint
    if fingerprint not in backgrounds:
        try:
            backgrounds[fingerprint] = background_of(embedder)
        except (ModelMissing, EmbedError):
            return {}
    near: dict[str, float] = {}
    with shelf.store().read() as txn:
        for hit in hits:
            chunk = chunks.by_id(txn, hit.chunk_id)
            if chunk is None:
                continue
            vector = chunks.get_vector(txn, fingerprint, chunk.text_hash, embedder.dim)
            if vector is not None:
                cosine = float(vector @ embedded.vector)
                near[hit.chunk_id] = nearness(cosine, backgrounds[fingerprint])
    return near


def _is_held(earlier: Sequence[Shelf], chunk: GuideChunk, scope: Scope) -> bool:
    """Whether an earlier store has the entry too, for this scope."""
    for shelf in earlier:
        try:
            with shelf.store().read() as txn:
                doc = docs.latest_of(txn, entry_lsid(chunk.zettel_id))
        except (KbError, OSError):
            continue
        if doc is not None and doc.status == "active" and doc.visible_to(scope):
            return True
    return False
