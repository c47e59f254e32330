"""What elements does an XML document have? Read in one pass, without a tree.

A DOCTYPE ends it, so there are no entities to expand and nothing to fetch.
"""

from typing import TYPE_CHECKING, Final, Protocol

from kb.errors import Unparsable

if TYPE_CHECKING:
    from pyexpat import XMLParserType

_DEPTH_MAX: Final = 256


class XmlVisitor(Protocol):
    """Sees the elements of a document, in their order."""

    def start(self, path: list[str], attributes: dict[str, str]) -> None:
        """An element begins; `path` has the names from the root to it, without namespaces."""
        ...

    def text(self, path: list[str], text: str) -> None:
        """Some of the text directly in the element at `path`."""
        ...

    def end(self, path: list[str]) -> None:
        """The element ends."""
        ...


class _Stop(Exception):
    """The document is not read further; says why."""


def visit_xml(data: bytes, visitor: XmlVisitor, source: str) -> None:
    """Read a document. Raises Unparsable for a DOCTYPE, too much depth, or what is no XML."""
    from xml.parsers import expat

    try:
        _parser(visitor).Parse(data, True)
    except _Stop as stop:
        raise Unparsable(str(stop), source=source) from None
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise Unparsable("its XML is damaged", source=source) from error


def _parser(visitor: XmlVisitor) -> "XMLParserType":
    from xml.parsers import expat

    path: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        path.append(_local(name))
        if len(path) > _DEPTH_MAX:
            raise _Stop("its XML is nested too deeply")
        visitor.start(path, {_local(key): value for key, value in attributes.items()})

    def text(data: str) -> None:
        visitor.text(path, data)

    def end(_: str) -> None:
        visitor.end(path)
        path.pop()

    def refuse(*_: object) -> None:
        raise _Stop("its XML has a DOCTYPE, which is not read")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.CharacterDataHandler = text
    parser.EndElementHandler = end
    return parser


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
