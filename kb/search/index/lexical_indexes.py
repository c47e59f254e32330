"""The lexical indexes of a home: one per audience, so that scores tell nothing of other docs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

from kb.model.doc import Audience
from kb.search.index.analysis import name_keys, query_words, terms
from kb.search.index.files import CacheDamaged
from kb.search.index.hits import NO_HITS, IndexHits, IndexStats
from kb.search.index.idf import (
    TermFrequencies,
    merge_frequencies,
    score_ceiling,
    term_weights,
    without_damage,
)
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_files import DEAD_SHARE_MAX, folder_of, manifest_path, remove_index
from kb.search.index.lexical_query import Holding, called_holders, definition_holders
from kb.search.index.lexical_tantivy import always, rank_rows
from kb.search.index.log_follower import CatchUpReport
from kb.store import docs, embedders, log
from kb.store.store import Store

_NAMESAKES_MAX: Final = 64


class LexicalIndexes:
    """One `LexicalIndex` per audience, under `folder`; each is opened at its first use.

    The same scopes see all docs of an audience. So the statistics of its index (number and lengths
    of docs, term frequencies) tell a scope nothing of docs that it may not see.
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
        """The indexes of all audiences that docs have; closes those of other audiences."""
        with store.read() as txn:
            # Who follows the words follows the vectors next.
            embedders.expect(txn)
            audiences = docs.audiences(txn)
        parts = [self.of(audience) for audience in audiences]
        with self._lock:
            unused = [self._parts.pop(audience) for audience in self._parts.keys() - audiences]
        for part in unused:
            part.close()
        return parts

    def catch_up(
        self,
        store: Store,
        *,
        wait_s: float,
        audiences: Collection[Audience] | None = None,
        rebuild: bool = False,
        commit: int | None = None,
    ) -> CatchUpReport:
        """Bring the indexes of these audiences up to date; None is all audiences that docs have.

        As `LexicalIndex.catch_up`, with one report for all, as far behind as the furthest.
        """
        if audiences is None:
            parts = self.in_use(store)
        else:
            parts = [self.of(audience) for audience in audiences]
        reports = [
            part.catch_up(store, wait_s=wait_s, rebuild=rebuild, commit=commit) for part in parts
        ]
        if any(report.rebuilt for report in reports) and manifest_path(self.folder).exists():
            # Left by an old version: one index of all docs.
            remove_index(self.folder)
        return _combined(store, reports)

    def is_level(self, store: Store) -> bool:
        """Whether those of all audiences that docs have are, as `LexicalIndex.is_level`.

        On a home that machines share none are: each has to say how far it is.
        """
        return not store.node and all(part.is_level(store) for part in self.in_use(store))

    def is_worn(self, store: Store) -> bool:
        """Whether one that is in use is worn, as `LexicalIndex.is_worn`."""
        return any(part.is_worn for part in self.in_use(store))

    def search(
        self,
        query: str,
        limit: int,
        audiences: Collection[Audience],
        *,
        allowed: frozenset[int] | None = None,
        restrict_nos: frozenset[int] | None = None,
        others: Sequence[TermFrequencies] = (),
    ) -> IndexHits:
        """The best `limit` chunks of these audiences that contain any of the query's words.

        As `LexicalIndex.search`; a word's weight comes from all these indexes together,
        and from `others`, which are the indexes of other homes.
        """
        parts = [self.of(audience) for audience in audiences]
        if len(parts) == 1 and not others:
            return parts[0].search(query, limit, allowed=allowed, restrict_nos=restrict_nos)
        try:
            return _merged_hits(parts, query, limit, allowed, restrict_nos, others)
        except CacheDamaged:
            for part in parts:
                part.repair()
        try:
            return _merged_hits(parts, query, limit, allowed, restrict_nos, others)
        except CacheDamaged:
            return NO_HITS

    def called(self, name: str, audiences: Collection[Audience]) -> frozenset[int]:
        """The first chunks of docs of these audiences that go by a name, of 64 docs each.

        Of a symbol that source code defines, the chunks that define it.
        """
        defining = self.holders(definition_holders(name), "no", audiences, _NAMESAKES_MAX)
        if defining:
            return defining
        keys = name_keys(name)
        # Mostly no doc has the name, which is told for less than by a search.
        parts = [part for part in self.frequencies(audiences) if _has_any(part, "called", keys)]
        if not parts:
            return frozenset()
        return self.holders(called_holders(name), "no", audiences, _NAMESAKES_MAX)

    def holders(
        self,
        wanted: Holding,
        field: str,
        audiences: Collection[Audience],
        limit: int | None = None,
    ) -> frozenset[int]:
        """As `LexicalIndex.holders`, of these audiences; `limit` is for each."""
        parts = (self.of(audience) for audience in audiences)
        return frozenset().union(*(part.holders(wanted, field, limit) for part in parts))

    def first_holders(
        self, wanted: Holding, audiences: Collection[Audience], count: int
    ) -> list[int]:
        """The lowest `count` numbers of chunks of these audiences that hold what is wanted."""
        parts = (self.of(audience) for audience in audiences)
        nos = {no for part in parts for no in part.first_holders(wanted, count)}
        return sorted(nos)[:count]

    def frequencies(self, audiences: Collection[Audience]) -> list[TermFrequencies]:
        """The term frequencies of these audiences, for a search of another home.

        A damaged index counts nothing: its own search repairs it.
        """
        frequencies = [self.of(audience).frequencies() for audience in audiences]
        return [without_damage(part) for part in frequencies if part]

    def ceiling(
        self, query: str, audiences: Collection[Audience], others: Sequence[TermFrequencies] = ()
    ) -> float:
        """The highest score that a chunk could have for the query; 0 if an index is damaged."""
        frequencies = [self.of(audience).frequencies() for audience in audiences]
        try:
            joint = merge_frequencies([*(part for part in frequencies if part), *others])
            return score_ceiling(joint, query_words(query))
        except CacheDamaged:
            return 0.0

    def rarity(
        self,
        query: str,
        audiences: Collection[Audience],
        background: int,
        others: Sequence[TermFrequencies] = (),
    ) -> Mapping[str, float]:
        """The weight of each distinct term of a query by its rarity; empty if an index is damaged.

        Counts `background` more rows that contain none of the terms.
        """
        frequencies = [self.of(audience).frequencies() for audience in audiences]
        try:
            joint = merge_frequencies([*(part for part in frequencies if part), *others])
            return term_weights(joint, terms(query), background)
        except CacheDamaged:
            return {}

    @property
    def in_memory(self) -> bool:
        """Whether any of them exists only in memory, because nothing can be written."""
        return any(part.in_memory for part in self._open_indexes())

    def stats(self) -> IndexStats:
        """The size of the open indexes together."""
        stats = [part.stats() for part in self._open_indexes()]
        return IndexStats(
            watermark=min((part.watermark for part in stats), default=-1),
            rows=sum(part.rows for part in stats),
            dead_rows=sum(part.dead_rows for part in stats),
            segments=sum(part.segments for part in stats),
            size_bytes=sum(part.size_bytes for part in stats),
            mode="bm25",
            in_memory=self.in_memory,
        )

    def compact(
        self,
        store: Store,
        *,
        wait_s: float,
        dead_share_max: float = DEAD_SHARE_MAX,
        should_continue: Callable[[], bool] = always,
    ) -> list[str]:
        """Compact the indexes in use, one by one, as `LexicalIndex.compact`.

        Returns errors, a line each.
        """
        errors = [
            part.compact(
                store, wait_s=wait_s, dead_share_max=dead_share_max, should_continue=should_continue
            )
            for part in self.in_use(store)
        ]
        return [problem for problem in errors if problem]

    def manifests(self) -> list[str]:
        """The manifest files of the open indexes, which change whenever hits may change."""
        return [str(manifest_path(part.folder)) for part in self._open_indexes()]

    def remove_unused(self, store: Store) -> None:
        """Remove the indexes of audiences without docs."""
        for manifest in self.folder.glob("*/manifest.json"):
            folder = manifest.parent

            def is_unused(folder: Path = folder) -> bool:
                with store.read() as txn:
                    return folder not in {folder_of(self.folder, a) for a in docs.audiences(txn)}

            if is_unused():
                remove_index(folder, is_unused)

    def close(self) -> None:
        """Release the files."""
        for part in self._open_indexes():
            part.close()

    def _open_indexes(self) -> list[LexicalIndex]:
        with self._lock:
            return list(self._parts.values())


