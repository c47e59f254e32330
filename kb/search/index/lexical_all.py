"""The lexical caches of a home, one to an audience, so that none can tell of another's docs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock

from kb.model.doc import Audience
from kb.search.index.files import CacheDamaged
from kb.search.index.follow import CatchUp
from kb.search.index.joint import Frequencies, ceiling, guarded, rarities, together
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_engine import on_and_on, ranked
from kb.search.index.lexical_files import folder_of, manifest_path, remove_index
from kb.search.index.renewal import WORN_SHARE
from kb.search.index.result import NO_HITS, CacheStats, Hits
from kb.search.index.words import query_words, terms
from kb.store import docs, log
from kb.store.store import Store


class LexicalIndexes:
    """One `LexicalIndex` to each audience, under `folder`; each is opened when it is first asked.

    All docs of an audience are seen by the same scopes, so what an index knows of its docs, their
    number and lengths and the frequency of their words, may be known by whoever reads any of it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._parts: dict[Audience, LexicalIndex] = {}
        self._lock = Lock()

    def of(self, audience: Audience) -> LexicalIndex:
        """The index of one audience."""
        with self._lock:
            if audience not in self._parts:
                self._parts[audience] = LexicalIndex(self.folder, audience)
            return self._parts[audience]

    def in_use(self, store: Store) -> list[LexicalIndex]:
        """The indexes of the audiences that docs have; one that none has any more is let go."""
        with store.read() as txn:
            audiences = docs.audiences(txn)
        parts = [self.of(audience) for audience in audiences]
        with self._lock:
            gone = [self._parts.pop(audience) for audience in self._parts.keys() - audiences]
        for part in gone:
            part.close()
        return parts

    def catch_up(
        self,
        store: Store,
        *,
        wait_s: float,
        audiences: Collection[Audience] | None = None,
        rebuild: bool = False,
    ) -> CatchUp:
        """Bring the indexes of these audiences level, None being all that docs have.

        As `LexicalIndex.catch_up`; the outcome is that of the one that is furthest behind.
        """
        if audiences is None:
            parts = self.in_use(store)
        else:
            parts = [self.of(audience) for audience in audiences]
        outcomes = [part.catch_up(store, wait_s=wait_s, rebuild=rebuild) for part in parts]
        if any(outcome.rebuilt for outcome in outcomes) and manifest_path(self.folder).exists():
            # An index of all docs together, as there once was.
            remove_index(self.folder)
        return _worst(store, outcomes)

    def search(
        self,
        query: str,
        limit: int,
        audiences: Collection[Audience],
        *,
        allowed: frozenset[int] | None = None,
        restrict_nos: frozenset[int] | None = None,
        others: Sequence[Frequencies] = (),
    ) -> Hits:
        """The best `limit` passages of these audiences that hold any of the query's words.

        See `LexicalIndex.search`. A word's weight is that of all of them together,
        and of `others`, the indexes of other homes.
        """
        parts = [self.of(audience) for audience in audiences]
        if len(parts) == 1 and not others:
            return parts[0].search(query, limit, allowed=allowed, restrict_nos=restrict_nos)
        try:
            return _merged(parts, query, limit, allowed, restrict_nos, others)
        except CacheDamaged:
            for part in parts:
                part.mend()
        try:
            return _merged(parts, query, limit, allowed, restrict_nos, others)
        except CacheDamaged:
            return NO_HITS

    def frequencies(self, audiences: Collection[Audience]) -> list[Frequencies]:
        """The term frequencies of these audiences, for a search of another home.

        A damaged index counts for nothing: its own search mends it.
        """
        known = [self.of(audience).frequencies() for audience in audiences]
        return [guarded(one) for one in known if one]

    def ceiling(
        self, query: str, audiences: Collection[Audience], others: Sequence[Frequencies] = ()
    ) -> float:
        """What a passage of theirs could score that is full of the query's words; 0 at a loss."""
        known = [self.of(audience).frequencies() for audience in audiences]
        try:
            joint = together([*(one for one in known if one), *others])
            return ceiling(joint, query_words(query))
        except CacheDamaged:
            return 0.0

    def rarity(
        self,
        query: str,
        audiences: Collection[Audience],
        background: int,
        others: Sequence[Frequencies] = (),
    ) -> Mapping[str, float]:
        """The distinct words of a query, by how rare they are in their docs; none at a loss.

        They are counted as if there were `background` more rows, that hold none of them.
        """
        known = [self.of(audience).frequencies() for audience in audiences]
        try:
            joint = together([*(one for one in known if one), *others])
            return rarities(joint, terms(query), background)
        except CacheDamaged:
            return {}

    @property
    def in_memory(self) -> bool:
        """Whether any of them is held in memory alone, for want of a place to write."""
        return any(part.in_memory for part in self._opened())

    def stats(self) -> CacheStats:
        """How large they are together, as far as this process has them open."""
        each = [part.stats() for part in self._opened()]
        return CacheStats(
            watermark=min((one.watermark for one in each), default=-1),
            rows=sum(one.rows for one in each),
            dead_rows=sum(one.dead_rows for one in each),
            segments=sum(one.segments for one in each),
            size_bytes=sum(one.size_bytes for one in each),
            mode="bm25",
            in_memory=self.in_memory,
        )

    def renew(
        self,
        store: Store,
        *,
        wait_s: float,
        worn_share: float = WORN_SHARE,
        goes_on: Callable[[], bool] = on_and_on,
    ) -> list[str]:
        """Write anew which of the indexes in use are worn, one by one, as `LexicalIndex.renew`.

        Returns why not, a line each.
        """
        found = [
            part.renew(store, wait_s=wait_s, worn_share=worn_share, goes_on=goes_on)
            for part in self.in_use(store)
        ]
        return [problem for problem in found if problem]

    def manifests(self) -> list[str]:
        """The files of those that are open which change with all that they answer by."""
        return [str(manifest_path(part.folder)) for part in self._opened()]

    def remove_unused(self, store: Store) -> None:
        """Remove the indexes of audiences that no doc has."""
        for manifest in self.folder.glob("*/manifest.json"):
            folder = manifest.parent

            def is_unused(folder: Path = folder) -> bool:
                with store.read() as txn:
                    return folder not in {folder_of(self.folder, a) for a in docs.audiences(txn)}

            if is_unused():
                remove_index(folder, is_unused)

    def close(self) -> None:
        """Let go of the files."""
        for part in self._opened():
            part.close()

    def _opened(self) -> list[LexicalIndex]:
        with self._lock:
            return list(self._parts.values())


