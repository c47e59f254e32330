"""The order: candidates are fused, once more with feedback, boosted and spread."""

from typing import TYPE_CHECKING, Final

from kb.model.config import SearchSettings
from kb.model.ids import ChunkNo
from kb.search.answer import Scored
from kb.search.candidates import Candidates, Gate
from kb.search.diversity import spread
from kb.search.fuse import Leg, fuse
from kb.search.index.scan import similarities
from kb.search.mentions import Asked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How many of the best are weighed against each other for likeness, per hit wanted.
_SPREAD_FACTOR: Final = 3
_DIGITS: Final = 6


class Ordering:
    """Orders the candidates of one question; k hits are wanted."""

    def __init__(self, settings: SearchSettings, k: int) -> None:
        self._settings = settings
        self._k = k

    def order(
        self,
        found: Candidates,
        vector: "NDArray[np.float32] | None",
        boosted: list[Asked],
        gate: Gate,
    ) -> list[Scored] | None:
        """The hits, best first: score descending, then passage id.

        None where one of the best may not appear: the caches brought what the store no longer
        shows, and the candidates are to be gathered through the gate.
        """
        import numpy as np

        if not found.nos or self._k < 1:
            return []
        fused = self._fused(found, found.dense)
        if vector is not None and not np.isnan(found.lexical).all():
            fused = self._fed_back(found, vector, fused)
        boosts = np.ones(len(found.nos))
        if boosted:
            boosts = np.array([self._boost(ChunkNo(no), boosted) for no in found.nos])
        scores = fused * boosts
        # A score is at most 1, however much is boosted.
        scores /= max(1.0, float(scores.max()))
        best = np.lexsort((np.array(found.nos), -scores))[: self._k * _SPREAD_FACTOR]

        def row(place: int) -> Scored | None:
            no = ChunkNo(found.nos[place])
            seen = gate.look(no)
            return seen and Scored(
                score=float(scores[place]),
                chunk=seen[0],
                doc=seen[1],
                lexical_rank=found.lexical_rank.get(no),
                dense_rank=found.dense_rank.get(no),
                fused=float(fused[place]),
                boost=float(boosts[place]),
                near=None if np.isnan(found.dense[place]) else float(found.dense[place]),
            )

        # Mostly nothing crowds, and those that come after the first k are not read.
        first = int((scores[best] >= scores[best[: self._k][-1]]).sum())
        for count in sorted({first, len(best)}):
            rows = [row(place) for place in best[:count].tolist()]
            pool = [one for one in rows if one is not None]
            if len(pool) < len(rows):
                return None
            hits, is_crowded = self._spread(pool, found)
            if not is_crowded:
                break
        return hits

    def _fused(self, found: Candidates, dense: "NDArray[np.float64]") -> "NDArray[np.float64]":
        import numpy as np

        weight = self._settings.lexical_weight
        legs: list[Leg] = []
        if not np.isnan(found.lexical).all():
            top_min = self._settings.lexical_top_share * found.lexical_ceiling
            legs.append(Leg(scores=found.lexical, weight=weight, floor=0.0, top_min=top_min))
        if not np.isnan(dense).all():
            legs.append(Leg(scores=dense, weight=1.0 - weight))
        spaced = self._settings.fusion == "spaced"
        return fuse(
            legs, k=self._settings.rrf_k, spaced=spaced, spacing_min=self._settings.candidates
        )

    def _fed_back(
        self,
        found: Candidates,
        vector: "NDArray[np.float32]",
        fused: "NDArray[np.float64]",
    ) -> "NDArray[np.float64]":
        """Fuse again, the query moved a little towards the best passages so far.

        Rocchio's relevance feedback (1971) on vectors, with the top passages taken as relevant.
        """
        import numpy as np

        count, weight = self._settings.feedback_passages, self._settings.feedback_weight
        best = np.lexsort((np.array(found.nos), -fused))[:count]
        present = ~np.isnan(found.dense)
        relevant = best[present[best]]
        if not weight or not len(relevant):
            return fused
        mean = found.vectors[relevant].mean(axis=0)
        length = float(np.linalg.norm(mean))
        if not length:
            return fused
        moved = (1.0 - weight) * vector + weight * (mean / length)
        moved = (moved / np.linalg.norm(moved)).astype(np.float32)
        return self._fused(found, similarities(found.vectors, present, moved))

    def _boost(self, no: ChunkNo, boosted: list[Asked]) -> float:
        boost = 1.0
        for one in boosted:
            if no in one.nos:
                boost *= self._settings.entity_boost
        return boost

    def _spread(self, pool: list[Scored], found: Candidates) -> tuple[list[Scored], bool]:
        """The k hits of the pool, and whether one of it had to give way."""
        import msgspec
        import numpy as np

        pool.sort(key=lambda row: (-row.score, row.chunk.chunk_id))
        chosen = spread(
            [row.score for row in pool],
            found.vectors[np.searchsorted(found.nos, [row.chunk.no for row in pool])],
            [row.chunk.text for row in pool],
            self._k,
            similarity_min=self._settings.mmr_similarity,
            crowd=self._settings.mmr_crowd,
        )
        hits = [
            msgspec.structs.replace(pool[place], score=round(score, _DIGITS))
            for place, score in chosen
        ]
        hits.sort(key=lambda row: (-row.score, row.chunk.chunk_id))
        is_crowded = chosen != [(place, row.score) for place, row in enumerate(pool[: self._k])]
        return hits, is_crowded
