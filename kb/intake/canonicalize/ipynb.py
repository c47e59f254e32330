"""What does a notebook say? Its text, its code and what the code printed."""

import json
import re
from typing import Any, Final

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import fenced, finish
from kb.model.text import Canonical

MIME: Final = "application/x-ipynb+json"
OUTPUT_CHARS_MAX: Final = 4_000


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """Cells in order: markdown as it is, code fenced, text outputs cut to `OUTPUT_CHARS_MAX`.

    Images and other outputs that are no text are left out.

    Raises:
        Unparsable: it is no notebook, or nested too deeply.
        EmptySource: no cell has text.
    """
    try:
        book = json.loads(data)
    except (ValueError, RecursionError):
        raise Unparsable(
            "it is no JSON, or nested too deeply; save the notebook again", source=name
        ) from None
    book = _dict(book)
    sheets = _list(book.get("worksheets"))
    cells = book.get("cells") or (_dict(sheets[0]).get("cells") if sheets else None)
    if not isinstance(cells, list):
        raise Unparsable("it has no cells; save the notebook again", source=name)
    meta = _dict(book.get("metadata"))
    stated = _dict(meta.get("language_info")).get("name")
    stated = stated or _dict(meta.get("kernelspec")).get("language")
    language = stated if isinstance(stated, str) and re.fullmatch(r"[\w+#.-]{1,40}", stated) else ""
    blocks: list[str] = []
    for cell in map(_dict, cells):
        blocks += _cell(cell, language)
    title = meta.get("title")
    return finish(blocks, name, MIME, title=title if isinstance(title, str) else "")


def _cell(cell: dict[str, Any], language: str) -> list[str]:
    source = _text(cell.get("source", cell.get("input", "")))
    kind = cell.get("cell_type")
    if kind == "heading":
        return [f"# {source}"]
    if kind != "code":
        return [re.sub(r"!\[([^\]\n]*)\]\(data:[^)\s]*\)", r"\1", source)]
    blocks = [fenced(source, language)] if source.strip() else []
    said = "".join(filter(None, map(_output, map(_dict, _list(cell.get("outputs"))))))
    if said.strip():
        cut = said[:OUTPUT_CHARS_MAX]
        if cut != said:
            cut += f"\n[{len(said) - OUTPUT_CHARS_MAX} more characters]"
        blocks.append(fenced(cut, "text"))
    return blocks


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") in {"error", "pyerr"}:
        return f"{output.get('ename', '')}: {output.get('evalue', '')}\n"
    plain = _dict(output.get("data")).get("text/plain")
    return _text(output.get("text") or plain)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""
