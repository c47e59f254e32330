"""Which doc does a path name, or a part of one?"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from kb.errors import AmbiguousId, NotFound
from kb.home.open_home import OpenHome
from kb.home.spaces.each import FailedSpace, ask_each
from kb.model.doc import Scope
from kb.model.ids import DocId
from kb.model.search import NO_FILTERS
from kb.model.source import from_machine, is_within
from kb.operations.near_filters import nearest
from kb.search.filters import allowed_sources, may_appear
from kb.store import docs
from kb.store.kv import ReadTxn

_SHOWN_MAX: Final = 4
_PART_CHARS_MIN: Final = 3
# The first ways of `_matches`, by which nobody means another file.
_WHOLE_WAYS: Final = 2
_ID: Final = re.compile(r"[cd][0-9a-f]{3,}")


class SharedPlace(AmbiguousId):
    """A part of a path that several docs have."""

    template = "{id} is in the path of several docs: {candidates}; give more of the path, or an id"


class NoDocAt(NotFound):
    """Neither an id nor the path of a doc, or a part of one."""

    template = "nothing here has the id or the path {id}; {detail}"


def doc_at(homes: Sequence[OpenHome], place: str, scope: Scope, failed: list[FailedSpace]) -> DocId:
    """The doc that a place means, as `doc_of` says.

    Of a source that several homes have, the first one's. Raises as `doc_of` does, and a home's own
    error where none can be read.
    """

    def read(home: OpenHome) -> Mapping[str, DocId]:
        with home.store.read() as txn:
            return docs_by_source(txn, home.scope(scope), home.store.machine)

    by_source: dict[str, DocId] = {}
    for _, ids in ask_each(homes, read, failed):
        by_source = {**ids, **by_source}
    for home in homes:
        place = from_machine(place, home.store.machine) or place
    return doc_of(place, by_source)


def doc_of(place: str, by_source: Mapping[str, DocId], *, by_part: bool = True) -> DocId:
    """The doc whose source has this path, or is the only one with this part of it.

    The whole source counts first, then the end of a path; and `by_part` a file's name without
    extension, then a part of the name. Raises SharedPlace, and NoDocAt, which names the nearest;
    NotFound for what looks like an id.
    """
    ways = islice(_matches(place, by_source), None if by_part else _WHOLE_WAYS)
    sources = next(filter(None, ways), [])
    if len(sources) == 1:
        return by_source[sources[0]]
    if sources:
        shown = [f"{by_source[source][:9]} {source}" for source in sorted(sources)[:_SHOWN_MAX]]
        more = [f"and {len(sources) - _SHOWN_MAX:,} more"] if len(sources) > _SHOWN_MAX else []
        raise SharedPlace(id=place, candidates=", ".join([*shown, *more]))
    raise _missing(place, by_source)


def docs_by_source(txn: ReadTxn, scope: Scope, machine: str) -> Mapping[str, DocId]:
    """The docs that a scope sees, by what they were read from; `machine`'s files by their paths."""
    allowed = allowed_sources(txn, NO_FILTERS, scope)
    ids: dict[str, DocId] = {}
    for source, source_no in docs.facet_values(txn, "source"):
        doc = docs.latest(txn, source_no) if allowed is None or source_no in allowed else None
        if doc is not None and may_appear(doc, NO_FILTERS, scope):
            ids[from_machine(source, machine) or source] = doc.doc_id
    return ids


def _matches(place: str, sources: Iterable[str]) -> Iterator[list[str]]:
    """The sources that a place may mean, by each way to mean one, the surest first."""
    end = place.removeprefix("./").rstrip("/")
    folded = end.casefold()
    is_part = len(end) >= _PART_CHARS_MIN and not _ID.fullmatch(end)
    ways: tuple[Callable[[str], bool], ...] = (
        lambda source: source == place,
        lambda source: bool(end) and source.endswith((f"/{end}", f":{end}")),
        lambda source: _stem(source) == folded,
        lambda source: is_part and folded in _name(source),
    )
    for means in ways:
        yield [source for source in sources if means(source)]


def _listing(place: str) -> str:
    return shlex.join(("kb", "ls", "--source", place))


def _name(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2].casefold()


def _stem(source: str) -> str:
    name = _name(source)
    return name.rpartition(".")[0] or name


def _missing(place: str, by_source: Mapping[str, DocId]) -> NotFound:
    if _ID.fullmatch(place):
        return NotFound(id=place)
    if not by_source:
        return NoDocAt(id=place, detail="there are no docs yet; add some with: kb add FOLDER")
    below = sum(is_within(source, place) for source in by_source)
    if below:
        return NoDocAt(id=place, detail=f"`{_listing(place)}` lists the {below:,} docs below it")
    by_name: dict[str, str] = {}
    for source in sorted(by_source, key=lambda source: (len(source), source)):
        by_name.setdefault(_stem(source), source)
    near = [by_name[name] for name in nearest(_stem(place), by_name)]
    if near:
        names = " or ".join(near)
        return NoDocAt(id=place, near=names, detail=f"did you mean {names}?")
    return NoDocAt(id=place, detail="`kb ls` lists the docs")
