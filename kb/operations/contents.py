"""Every doc, and every chunk with its vector, batch by batch: never all of them at once."""

import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from kb.home.open_home import OpenHome
from kb.model.doc import Doc, Scope
from kb.model.embedder import EmbedderSpec
from kb.model.search import Filters, SpaceName
from kb.model.text import Chunk
from kb.operations.docs import DocRow, doc_row
from kb.operations.locate import LocatedFilters, locate_filters
from kb.operations.show import Passage
from kb.search.filters import allowed_sources, may_appear
from kb.store import chunks, docs, embedders
from kb.store.codec import from_u64, u64
from kb.store.kv import ReadTxn
from kb.store.records import SOURCE_CHUNKS, VERSIONS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.home.spaces.spaces import Spaces

_T = TypeVar("_T")
_BATCH: Final = 256
_Place = tuple[int, int]
"""Where a batch begins: the number of a source, and the ordinal of a chunk in it."""


class EmbeddedPassage(Passage, frozen=True, kw_only=True, eq=False):
    """A chunk as it is kept, and its vector."""

    vector: "NDArray[np.float32] | None"
    """Of the model in use: float32, shape (dim,), length 1, not to be written to; None where it is
    not made yet."""
    space: SpaceName | None


def doc_batches(spaces: "Spaces", filters: Filters, scope: Scope) -> Iterator[list[DocRow]]:
    """The active docs that pass the filters and that a scope sees, in the order they first came in.

    Of a source that several spaces have, the first one's doc. Each batch is read at one moment:
    none comes twice, and what comes or goes meanwhile may be among them. Raises NotFound,
    AmbiguousId and UnknownPack at once, and what a space raises that cannot be read.
    """
    scans = _scans(spaces, filters, scope)
    return (rows for scan in scans for rows in scan.doc_batches())


def passage_batches(
    spaces: "Spaces", filters: Filters, scope: Scope
) -> Iterator[list[EmbeddedPassage]]:
    """The chunks of the docs that `doc_batches` gives, in reading order; else the same."""
    scans = _scans(spaces, filters, scope)
    return (rows for scan in scans for rows in scan.passage_batches())


def _scans(spaces: "Spaces", filters: Filters, scope: Scope) -> "list[_Scan]":
    located = locate_filters(spaces.homes, filters, scope, list(spaces.failed))
    homes = located.homes(spaces.homes)
    return [_Scan(home, homes[:place], located, scope) for place, home in enumerate(homes)]


class _Scan:
    """One way through the docs of one home, of those that no earlier home has."""

    def __init__(
        self,
        home: OpenHome,
        earlier: Sequence[OpenHome],
        located: LocatedFilters,
        scope: Scope,
    ) -> None:
        self._home = home
        self._earlier = [(other, located.of(other), other.scope(scope)) for other in earlier]
        self._filters = located.of(home)
        self._scope = home.scope(scope)

    def doc_batches(self) -> Iterator[list[DocRow]]:
        """The docs, batch by batch."""
        return self._batches(self._docs_from)

    def passage_batches(self) -> Iterator[list[EmbeddedPassage]]:
        """Their chunks, batch by batch."""
        return self._batches(self._passages_from)

    def _batches(
        self, read: Callable[[ReadTxn, Iterator[int], _Place], tuple[list[_T], _Place | None]]
    ) -> Iterator[list[_T]]:
        with self._home.store.read() as txn:
            allowed = allowed_sources(txn, self._filters, self._scope)
        numbers = None if allowed is None else sorted(allowed)
        place: _Place | None = (0, 0)
        while place is not None:
            with self._home.store.read() as txn:
                rows, place = read(txn, _sources_from(txn, numbers, place[0]), place)
            yield rows

    def _docs_from(
        self, txn: ReadTxn, sources: Iterator[int], _: _Place
    ) -> tuple[list[DocRow], _Place | None]:
        numbers = list(islice(sources, _BATCH))
        each = (self._doc(txn, number) for number in numbers)
        rows = [doc_row(txn, doc, self._home.name) for doc in each if doc is not None]
        return rows, (numbers[-1] + 1, 0) if len(numbers) == _BATCH else None

    def _passages_from(
        self, txn: ReadTxn, sources: Iterator[int], place: _Place
    ) -> tuple[list[EmbeddedPassage], _Place | None]:
        in_use = embedders.in_use(txn)
        model = in_use.active if in_use else None
        rows: list[EmbeddedPassage] = []
        for number in sources:
            if self._doc(txn, number) is None:
                continue
            first = place[1] if number == place[0] else 0
            for key, ref in SOURCE_CHUNKS.scan(txn, u64(number), start=u64(number) + u64(first)):
                if len(rows) == _BATCH:
                    return rows, (number, from_u64(key[-8:]))
                chunk = chunks.get(txn, ref.no)
                if chunk is not None:
                    rows.append(_embedded(txn, chunk, model, self._home.name))
        return rows, None

    def _doc(self, txn: ReadTxn, number: int) -> Doc | None:
        """The newest doc of a source, where it is to be seen and no earlier home has it."""
        doc = docs.latest(txn, number)
        if doc is None or not may_appear(doc, self._filters, self._scope):
            return None
        return None if any(self._has(doc, *other) for other in self._earlier) else doc

    def _has(self, doc: Doc, other: OpenHome, filters: Filters, scope: Scope) -> bool:
        with other.store.read() as txn:
            same = docs.latest_of(txn, self._home.store.local_place(doc.place))
            return same is not None and may_appear(same, filters, scope)


def _sources_from(txn: ReadTxn, numbers: Sequence[int] | None, first: int) -> Iterator[int]:
    """The numbers of sources from one on, ascending; of `numbers`, where not all are wanted."""
    if numbers is not None:
        places = range(bisect.bisect_left(numbers, first), len(numbers))
        return (numbers[place] for place in places)
    return (pointer.source_no for _, pointer in VERSIONS.scan(txn, start=u64(first)))


def _embedded(
    txn: ReadTxn, chunk: Chunk, model: EmbedderSpec | None, space: SpaceName | None
) -> EmbeddedPassage:
    vector = None
    if model is not None:
        vector = chunks.get_vector(txn, model.fingerprint, chunk.text_hash, model.dim)
    fields = {name: getattr(chunk, name) for name in Passage.__struct_fields__}
    return EmbeddedPassage(**fields, vector=vector, space=space)
