"""Checks a pack: the findings that its author would want to fix."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from kb.errors import Refused, SourceError, Unreadable
from kb.knowledge.packs.load import Pack
from kb.knowledge.packs.manifest import EdgeType, FindingCode, PackDoc, PackFinding
from kb.knowledge.packs.query import dangling

# Links that express a hierarchy, in which a cycle is a mistake.
_UPWARD: Final[frozenset[EdgeType]] = frozenset(("part_of", "depends_on", "extends"))
_CYCLE_SHOWN_MAX: Final = 12


def check(pack: Pack) -> list[PackFinding]:
    """All findings, by code, then in the order of the docs. Reads every body."""
    docs = pack.manifest.docs
    findings = [
        *pack.findings,
        *_duplicates("duplicate_id", "id", ((doc.id, doc) for doc in docs)),
        *_duplicates("duplicate_selector", "selector", ((doc.selector, doc) for doc in docs)),
        *_duplicates(
            "duplicate_source_path", "source path", ((doc.source_path, doc) for doc in docs)
        ),
        *dangling(pack),
        *_untitled(docs),
        *_bodies(pack),
        *_cycles(pack),
    ]
    return sorted(findings, key=lambda finding: finding.code)


def _duplicates(
    code: FindingCode, noun: str, names: Iterable[tuple[str, PackDoc]]
) -> Iterator[PackFinding]:
    pairs = list(names)
    counts = Counter(name for name, _ in pairs)
    first_docs: dict[str, PackDoc] = {}
    for name, doc in pairs:
        if counts[name] > 1 and first_docs.setdefault(name, doc) is not doc:
            detail = f"it has the same {noun} {name!r} as {first_docs[name].source_path}"
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
    """A finding for each link that closes a cycle; depth first, without recursion."""
    links: dict[str, list[str]] = {}
    for doc in pack.manifest.docs:
        targets = (pack.find(edge.target) for edge in doc.related if edge.type in _UPWARD)
        links.setdefault(doc.selector, []).extend(target.selector for target in targets if target)
    done: set[str] = set()
    for root in links:
        path: list[str] = []
        positions: dict[str, int] = {}
        stack = [iter((root,))]
        while stack:
            successor = next(stack[-1], None)
            if successor is None:
                stack.pop()
                if path:
                    done.add(path[-1])
                    del positions[path.pop()]
            elif successor in positions:
                yield _cycle(path, positions[successor])
            elif successor not in done:
                positions[successor] = len(path)
                path.append(successor)
                stack.append(iter(links[successor]))


def _cycle(path: list[str], start: int) -> PackFinding:
    shown = path[start : start + _CYCLE_SHOWN_MAX]
    cut = ["…"] if len(path) - start > len(shown) else []
    ring = " > ".join([*shown, *cut, path[start]])
    detail = f"its part_of, depends_on and extends links form a circle: {ring}"
    return PackFinding(code="cycle", doc=path[start], detail=detail)
