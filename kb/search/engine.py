"""The pipeline: candidates, filter, fusion, boost, spread, text."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import EmbedError, ModelMissing
from kb.intake.embed.protocol import Embedder
from kb.intake.embed.scripts import can_read
from kb.model.config import SearchSettings
from kb.model.doc import Audience, Scope
from kb.model.ids import Lsid
from kb.model.search import Hit, SearchRequest, SearchResult
from kb.search.answer import Scored, hits_of
from kb.search.candidates import Candidates, ElsewhereGate, Gate, LearnCalls, gather, unite
from kb.search.door import open_id
from kb.search.filters import KnownAudiences, allowed_sources, audiences_read, has_filters
from kb.search.fit import OTHERS, asked, judged, rule_of
from kb.search.index import DenseIndex, LexicalIndexes
from kb.search.index.follow import CatchUp
from kb.search.index.result import Hits
from kb.search.mentions import Asked, align, look_up, required
from kb.search.order import Ordering
from kb.search.pending import Leg, lag, unfinished
from kb.store import chunks
from kb.store.content.files import ContentStore
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.intake.embed.protocol import FloatVector

logger = logging.getLogger(__name__)

_UNCUT: Final = "the doc has no passages yet, so nothing can be compared with it"
_OTHER_MODEL: Final = "what is here was embedded by another model, so it cannot be compared"


class Meaning(Struct, frozen=True, kw_only=True):
    """A model and the vectors made by it: only the two together can be asked."""

    embedder: Embedder
    dense: DenseIndex
    warning: str | None = None
    """Why it may not be the one that is wanted."""


def _asked_itself(embedder: Embedder, text: str) -> "FloatVector":
    return embedder.embed_query(text)


class Sources(Struct, frozen=True, kw_only=True):
    """Where the searcher gets what is costly; each is opened when first needed."""

    lexical: Callable[[], LexicalIndexes]
    meaning: Callable[[], Meaning]
    """Asked once to a question: the home's model may change between two."""
    embed_query: "Callable[[Embedder, str], FloatVector]" = _asked_itself


class Seed(Struct, frozen=True, kw_only=True):
    """A doc or a passage that others may be like; also in another home with the same model."""

    ident: str
    place: Lsid
    """Its source, none of whose passages is an answer."""
    fingerprint: str = ""
    """Of the model that made the vector."""
    vector: "FloatVector | None" = None
    """(dim,) float32 of length 1; None where there is none yet, as the warnings say."""
    warnings: tuple[str, ...]


class Understood(Struct, frozen=True, kw_only=True):
    """A text as a model reads it."""

    embedder: Embedder
    vector: "FloatVector"
    """(dim,) float32 of length 1."""


class _Question(Struct, frozen=True, kw_only=True):
    """A request made ready: what every step needs to know."""

    request: SearchRequest
    scope: Scope
    text: str
    wanted: int
    audiences: tuple[Audience, ...] = ()
    allowed: frozenset[int] | None = None
    restrict: frozenset[int] | None = None
    meaning: Meaning | None = None
    """None where it is searched by words alone."""
    warnings: list[str]


