"""What is written on a board? The texts of Obsidian, Excalidraw, draw.io, and SVG."""

import base64
import binascii
import json
import zlib
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from kb.errors import EmptySource, Unparsable
from kb.intake.canonicalize.archive import local, parse_xml, without_doctype
from kb.intake.canonicalize.blocks import finish, heading
from kb.intake.canonicalize.decode import decode_text
from kb.intake.canonicalize.visible import visible_text
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

CANVAS: Final = "application/x-canvas+json"
EXCALIDRAW: Final = "application/x-excalidraw+json"
DRAWIO: Final = "application/x-drawio"
SVG: Final = "image/svg+xml"
_DIAGRAM_BYTES_MAX: Final = 16 << 20
_DIAGRAMS_MAX: Final = 1_000
_SVG_TEXTS: Final = frozenset(("title", "desc", "text"))


def read_canvas(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The cards of a canvas of Obsidian, from top to bottom; files and pages on it are named.

    Raises Unparsable and EmptySource, as all in this module.
    """
    board = _json(data, name, charset)
    cards = [node for node in _list(board, "nodes") if isinstance(node, dict)]
    blocks = []
    for card in sorted(cards, key=_place):
        file, label = card.get("file"), card.get("label")
        text = card.get("text") or (f"![[{file}]]" if file else "") or card.get("url")
        if isinstance(label, str) and card.get("type") == "group":
            blocks.append(heading(2, label))
        elif isinstance(text, str):
            blocks.append(text)
    labels = (edge.get("label") for edge in _list(board, "edges") if isinstance(edge, dict))
    blocks += [label for label in labels if isinstance(label, str)]
    return finish(blocks, name, CANVAS, is_titled=False)


def read_excalidraw(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The texts of a drawing of Excalidraw, from top to bottom."""
    elements = [
        one for one in _list(_json(data, name, charset), "elements") if isinstance(one, dict)
    ]
    shown = [one for one in elements if not one.get("isDeleted")]
    texts = (one.get("originalText") or one.get("text") for one in sorted(shown, key=_place))
    return finish((t for t in texts if isinstance(t, str)), name, EXCALIDRAW, is_titled=False)


def read_drawio(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The labels of each page of a drawing of draw.io, packed or not."""
    root = parse_xml(without_doctype(data), name)
    blocks: list[str] = []
    pages = [root] if local(root) == "mxGraphModel" else list(root.iterfind("diagram"))
    for page in pages[:_DIAGRAMS_MAX]:
        blocks.append(heading(2, page.get("name", "")))
        drawn = page if len(page) else _unpacked(page.text or "", name)
        for cell in drawn.iter("mxCell", "object", "UserObject") if drawn is not None else ():
            label = cell.get("value") or cell.get("label") or ""
            blocks.append(visible_text(label) if "<" in label else label)
    if not any(block for block in blocks if not block.startswith("## ")):
        raise EmptySource("there is no text in it", source=name)
    return finish(blocks, name, DRAWIO, is_titled=False)


def read_svg(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The title, the description and the texts of a drawing; one without any is its name."""
    root = parse_xml(without_doctype(data), name)
    if local(root) != "svg":
        raise Unparsable("it is no SVG; save it again", source=name)
    texts = [
        " ".join("".join(element.itertext()).split())
        for element in root.iter()
        if local(element) in _SVG_TEXTS
    ]
    texts = list(dict.fromkeys(filter(None, texts)))
    title = next((" ".join((e.text or "").split()) for e in root if local(e) == "title"), "")
    canonical = finish((*texts, "SVG picture"), name, SVG, title=title, is_titled=False)
    return msgspec.structs.replace(canonical, by_name=not texts)


def _json(data: bytes, name: str, charset: str | None) -> dict[str, Any]:
    text = decode_text(data, (charset,) if charset else ())[0]
    try:
        board = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        board = None
    if not isinstance(board, dict):
        raise Unparsable("it is damaged; save it again where it was made", source=name)
    return board


def _list(board: dict[str, Any], key: str) -> list[Any]:
    values = board.get(key)
    return values if isinstance(values, list) else []


def _place(card: dict[str, Any]) -> tuple[float, float]:
    sides = (card.get("y"), card.get("x"))
    down, right = (float(side) if isinstance(side, int | float) else 0.0 for side in sides)
    return down, right


def _unpacked(text: str, name: str) -> "_Element | None":
    """The drawing of a page that is packed as draw.io does; None for what is none."""
    try:
        packed = base64.b64decode(text.strip(), validate=True)
        opened = zlib.decompressobj(-15).decompress(packed, _DIAGRAM_BYTES_MAX)
    except (binascii.Error, ValueError, zlib.error):
        return None
    return parse_xml(unquote(opened.decode("utf-8", "replace")).encode(), name) if opened else None