def _has_any(part: TermFrequencies, field: str, terms: Collection[str]) -> bool:
    return any(part.doc_freq(field, term) for term in terms)


def _combined(store: Store, reports: Sequence[CatchUpReport]) -> CatchUpReport:
    if len(reports) == 1:
        return reports[0]
    with store.read() as txn:
        end = log.last_seq(txn)
    return CatchUpReport(
        watermark=min((report.watermark for report in reports), default=end),
        applied=sum(report.applied for report in reports),
        rebuilt=any(report.rebuilt for report in reports),
        behind=max((report.behind for report in reports), default=0),
        problem=next((report.problem for report in reports if report.problem), None),
    )


def _merged_hits(
    parts: Sequence[LexicalIndex],
    query: str,
    limit: int,
    allowed: frozenset[int] | None,
    restrict_nos: frozenset[int] | None,
    others: Sequence[TermFrequencies],
) -> IndexHits:
    frequencies = [part.frequencies() for part in parts]
    nonempty = [part for part, counts in zip(parts, frequencies, strict=True) if counts]
    if len(nonempty) == 1 and not others:
        return nonempty[0].search_or_raise(query, limit, allowed, restrict_nos)
    joint = merge_frequencies([*(part for part in frequencies if part), *others])
    # A chunk that moves from one audience to another may be in both.
    best: dict[int, float] = {}
    for part in nonempty:
        hits = part.search_or_raise(query, limit, allowed, restrict_nos, joint)
        for no, score in zip(hits.nos, hits.scores, strict=True):
            best[no] = max(score, best.get(no, 0.0))
    return rank_rows([(score, no) for no, score in best.items()], limit)
