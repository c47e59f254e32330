"""Short forms of a pack for an agent's context: brief metadata and prompt variables. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kb.knowledge.packs.load import Pack
from kb.knowledge.packs.manifest import EdgeType, PackDoc, PackFinding

_NOT_OF_A_NAME: Final = re.compile(r"[^\w.]")
_SUMMARY_CHARS_MAX: Final = 1_000
_LINE_CHARS_MAX: Final = 300
_LINKS_MAX: Final = 50
_WARNINGS_MAX: Final = 20


class BriefEdge(Struct, frozen=True, kw_only=True):
    """A link without its description."""

    type: EdgeType
    target: str


class BriefDoc(Struct, frozen=True, kw_only=True):
    """A doc without what only whoever keeps the files needs."""

    id: str
    selector: str
    title: str
    summary: str
    kind: str
    tags: tuple[str, ...]
    related: tuple[BriefEdge, ...]
    """The first of its links."""
    links: int
    """How many links it has."""


class Variables(Struct, frozen=True, kw_only=True):
    """Variables for a prompt, by name."""

    variables: dict[str, str]
    """Sorted by name."""
    warnings: tuple[str, ...]


def brief(doc: PackDoc) -> BriefDoc:
    """The metadata by which an agent chooses a doc and goes on, of bounded length."""
    return BriefDoc(
        id=doc.id,
        selector=doc.selector,
        title=doc.title,
        summary=_cut(doc.summary, _SUMMARY_CHARS_MAX),
        kind=doc.kind,
        tags=doc.tags,
        related=tuple(
            BriefEdge(type=edge.type, target=edge.target) for edge in doc.related[:_LINKS_MAX]
        ),
        links=len(doc.related),
    )


def warnings_of(findings: Iterable[PackFinding]) -> tuple[str, ...]:
    """Findings in words, the first twenty of them; the last line counts the others."""
    lines = [finding.line for finding in findings]
    left_out = len(lines) - _WARNINGS_MAX
    more = [f"and {left_out} more, which a check of the pack lists"] if left_out > 0 else []
    return (*lines[:_WARNINGS_MAX], *more)


def variables(pack: Pack) -> Variables:
    """A variable for each doc: the pack's selector and the doc's, dotted, and what the doc is.

    A pack without a selector goes by `pack.<pack id>`. Characters that a name may not have become
    `_`; if two docs get one name the first keeps it, and a warning names the other.
    """
    summaries: dict[str, str] = {}
    warnings = []
    prefix = pack.selector or f"pack.{pack.manifest.pack_id}"
    for doc in pack.manifest.docs:
        name = variable_name(prefix, doc.selector)
        if name in summaries:
            warnings.append(f"{doc.selector} has no variable, because another doc has {name}, too")
        summaries.setdefault(name, _in_a_line(doc))
    return Variables(variables=dict(sorted(summaries.items())), warnings=tuple(warnings))


def variable_name(pack_selector: str, doc_selector: str) -> str:
    """`pkg:a-b.c` and `d.e` as `pkg.a_b.c.d.e`."""
    dotted = f"{pack_selector.replace(':', '.', 1)}.{doc_selector}"
    return _NOT_OF_A_NAME.sub("_", dotted)


def _in_a_line(doc: PackDoc) -> str:
    summary = _cut(" ".join(doc.summary.split()), _LINE_CHARS_MAX)
    tags = f" Tags: {', '.join(doc.tags)}." if doc.tags else ""
    return f"{' '.join(doc.title.split())} ({doc.kind}). {summary}{tags} Read as {doc.selector}."


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 1].rstrip() + "…"
