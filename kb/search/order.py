"""Ordering: fuses the candidates, applies relevance feedback and boosts, and diversifies."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kb.model.config import SearchSettings
from kb.model.ids import ChunkNo
from kb.search.candidates import Candidates, RankedChunks
from kb.search.diversify import diversify
from kb.search.entities import EntityMatches
from kb.search.fuse import LegScores, fuse
from kb.search.hits import ScoredChunk
from kb.search.index.scan import masked_cosines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS: Final = 6
# Who types a doc's whole name wants that doc, whatever others say of it.
_NAME_BOOST: Final = 2.0


class Ordering:
    """Orders the candidates of one query and selects k hits."""

    def __init__(self, settings: SearchSettings, k: int) -> None:
        self._settings = settings
        self._k = k

    def order(
        self,
        candidates: Candidates,
        vector: "NDArray[np.float32] | None",
        boosted: Sequence[EntityMatches],
        candidate_filter: RankedChunks,
        called: frozenset[int] = frozenset(),
    ) -> list[ScoredChunk] | None:
        """The hits, best first: by descending rank score, then by chunk id.

        The hits of a smaller k are the first of those of a larger one. Bare titles come last.
        `called` are the first chunks of docs that go by the query as their name.
        `vector` is the query's, shape (dim,), of length 1; without it there is no feedback.

        None where one of the best may not appear: an index is behind the store, so the caller must
        gather the candidates again through the filter.
        """
        import numpy as np

        if not candidates.nos or self._k < 1:
            return []
        fused = self._fused(candidates, candidates.dense)
        if vector is not None and not np.isnan(candidates.lexical).all():
            fused = self._with_feedback(candidates, vector, fused)
        boosts = np.ones(len(candidates.nos))
        if boosted or called:
            boosts = np.array([self._boost(ChunkNo(no), boosted, called) for no in candidates.nos])
        scores = fused * boosts
        # A score is at most 1, however much is boosted.
        scores = np.round(scores / max(1.0, float(scores.max())), _DIGITS)
        best = np.lexsort((np.array(candidates.nos), -scores))

        # Mostly there are no near-duplicates, and then only the first k and their ties are read.
        # Else more are, until no other has the score of the last hit.
        count = int((scores[best] >= scores[best[: self._k][-1]]).sum())
        pool: list[ScoredChunk] = []
        while True:
            for position in best[len(pool) : count].tolist():
                no = ChunkNo(candidates.nos[position])
                admitted = candidate_filter.admit(no)
                if admitted is None:
                    return None
                # It names what other chunks of its doc say, which are found by it, too.
                is_bare = candidate_filter.is_bare_title(*admitted)
                pool.append(
                    ScoredChunk(
                        rank_score=0.0 if is_bare else float(scores[position]),
                        chunk=admitted[0],
                        doc=admitted[1],
                        lexical_rank=candidates.lexical_rank.get(no),
                        dense_rank=candidates.dense_rank.get(no),
                        fused=float(fused[position]),
                        boost=float(boosts[position]),
                        cosine=candidates.cosine(position),
                    )
                )
            hits = self._diversified(pool, candidates)
            if count == len(best) or scores[best[count]] < hits[-1].rank_score:
                return hits
            count = min(len(best), 2 * count)

    def _fused(self, candidates: Candidates, dense: "NDArray[np.float64]") -> "NDArray[np.float64]":
        import numpy as np

        weight = self._settings.lexical_weight
        legs: list[LegScores] = []
        if not np.isnan(candidates.lexical).all():
            top_min = self._settings.lexical_top_share * candidates.lexical_ceiling
            legs.append(
                LegScores(scores=candidates.lexical, weight=weight, floor=0.0, top_min=top_min)
            )
        if not np.isnan(dense).all():
            legs.append(LegScores(scores=dense, weight=1.0 - weight))
        spaced = self._settings.fusion == "spaced"
        return fuse(
            legs, k=self._settings.rrf_k, spaced=spaced, spacing_min=self._settings.candidates
        )

    def _with_feedback(
        self,
        candidates: Candidates,
        vector: "NDArray[np.float32]",
        fused: "NDArray[np.float64]",
    ) -> "NDArray[np.float64]":
        """Fuse again, with the query vector moved a little towards the best chunks so far.

        Rocchio's relevance feedback (1971) on vectors; the top chunks are assumed to be relevant.
        """
        import numpy as np

        count, weight = self._settings.feedback_passages, self._settings.feedback_weight
        best = np.lexsort((np.array(candidates.nos), -fused))[:count]
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
        return self._fused(candidates, masked_cosines(candidates.vectors, present, moved))

    def _boost(
        self, no: ChunkNo, boosted: Sequence[EntityMatches], called: frozenset[int]
    ) -> float:
        boost = _NAME_BOOST if no in called else 1.0
        for entity in boosted:
            if no in entity.chunk_nos:
                boost *= self._settings.entity_boost
        return boost

    def _diversified(self, rows: list[ScoredChunk], candidates: Candidates) -> list[ScoredChunk]:
        """The k hits of these rows, surplus near-duplicates later and with less."""
        import msgspec
        import numpy as np

        pool = sorted(rows, key=lambda row: (-row.rank_score, row.chunk.chunk_id))
        selected = diversify(
            [row.rank_score for row in pool],
            candidates.vectors[np.searchsorted(candidates.nos, [row.chunk.no for row in pool])],
            [row.chunk.text for row in pool],
            self._k,
            similarity_min=self._settings.mmr_similarity,
            near_duplicates_max=self._settings.mmr_crowd,
        )
        return [
            msgspec.structs.replace(pool[position], rank_score=round(score, _DIGITS + 1))
            for position, score in selected
        ]
