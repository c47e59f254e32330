"""What does a book in FictionBook say? Its chapters in order, by title, with its authors."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.errors import Unparsable
from kb.intake.canonicalize.archive import local, parse_xml
from kb.intake.canonicalize.blocks import finish, heading
from kb.intake.canonicalize.dates import iso_date
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/x-fictionbook+xml"
_LINES: Final = frozenset(("p", "v", "subtitle", "text-author", "date"))
_DEPTH_MAX: Final = 64


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The text of its bodies, notes included; pictures are left out.

    Raises:
        Unparsable: it is no book of this format.
        EmptySource: no text is in it.
    """
    root = parse_xml(data, name)
    if local(root) != "FictionBook":
        raise Unparsable("it is no FictionBook; convert it to EPUB", source=name)
    about = root.find("{*}description/{*}title-info")
    authors = [] if about is None else [_words(author) for author in about.iterfind("{*}author")]
    dates = [] if about is None else [_words(date) for date in about.iterfind("{*}date")]
    blocks = [f"By {', '.join(authors)}"] if any(authors) else []
    for body in root.iterfind("{*}body"):
        blocks += _blocks(body, 1)
    date = next(filter(None, map(iso_date, dates)), None)
    title = "" if about is None else _words(about.find("{*}book-title"))
    return finish(blocks, name, MIME, title=title, date=date, is_titled=False)


def _blocks(element: "_Element", level: int) -> Iterator[str]:
    for child in element:
        kind = local(child)
        if kind == "title":
            yield heading(level, _words(child))
        elif kind in _LINES:
            yield _words(child)
        elif kind != "image" and level <= _DEPTH_MAX:
            yield from _blocks(child, level + (kind == "section"))


def _words(element: "_Element | None") -> str:
    if element is None:
        return ""
    # Lines of a title and names of an author stand in elements of their own; words in them do not.
    joint = " " if local(element) in ("title", "author") else ""
    return " ".join(joint.join(element.itertext()).split())
