"""A pack's docs and links as a graph, in the languages of Mermaid and Graphviz. Pure."""

from collections.abc import Iterator
from typing import Final, assert_never

from kb.knowledge.packs.load import Pack
from kb.knowledge.packs.manifest import EdgeType, PackDoc
from kb.model.pack import GraphFormat

# Mermaid interprets markup and quotes in a label, but not its own character codes.
_MERMAID_SAFE: Final = frozenset(" _-.,:()/+'!?")


def graph(pack: Pack, form: GraphFormat) -> str:
    """The source of the drawing: docs by selector, links by their ends, each once.

    Equal packs give equal bytes. A link to a missing target is not drawn.
    """
    docs = sorted({doc.selector: doc for doc in reversed(pack.manifest.docs)}.items())
    links = sorted(set(_links(pack)))
    match form:
        case "mermaid":
            lines = _mermaid([doc for _, doc in docs], links)
        case "dot":
            lines = _dot([doc for _, doc in docs], links, pack.manifest.pack_id)
        case _:
            assert_never(form)
    return "\n".join(lines) + "\n"


def _links(pack: Pack) -> Iterator[tuple[str, str, EdgeType]]:
    for doc in pack.manifest.docs:
        for edge in doc.related:
            target = pack.find(edge.target)
            if target is not None:
                yield doc.selector, target.selector, edge.type


def _mermaid(docs: list[PackDoc], links: list[tuple[str, str, EdgeType]]) -> Iterator[str]:
    yield "flowchart LR"
    names = {doc.selector: f"d{number}" for number, doc in enumerate(docs)}
    for doc in docs:
        yield f'  {names[doc.selector]}["{_mermaid_label(_label(doc))}"]'
    for source, target, kind in links:
        yield f"  {names[source]} -->|{kind}| {names[target]}"


def _mermaid_label(text: str) -> str:
    return "".join(
        char if char.isalnum() or char in _MERMAID_SAFE else f"#{ord(char)};" for char in text
    )


def _dot(
    docs: list[PackDoc], links: list[tuple[str, str, EdgeType]], pack_id: str
) -> Iterator[str]:
    yield f"digraph {_quoted(pack_id)} {{"
    yield "  rankdir=LR;"
    for doc in docs:
        yield f"  {_quoted(doc.selector)} [label={_quoted(_label(doc))}];"
    for source, target, kind in links:
        yield f"  {_quoted(source)} -> {_quoted(target)} [label={_quoted(kind)}];"
    yield "}"


def _label(doc: PackDoc) -> str:
    return doc.title.strip() or doc.selector


def _quoted(text: str) -> str:
    line = " ".join(text.split()).replace("\0", "")
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '"'