class Searcher:
    """Answers questions from one home; any number of threads may ask."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        sources: Sources,
        settings: SearchSettings,
        lock_wait_s: float,
        learn: LearnCalls = lambda _: None,
    ) -> None:
        self._store = store
        self._content = content
        self._sources = sources
        self._settings = settings
        self._lock_wait_s = lock_wait_s
        self._learn = learn
        self._known_audiences = KnownAudiences()

    def search(self, request: SearchRequest, scope: Scope) -> SearchResult:
        """Answer a question for a scope.

        Equal request, store and scope give equal bytes. Nothing the scope may not see has any
        part in hits or warnings. No query is an error: one without words or letters finds nothing
        and the warnings say so.
        """
        warnings: list[str] = []
        text = _readable(request.query, self._settings.query_chars_max, warnings)
        with self._store.read() as txn:
            asked = look_up(txn, request.require_entities, scope)
            boosted = look_up(txn, request.boost_entities, scope)
            warnings += [
                f"no passage mentions {one.argument}" for one in (*asked, *boosted) if not one.nos
            ]
            allowed = allowed_sources(txn, request, scope, self._known_audiences)
            audiences = audiences_read(txn, scope)
        question = _Question(
            request=request,
            scope=scope,
            text=text,
            wanted=max(self._settings.candidates, request.k),
            audiences=audiences,
            allowed=allowed,
            restrict=required(asked),
            meaning=self._meaning(request, text, warnings),
            warnings=warnings,
        )
        is_late = self._follow(question)
        with self._store.read() as txn:
            gate = Gate(txn, request, scope, self._learn)
            order = self._ordered(question, boosted, gate, is_late=is_late)
            hits, truncated = hits_of(txn, self._content, order, request, self._learn)
            alignment, more = align(txn, text, [one.chunk.no for one in order], scope)
            warnings += unfinished(txn, request.mode, scope)
        return SearchResult(
            query=request.query,
            mode=request.mode,
            hits=hits,
            entity_alignment=alignment,
            warnings=tuple(dict.fromkeys((*warnings, *more))),
            truncated=truncated,
        )

    def similar(self, ident: str, k: int, scope: Scope) -> SearchResult:
        """Passages of other docs that are most like a doc or a passage; none before it is cut.

        Raises NotFound where there is no such id for this scope, and AmbiguousId.
        """
        return self.like(self.seed(ident, scope), k, scope)

    def seed(self, ident: str, scope: Scope) -> Seed:
        """What an id names, as one vector. Raises as `similar` does."""
        import numpy as np

        with self._store.read() as txn:
            opened = open_id(txn, ident, scope)
            source_no = opened.doc.source_no
            seeds = [opened.chunk] if opened.chunk else chunks.of_source(txn, source_no)
        if not seeds:
            return Seed(ident=ident, place=opened.doc.place, warnings=(_UNCUT,))
        question = self._nearness(ident, 0, scope)
        dense = self._sources.meaning().dense
        self._follow_vectors(dense, question)
        rows, _ = dense.vectors([chunk.no for chunk in seeds])
        mean = rows.sum(axis=0)
        length = float(np.linalg.norm(mean))
        if not length:
            question.warnings.append("it has no vectors yet; run `kb worker --drain`")
        return Seed(
            ident=ident,
            place=opened.doc.place,
            fingerprint=dense.fingerprint,
            vector=(mean / length).astype(np.float32) if length else None,
            warnings=tuple(question.warnings),
        )

    def like(self, seed: Seed, k: int, scope: Scope) -> SearchResult:
        """Passages that are most like a seed, of this home or another, none of its own source."""
        question = self._nearness(seed.ident, k, scope)
        question.warnings.extend(seed.warnings)
        hits: tuple[Hit, ...] = ()
        if seed.vector is not None:
            dense = self._sources.meaning().dense
            if dense.fingerprint == seed.fingerprint:
                hits = self._nearest(seed, seed.vector, dense, question)
            else:
                question.warnings.append(_OTHER_MODEL)
        return SearchResult(
            query=seed.ident,
            mode="dense",
            hits=hits,
            entity_alignment=(),
            warnings=tuple(dict.fromkeys(question.warnings)),
        )

    def understood(self, query: str) -> Understood | None:
        """The query as the model reads it; None where it has no words that the model can read."""
        text = _readable(query, self._settings.query_chars_max, [])
        meaning = self._meaning(SearchRequest(query=query), text, [])
        if meaning is None:
            return None
        try:
            vector = self._sources.embed_query(meaning.embedder, text)
        except (ModelMissing, EmbedError):
            return None
        return Understood(embedder=meaning.embedder, vector=vector)

    def _nearness(self, ident: str, k: int, scope: Scope) -> _Question:
        return _Question(
            request=SearchRequest(query=ident, k=k, mode="dense"),
            scope=scope,
            text="",
            wanted=self._settings.candidates,
            warnings=[],
        )

    def _nearest(
        self,
        seed: Seed,
        vector: "NDArray[np.float32]",
        dense: DenseIndex,
        question: _Question,
    ) -> tuple[Hit, ...]:
        self._follow_vectors(dense, question)
        request = question.request
        with self._store.read() as txn:
            gate = ElsewhereGate(txn, request, question.scope, self._learn, seed.place)
            allowed = allowed_sources(txn, request, question.scope, self._known_audiences)
            found = gather(
                lambda limit: dense.search(vector, limit, allowed=allowed), gate, question.wanted
            )
            united = unite(None, found, dense, vector)
            ordering = Ordering(self._settings, request.k)
            order = ordering.order(united, None, [], gate) or []
            return hits_of(txn, self._content, order, request, self._learn)[0]

    def _follow(self, question: _Question) -> bool:
        """Bring the words level; whether what the caller may not see may still be among them."""
        if question.request.mode == "dense":
            return False
        state = self._sources.lexical().catch_up(
            self._store, wait_s=self._lock_wait_s, audiences=question.audiences
        )
        return self._is_late(state, "lexical", question)

    def _follow_vectors(self, dense: DenseIndex, question: _Question) -> bool:
        state = dense.catch_up(self._store, wait_s=self._lock_wait_s)
        return self._is_late(state, "dense", question)

    def _is_late(self, state: CatchUp, leg: Leg, question: _Question) -> bool:
        if state.behind or state.problem:
            with self._store.read() as txn:
                said = lag(txn, state, leg, question.scope)
            if said:
                question.warnings.append(said)
        return bool(state.behind) and not question.scope.operator

    def _ordered(
        self, question: _Question, boosted: list[Asked], gate: Gate, *, is_late: bool
    ) -> list[Scored]:
        """The hits. The caches filter by what the store said; where one was late, all are asked."""
        ordering = Ordering(self._settings, question.request.k)
        for through in (gate,) if is_late else (None, gate):
            candidates, vector = self._candidates(question, through, gate)
            order = ordering.order(candidates, vector, boosted, gate)
            if order is not None:
                return self._judged(question, order, candidates, by_meaning=vector is not None)
        return []

    def _judged(
        self, question: _Question, order: list[Scored], found: Candidates, *, by_meaning: bool
    ) -> list[Scored]:
        """The hits with how they fit, without those that score too little."""
        request, meaning = question.request, question.meaning
        rarity: Mapping[str, float] = {}
        if request.mode != "dense" and order:
            rarity = self._sources.lexical().rarity(question.text, question.audiences, OTHERS)
        fingerprint = meaning.embedder.fingerprint if meaning and by_meaning else None
        rule = rule_of(fingerprint, self._settings.fusion)
        return judged(order, asked(question.text, found, rarity), rule, request.min_score)

    def _candidates(
        self, question: _Question, through: Gate | None, gate: Gate
    ) -> "tuple[Candidates, NDArray[np.float32] | None]":
        lexical = self._lexical(question, through) if question.request.mode != "dense" else None
        vector = self._query_vector(question)
        if vector is None or question.meaning is None:
            return unite(lexical, None, None, None), None
        dense = question.meaning.dense
        is_late = self._follow_vectors(dense, question)
        found = gather(
            lambda limit: dense.search(
                vector, limit, allowed=question.allowed, restrict_nos=question.restrict
            ),
            gate if is_late else through,
            question.wanted,
        )
        ceiling = 0.0
        if lexical is not None and lexical.nos:
            ceiling = self._sources.lexical().ceiling(question.text, question.audiences)
        return unite(lexical, found, dense, vector, ceiling), vector

    def _lexical(self, question: _Question, gate: Gate | None) -> Hits:
        index = self._sources.lexical()
        # Which audiences are read says already who asks.
        named = question.scope.operator or has_filters(question.request)
        allowed = question.allowed if named else None
        return gather(
            lambda limit: index.search(
                question.text,
                limit,
                question.audiences,
                allowed=allowed,
                restrict_nos=question.restrict,
            ),
            gate,
            question.wanted,
        )

    def _meaning(self, request: SearchRequest, text: str, warnings: list[str]) -> Meaning | None:
        """The dense leg; None, with a warning, where it cannot read the query."""
        if request.mode == "lexical" or not any(letter.isalnum() for letter in text):
            return None
        try:
            meaning = self._sources.meaning()
        except (ModelMissing, EmbedError) as error:
            if request.mode == "dense":
                raise
            warnings.append(f"searched by words alone: {error}")
            return None
        if request.mode == "hybrid" and not can_read(meaning.embedder.scripts, text):
            warnings.append(
                "searched by words alone: the embedding model does not read this script"
            )
            return None
        if meaning.warning:
            warnings.append(meaning.warning)
        return meaning

    def _query_vector(self, question: _Question) -> "NDArray[np.float32] | None":
        """The query's vector; None, with a warning, where the model fails."""
        if question.meaning is None:
            return None
        try:
            return self._sources.embed_query(question.meaning.embedder, question.text)
        except (ModelMissing, EmbedError) as error:
            if question.request.mode == "dense":
                raise
            question.warnings.append(f"searched by words alone: {error}")
            return None


def _readable(query: str, chars_max: int, warnings: list[str]) -> str:
    text = query.replace("\0", " ").encode("utf-8", "replace").decode().strip()
    if len(text) > chars_max:
        warnings.append(f"the query was cut to its first {chars_max:,} characters")
        text = text[:chars_max]
    if not any(letter.isalnum() for letter in text):
        warnings.append("the query has no words to search for")
    return text
