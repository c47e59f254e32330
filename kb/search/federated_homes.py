"""The homes of a federated search: their chunks' numbers, and which chunks may be hits.

Chunk and source numbers are unique within one home only. A global number has the position of the
home in its upper bits.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from kb.model.doc import Doc
from kb.model.ids import ChunkNo, SourceNo
from kb.model.search import Filters
from kb.model.text import Chunk
from kb.search.candidates import CandidateFilter, ChunkFilter
from kb.search.filters import is_answerable
from kb.search.legs import HomeLegs, PreparedQuery
from kb.store.kv import ReadTxn

_HOME_SHIFT: Final = 40
"""A chunk number of one home has fewer bits."""
LOCAL_MASK: Final = (1 << _HOME_SHIFT) - 1


def home_position(no: int) -> int:
    """The position of the home that a global number is of."""
    return no >> _HOME_SHIFT


class HomePart(Struct, frozen=True, kw_only=True):
    """One of the homes, with its query."""

    position: int
    """In the order of precedence, from 0."""
    legs: HomeLegs
    query: PreparedQuery

    def global_no(self, no: int) -> ChunkNo:
        """The global number of one of its chunks."""
        return ChunkNo(self.position << _HOME_SHIFT | no)

    def globalized(self, chunk: Chunk) -> Chunk:
        """A chunk with its global numbers."""
        source_no = SourceNo(self.position << _HOME_SHIFT | chunk.source_no)
        return msgspec.structs.replace(chunk, no=self.global_no(chunk.no), source_no=source_no)


def localized(parts: Sequence[HomePart], chunk: Chunk) -> tuple[HomePart, Chunk]:
    """The home of a chunk with global numbers, and the chunk as that home numbers it."""
    local = msgspec.structs.replace(
        chunk,
        no=ChunkNo(chunk.no & LOCAL_MASK),
        source_no=SourceNo(chunk.source_no & LOCAL_MASK),
    )
    return parts[home_position(chunk.no)], local


class AdmissionFilter:
    """Admits each chunk that its own home admits; takes and returns global numbers."""

    def __init__(self, parts: Sequence[HomePart], txns: Sequence[ReadTxn]) -> None:
        self._parts = parts
        self._filters = [
            CandidateFilter(txn, part.query.request, part.query.scope, part.legs.learn)
            for part, txn in zip(parts, txns, strict=True)
        ]
        self._admitted: dict[int, tuple[Chunk, Doc] | None] = {}

    def expect(self, nos: Sequence[int]) -> None:
        """As `CandidateFilter.expect`."""
        for part in self._parts:
            own = [no & LOCAL_MASK for no in nos if home_position(no) == part.position]
            self._filters[part.position].expect(own)

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        """As `CandidateFilter.admit`."""
        if no not in self._admitted:
            part = self._parts[home_position(no)]
            pair = self._filters[part.position].admit(no & LOCAL_MASK)
            self._admitted[no] = pair and (part.globalized(pair[0]), pair[1])
        return self._admitted[no]

    def is_bare_title(self, chunk: Chunk, doc: Doc) -> bool:
        """As `CandidateFilter.is_bare_title`."""
        part, local = localized(self._parts, chunk)
        return self._filters[part.position].is_bare_title(local, doc)


class FirstHomeFilter:
    """Admits of what several homes hold only the earliest home's; takes global numbers."""

    def __init__(
        self,
        admission: AdmissionFilter,
        parts: Sequence[HomePart],
        txns: Sequence[ReadTxn],
        shared_filters: Filters | None,
    ) -> None:
        self._admission = admission
        self._parts = parts
        self._txns = txns
        self._shared_filters = shared_filters
        self._is_held: dict[int, bool] = {}

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        """As `CandidateFilter.admit`, but None if an earlier home answers for the source."""
        pair = self._admission.admit(no)
        return None if pair is None or self._held_earlier(*pair) else pair

    def _held_earlier(self, chunk: Chunk, doc: Doc) -> bool:
        filters = self._shared_filters
        if filters is None:
            return False
        if chunk.source_no not in self._is_held:
            position = home_position(chunk.no)
            place = self._parts[position].legs.store.local_place(doc.place)
            self._is_held[chunk.source_no] = any(
                is_answerable(txn, place, filters, part.query.scope)
                for part, txn in zip(self._parts[:position], self._txns, strict=False)
            )
        return self._is_held[chunk.source_no]

    def duplicates(self, nos: Iterable[int]) -> frozenset[int]:
        """The chunks among these that are not admitted, or whose id or text an earlier home has.

        Only earlier homes' chunks among `nos` count.
        """
        homes: dict[str, int] = {}
        duplicates: set[int] = set()
        # In ascending order an earlier home's chunks come first.
        ascending = sorted(nos)
        self._admission.expect(ascending)
        for no in ascending:
            pair = self.admit(no)
            if pair is None:
                duplicates.add(no)
                continue
            position = no >> _HOME_SHIFT
            keys = (pair[0].chunk_id, pair[0].text)
            if min(homes.setdefault(key, position) for key in keys) < position:
                duplicates.add(no)
        return frozenset(duplicates)


class HomeFilter:
    """A filter of global numbers as the indexes of one home use it: by local numbers."""

    def __init__(self, chunk_filter: ChunkFilter, part: HomePart) -> None:
        self._chunk_filter = chunk_filter
        self._part = part

    def expect(self, nos: Sequence[int]) -> None:
        """As `CandidateFilter.expect`."""
        self._chunk_filter.expect([self._part.global_no(no) for no in nos])

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        """As `CandidateFilter.admit`."""
        return self._chunk_filter.admit(self._part.global_no(no))
