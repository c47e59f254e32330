"""What the author of a pack would want to mend."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from kb.errors import Refused, SourceError, Unreadable
from kb.knowledge.packs.load import Pack
from kb.knowledge.packs.manifest import EdgeType, FindingCode, PackDoc, PackFinding
from kb.knowledge.packs.query import dangling

# Along these a doc stands above another one, so that a way back to it is a mistake.
_UPWARD: Final[frozenset[EdgeType]] = frozenset(("part_of", "depends_on", "extends"))
_CYCLE_SHOWN_MAX: Final = 12


def check(pack: Pack) -> list[PackFinding]:
    """All that is found, by code, then in the order of the docs. Reads every body."""
    docs = pack.manifest.docs
    found = [
        *pack.findings,
        *_twice("duplicate_id", "id", ((doc.id, doc) for doc in docs)),
        *_twice("duplicate_selector", "selector", ((doc.selector, doc) for doc in docs)),
        *_twice("duplicate_source_path", "source path", ((doc.source_path, doc) for doc in docs)),
        *dangling(pack),
        *_untitled(docs),
        *_bodies(pack),
        *_cycles(pack),
    ]
    return sorted(found, key=lambda finding: finding.code)


def _twice(
    code: FindingCode, noun: str, named: Iterable[tuple[str, PackDoc]]
) -> Iterator[PackFinding]:
    pairs = list(named)
    counts = Counter(name for name, _ in pairs)
    first: dict[str, PackDoc] = {}
    for name, doc in pairs:
        if counts[name] > 1 and first.setdefault(name, doc) is not doc:
            detail = f"its {noun} {name!r} is that of {first[name].source_path}, too"
            yield PackFinding(code=code, doc=doc.selector, detail=detail)


def _untitled(docs: Iterable[PackDoc]) -> Iterator[PackFinding]:
    for doc in docs:
        if not doc.title.strip():
            yield PackFinding(code="empty_title", doc=doc.selector, detail="it has no title")


def _bodies(pack: Pack) -> Iterator[PackFinding]:
    for doc in pack.manifest.docs:
        try:
            warning = pack.body(doc).warning
        except SourceError as error:
            yield PackFinding(code=_code_of(error), doc=doc.selector, detail=str(error))
        else:
            if warning:
                yield PackFinding(code="unreadable_body", doc=doc.selector, detail=warning)


def _code_of(error: SourceError) -> FindingCode:
    match error:
        case Refused():
            return "unsafe_path"
        case Unreadable():
            return "missing_body"
        case _:
            return "unreadable_body"


def _cycles(pack: Pack) -> Iterator[PackFinding]:
    """A finding for each link that closes a way round, found by going deep; no recursion."""
    links: dict[str, list[str]] = {}
    for doc in pack.manifest.docs:
        targets = (pack.find(edge.target) for edge in doc.related if edge.type in _UPWARD)
        links.setdefault(doc.selector, []).extend(target.selector for target in targets if target)
    done: set[str] = set()
    for root in links:
        way: list[str] = []
        place: dict[str, int] = {}
        left = [iter((root,))]
        while left:
            after = next(left[-1], None)
            if after is None:
                left.pop()
                if way:
                    done.add(way[-1])
                    del place[way.pop()]
            elif after in place:
                yield _cycle(way, place[after])
            elif after not in done:
                place[after] = len(way)
                way.append(after)
                left.append(iter(links[after]))


def _cycle(way: list[str], start: int) -> PackFinding:
    shown = way[start : start + _CYCLE_SHOWN_MAX]
    cut = ["…"] if len(way) - start > len(shown) else []
    ring = " > ".join([*shown, *cut, way[start]])
    detail = f"its part_of, depends_on and extends links lead round: {ring}"
    return PackFinding(code="cycle", doc=way[start], detail=detail)
