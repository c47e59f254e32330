"""Ordering: fuses the candidates, applies feedback and boosts, reranks, and diversifies."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from kb.model.config import SearchSettings
from kb.model.doc import Doc
from kb.model.ids import ChunkNo
from kb.model.text import Chunk, indexed_text
from kb.search.candidates import Candidates, RankedChunks, WordCandidates
from kb.search.diversify import diversify
from kb.search.entities import EntityMatches
from kb.search.fuse import LegScores, fuse, fuse_words, supported
from kb.search.hits import ScoredChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.rerank import Reranking

_DIGITS: Final = 6
# What of the weight of the meaning remains where the model hardly knows the query's language.
_UNFAMILIAR_SHARE: Final = 0.2
# Among so many of the best, what mails repeat of others is looked up.
_COMPARED: Final = 100


class _Scored(Struct, frozen=True, kw_only=True):
    """The n candidates and what is known of each."""

    candidates: Candidates | WordCandidates
    fused: list[float]
    boosts: list[float]
    scores: list[float]
    best: list[int]
    """Their positions, by descending score."""


class Unjudged(Struct, frozen=True, kw_only=True):
    """The candidates that a leg cannot judge."""

    foreign: "NDArray[np.bool_]"
    """By words, for they are in another language; shape (n,)."""
    named: "NDArray[np.intp]"
    """By meaning; positions of those with the whole query in their names, best first."""


def _rows(scored: _Scored, positions: list[int], chunks: RankedChunks) -> list[ScoredChunk] | None:
    """The candidates at these positions; None where one of them may not appear."""
    candidates = scored.candidates
    found: list[ScoredChunk] = []
    chunks.expect([candidates.nos[position] for position in positions])
    for position in positions:
        no = ChunkNo(candidates.nos[position])
        admitted = chunks.admit(no)
        if admitted is None:
            return None
        # It names what other chunks of its doc say, which are found by it, too.
        is_bare = chunks.is_bare_title(*admitted)
        found.append(
            ScoredChunk(
                rank_score=0.0 if is_bare else scored.scores[position],
                chunk=admitted[0],
                doc=admitted[1],
                lexical_rank=candidates.lexical_rank.get(no),
                dense_rank=candidates.dense_rank.get(no),
                fused=scored.fused[position],
                boost=scored.boosts[position],
                cosine=candidates.cosine(position),
            )
        )
    return found


class Ordering:
    """Orders the candidates of one query and selects k hits."""

    def __init__(
        self, settings: SearchSettings, k: int, reranking: "Reranking | None" = None
    ) -> None:
        self._settings = settings
        self._k = k
        self._reranking = reranking
        self._reranked_max = reranking.count if reranking else 0
        self._compared = max(_COMPARED, self._reranked_max)

    def order(
        self,
        candidates: Candidates | WordCandidates,
        vector: "NDArray[np.float32] | None",
        boosted: Sequence[EntityMatches],
        candidate_filter: RankedChunks,
        called: frozenset[int] = frozenset(),
        query: str = "",
    ) -> list[ScoredChunk] | None:
        """The hits, best first: by descending rank score, then by chunk id.

        The hits of a smaller k are the first of those of a larger one. Bare titles come last.
        `called` are the first chunks of docs that go by the query as their name.
        `vector` is the query's, shape (dim,), of length 1; without it there is no feedback.
        `query` is its text, which names of docs are compared with.

        None where one of the best may not appear: an index is behind the store, so the caller must
        gather the candidates again through the filter.
        """
        if not candidates.nos or self._k < 1:
            return []
        fused = self._fused_scores(candidates, vector, candidate_filter, query)
        if fused is None:
            return None
        boosts = [1.0] * len(candidates.nos)
        if called:
            from kb.search.named import name_boosts

            boosts = name_boosts(called, candidates.nos, fused, candidate_filter, query)
        boosts = self._with_entities(boosts, candidates.nos, boosted)
        scored = _scored(candidates, fused, boosts)
        best, scores = scored.best, scored.scores
        first = _rows(scored, best[: self._reranked_max], candidate_filter)
        if first is None:
            return None
        pool = self._reranked(first)
        # Mostly there are no near-duplicates, and then only the first k and their ties are read.
        # Else more are, until no other has the score of the last hit.
        count = self._first_count(scored)
        while True:
            more = _rows(scored, best[len(pool) : count], candidate_filter)
            if more is None:
                return None
            pool += more
            compared = min(len(best), self._compared)
            if len(pool) < compared and any(row.is_repeated for row in pool):
                # What they repeat may stand behind them.
                count = compared
                continue
            hits = self._diversified(pool, candidates)
            if len(pool) == len(best) or scores[best[len(pool)]] < hits[-1].rank_score:
                return hits
            count = min(len(best), 2 * len(pool))
            candidate_filter.expect([candidates.nos[place] for place in best[len(pool) :]])

    def _first_count(self, scored: _Scored) -> int:
        """How many are the first k and those that tie with the last of them."""
        best, scores = scored.best, scored.scores
        count = min(self._k, len(best))
        while count < len(best) and scores[best[count]] == scores[best[count - 1]]:
            count += 1
        return count

    def _fused_scores(
        self,
        candidates: Candidates | WordCandidates,
        vector: "NDArray[np.float32] | None",
        candidate_filter: RankedChunks,
        query: str,
    ) -> "list[float] | NDArray[np.float64] | None":
        """The fused scores; None as in `order`."""
        if isinstance(candidates, WordCandidates):
            return fuse_words(
                candidates.lexical,
                self._settings.lexical_weight,
                spaced=self._settings.fusion == "spaced",
                spacing_min=self._settings.candidates,
            )
        import numpy as np

        foreign = self._foreign(candidates, candidate_filter)
        named: NDArray[np.intp] | None = np.array([], dtype=np.intp)
        mute = np.flatnonzero(np.isnan(candidates.dense))
        if 0 < len(mute) < len(candidates.nos):
            from kb.search.named import named_places

            named = named_places(candidates, mute, candidate_filter, query)
        if foreign is None or named is None:
            return None
        unjudged = Unjudged(foreign=foreign, named=named)
        fused = self._fused(candidates, candidates.dense, unjudged)
        if vector is None or np.isnan(candidates.lexical).all():
            return fused
        fused = self._with_feedback(candidates, vector, fused, unjudged)
        return supported(fused, candidates.vectors, ~np.isnan(candidates.dense))

    def _foreign(
        self, candidates: Candidates, candidate_filter: RankedChunks
    ) -> "NDArray[np.bool_] | None":
        """Which candidates words cannot judge; None where one that is read may not appear."""
        import numpy as np

        if not candidates.reading.query or self._settings.lexical_weight in {0.0, 1.0}:
            return np.zeros(len(candidates.nos), dtype=bool)
        from kb.search.languages import foreign_places

        pairs: list[tuple[Chunk, Doc] | None] = []

        def read_at(place: int) -> tuple[int, str]:
            pairs.append(candidate_filter.admit(ChunkNo(candidates.nos[place])))
            return (pairs[-1][0].source_no, pairs[-1][0].text) if pairs[-1] else (0, "")

        marked = foreign_places(
            candidates.reading.query,
            candidates.lexical,
            candidates.dense,
            read_at,
            lambda places: candidate_filter.expect([candidates.nos[place] for place in places]),
        )
        return None if None in pairs else marked

    def _fused(
        self,
        candidates: Candidates,
        dense: "NDArray[np.float64]",
        unjudged: Unjudged,
    ) -> "NDArray[np.float64]":
        import numpy as np

        familiarity = candidates.reading.familiarity
        meaning = (1.0 - self._settings.lexical_weight) * (
            _UNFAMILIAR_SHARE + (1.0 - _UNFAMILIAR_SHARE) * familiarity
        )
        weight = 1.0 - meaning
        legs: list[LegScores] = []
        if not np.isnan(candidates.lexical).all():
            top_min = self._settings.lexical_top_share * candidates.lexical_ceiling
            legs.append(
                LegScores(
                    scores=candidates.lexical,
                    weight=weight,
                    floor=0.0,
                    top_min=top_min,
                    silent=unjudged.foreign,
                )
            )
        if not np.isnan(dense).all():
            # What has no vector yet, or never has one, meaning cannot judge.
            mute = np.isnan(dense)
            if len(unjudged.named):
                from kb.search.named import with_names

                dense = with_names(dense, unjudged.named)
            legs.append(LegScores(scores=dense, weight=meaning, silent=mute))
        spaced = self._settings.fusion == "spaced"
        return fuse(
            legs, k=self._settings.rrf_k, spaced=spaced, spacing_min=self._settings.candidates
        )

    def _with_feedback(
        self,
        candidates: Candidates,
        vector: "NDArray[np.float32]",
        fused: "NDArray[np.float64]",
        unjudged: Unjudged,
    ) -> "NDArray[np.float64]":
        """Fuse again, with the query vector moved a little towards the best chunks so far.

        Rocchio's relevance feedback (1971) on vectors; the top chunks are assumed to be relevant.
        """
        import numpy as np

        from kb.search.index.scan import masked_cosines

        count, weight = self._settings.feedback_passages, self._settings.feedback_weight
        # They ascend by number.
        best = np.argsort(-fused, kind="stable")[:count]
        present = ~np.isnan(candidates.dense)
        relevant = best[present[best]]
        if not weight or not len(relevant):
            return fused
        mean = candidates.vectors[relevant].mean(axis=0)
        length = float(np.linalg.norm(mean))
        if not length:
            return fused
        moved = (1.0 - weight) * vector + weight * (mean / length)
        moved = (moved / np.linalg.norm(moved)).astype(np.float32)
        return self._fused(candidates, masked_cosines(candidates.vectors, present, moved), unjudged)

    def _with_entities(
        self, boosts: list[float], nos: Sequence[int], boosted: Sequence[EntityMatches]
    ) -> list[float]:
        factor = self._settings.entity_boost
        for one in boosted:
            held = [no in one.chunk_nos for no in nos]
            boosts = [b * factor if is_held else b for b, is_held in zip(boosts, held, strict=True)]
        return boosts

    def _reranked(self, pool: list[ScoredChunk]) -> list[ScoredChunk]:
        """The pool as the reranker orders it; bare titles stay.

        A chunk gets the score of the place that it takes.
        """
        if self._reranking is None:
            return pool
        from kb.search.rerank import Candidate

        bare = [row for row in pool if not row.rank_score]
        pool = [row for row in pool if row.rank_score]
        order = self._reranking.order(
            [
                Candidate(
                    key=row.chunk.chunk_id,
                    text=indexed_text(row.doc.label, row.chunk.heading, row.chunk.text),
                    boost=row.boost,
                )
                for row in pool
            ]
        )
        ordered = [
            structs.replace(pool[position], rank_score=pool[place].rank_score, rerank=score)
            for place, (position, score) in enumerate(order)
        ]
        return [*ordered, *bare]

    def _diversified(
        self, rows: list[ScoredChunk], candidates: Candidates | WordCandidates
    ) -> list[ScoredChunk]:
        """The k hits of these rows, surplus near-duplicates later and with less."""
        if any(row.is_repeated for row in rows):
            from kb.search.repeated import own_first

            rows = [*own_first(rows[: self._compared]), *rows[self._compared :]]
        pool = sorted(rows, key=lambda row: row.sort_key)
        vectors = None
        if not isinstance(candidates, WordCandidates):
            vectors = candidates.vectors[
                [bisect_left(candidates.nos, row.chunk.no) for row in pool]
            ]
        selected = diversify(
            [row.rank_score for row in pool],
            vectors,
            [row.chunk.text for row in pool],
            self._k,
            similarity_min=self._settings.mmr_similarity,
            near_duplicates_max=self._settings.mmr_crowd,
        )
        return [
            structs.replace(pool[position], rank_score=round(score, _DIGITS + 1))
            for position, score in selected
        ]


def _scored(
    candidates: Candidates | WordCandidates,
    fused: "list[float] | NDArray[np.float64]",
    boosts: list[float],
) -> _Scored:
    """The candidates by their boosted scores, which are at most 1, however much is boosted."""
    if isinstance(fused, list):
        boosted = [score * boost for score, boost in zip(fused, boosts, strict=True)]
        top = max(1.0, *boosted)
        scores = [round(score / top, _DIGITS) for score in boosted]
        # They ascend by number, and sorting is stable.
        best = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        return _Scored(candidates=candidates, fused=fused, boosts=boosts, scores=scores, best=best)
    import numpy as np

    rounded = fused * np.array(boosts)
    rounded = np.round(rounded / max(1.0, float(rounded.max())), _DIGITS)
    return _Scored(
        candidates=candidates,
        fused=fused.tolist(),
        boosts=boosts,
        scores=rounded.tolist(),
        best=np.argsort(-rounded, kind="stable").tolist(),
    )