def _worst(store: Store, outcomes: Sequence[CatchUp]) -> CatchUp:
    if len(outcomes) == 1:
        return outcomes[0]
    with store.read() as txn:
        end = log.last_seq(txn)
    return CatchUp(
        watermark=min((outcome.watermark for outcome in outcomes), default=end),
        applied=sum(outcome.applied for outcome in outcomes),
        rebuilt=any(outcome.rebuilt for outcome in outcomes),
        behind=max((outcome.behind for outcome in outcomes), default=0),
        problem=next((outcome.problem for outcome in outcomes if outcome.problem), None),
    )


def _merged(
    parts: Sequence[LexicalIndex],
    query: str,
    limit: int,
    allowed: frozenset[int] | None,
    restrict_nos: frozenset[int] | None,
    others: Sequence[Frequencies],
) -> Hits:
    known = [part.frequencies() for part in parts]
    filled = [part for part, frequencies in zip(parts, known, strict=True) if frequencies]
    if len(filled) == 1 and not others:
        return filled[0].ranked(query, limit, allowed, restrict_nos)
    joint = together([*(one for one in known if one), *others])
    # A passage on its way from one audience to another may be in both.
    best: dict[int, float] = {}
    for part in filled:
        hits = part.ranked(query, limit, allowed, restrict_nos, joint)
        for no, score in zip(hits.nos, hits.scores, strict=True):
            best[no] = max(score, best.get(no, 0.0))
    return ranked([(score, no) for no, score in best.items()], limit)
